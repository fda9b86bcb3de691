"""tools/fuzz prints what each harness did, and fails where one failed or where there is none."""

import subprocess
import tempfile
import unittest
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[2] / "tools" / "fuzz"
WORKS = "#64\tNEW    cov: 17 ft: 3\n#128\tDONE   cov: 19 ft: 4\nstat::number_of_executed_units: 128\n"
FAILS = "#9\tNEW    cov: 5 ft: 1\nnot so: a tensor is inside\n==1== ERROR: libFuzzer: deadly signal\nSUMMARY: libFuzzer: deadly signal\n"


def run(harnesses, *targets):
    """Exit code and output of tools/fuzz on a build folder whose harnesses print and end as told."""
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder) / "tests/fuzz"
        programs.mkdir(parents=True)
        for name, (output, code) in harnesses.items():
            program = programs / f"fuzz_{name}"
            program.write_text(f"#!/bin/sh\ncat <<'END'\n{output}END\nexit {code}\n")
            program.chmod(0o755)
        done = subprocess.run([FUZZ, folder, "1", *targets], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr


class Fuzz(unittest.TestCase):
    def test_prints_executions_and_coverage(self):
        code, output = run({"a": (WORKS, 0), "b": (WORKS, 0)})
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"a +1 +128 +19 +ok\n")
        self.assertRegex(output, r"b +1 +128 +19 +ok\n")

    def test_fails_where_one_crashed_and_says_why(self):
        code, output = run({"a": (WORKS, 0), "b": (FAILS, 77)})
        self.assertNotEqual(code, 0, output)
        self.assertRegex(output, r"b +1 +- +5 +FAILED: not so: a tensor is inside")
        code, output = run({"a": ("", 70)})
        self.assertNotEqual(code, 0, output)
        self.assertIn("FAILED: ended with 70", output)

    def test_runs_what_is_named(self):
        code, output = run({"a": (WORKS, 0), "b": (FAILS, 77)}, "a")
        self.assertEqual(code, 0, output)

    def test_fails_where_there_is_no_harness(self):
        code, output = run({})
        self.assertNotEqual(code, 0, output)
        self.assertIn("no harness", output)


if __name__ == "__main__":
    unittest.main()
