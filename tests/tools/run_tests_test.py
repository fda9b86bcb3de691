"""tools/run_tests counts what did not run by its reason, and fails when the reason is not an allowed one."""

import subprocess
import tempfile
import unittest
from pathlib import Path

RUN_TESTS = Path(__file__).resolve().parents[2] / "tools" / "run_tests"
OK = "[       OK ] Suite.Runs (0 ms)\n"
SKIPPED = "a_test.cpp:12: Skipped\n{reason}\n\n[  SKIPPED ] Suite.{case} (0 ms)\n"
DATA = "needs extra data: RETORT_SHARED_DATA is not set"
PRIVILEGES = "needs privileges: mounting a disk takes root with CAP_SYS_ADMIN"


def run(output, code=0):
    """Exit code and output of run_tests on a build folder whose one test prints `output`."""
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        (build / "CMakeCache.txt").write_text("")
        (build / "output").write_text(output)
        (build / "CTestTestfile.cmake").write_text(
            f'add_test(one "sh" "-c" "cat \'{build}/output\'; exit {code}")\n')
        done = subprocess.run([RUN_TESTS, build], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr


class RunTests(unittest.TestCase):
    def test_passes_where_all_ran(self):
        code, output = run(OK)
        self.assertEqual(code, 0, output)
        self.assertIn("1 cases ok, 0 failed, 0 not run", output)

    def test_counts_what_did_not_run_by_reason(self):
        skips = [SKIPPED.format(reason=reason, case=case) for case, reason in enumerate((DATA, PRIVILEGES, DATA))]
        code, output = run(OK + "".join(skips))
        self.assertEqual(code, 0, output)
        self.assertIn("tests: passed in", output)
        self.assertIn("1 cases ok, 0 failed, 3 not run", output)
        self.assertIn(f"tests: 2 not run: {DATA}", output)
        self.assertIn(f"tests: 1 not run: {PRIVILEGES}", output)

    def test_fails_where_a_case_did_not_run_for_another_reason(self):
        for reason in ("the machine is slow", ""):
            code, output = run(OK + SKIPPED.format(reason=DATA, case=0) + SKIPPED.format(reason=reason, case=1))
            self.assertEqual(code, 1, output)
            self.assertIn(f"tests: 1 not run: {reason or 'no reason'}", output)
            self.assertIn("tests: FAILED", output)

    def test_fails_where_a_case_is_disabled(self):
        code, output = run(OK + "  YOU HAVE 2 DISABLED TESTS\n")
        self.assertEqual(code, 1, output)
        self.assertIn("2 cases are disabled", output)

    def test_fails_where_a_case_failed(self):
        code, output = run("[  FAILED  ] Suite.Runs (0 ms)\n", code=1)
        self.assertNotEqual(code, 0, output)
        self.assertIn("0 cases ok, 1 failed", output)


if __name__ == "__main__":
    unittest.main()
