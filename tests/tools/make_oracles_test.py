"""tools/make_oracles.py runs each module once, keeps what is up to date, and fails when a module fails."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "make_oracles.py"

COUNTING = """
def write(out_dir, shared):
    file = out_dir.parent / "runs_{name}"
    file.write_text(file.read_text() + "x" if file.exists() else "x")
    (out_dir / "{name}" / "answer.txt").write_text(str(shared))
"""


class MakeOracles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.modules = self.root / "oracles"
        self.modules.mkdir()
        self.out = self.root / "out"
        for name in ("first", "second"):
            (self.modules / f"{name}.py").write_text(COUNTING.format(name=name))

    def run_tool(self, *arguments):
        command = [sys.executable, "-B", TOOL, "--out", self.out, "--modules", self.modules, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def runs(self, name):
        return len((self.root / f"runs_{name}").read_text())

    def test_writes_every_module_and_says_how_long_it_took(self):
        code, output = self.run_tool()
        self.assertEqual(code, 0, output)
        for name in ("first", "second"):
            self.assertRegex(output, rf"oracles: {name}: \d+\.\d s\n")
        self.assertEqual((self.out / "second" / "answer.txt").read_text(), "None")

    def test_keeps_what_is_up_to_date(self):
        self.run_tool()
        code, output = self.run_tool()
        self.assertEqual((code, self.runs("first")), (0, 1), output)

    def test_runs_only_the_module_that_changed(self):
        self.run_tool()
        with open(self.modules / "second.py", "a") as file:
            file.write("# changed\n")
        self.run_tool()
        self.assertEqual((self.runs("first"), self.runs("second")), (1, 2))

    def test_runs_all_again_when_a_shared_helper_changes(self):
        self.run_tool()
        (self.modules / "_helper.py").write_text("")
        self.run_tool()
        self.assertEqual((self.runs("first"), self.runs("second")), (2, 2))

    def test_runs_all_again_when_the_extra_data_change(self):
        data = self.root / "data"
        data.mkdir()
        (data / "text.txt").write_text("a")
        self.run_tool("--shared", data)
        self.run_tool("--shared", data)
        self.assertEqual(self.runs("first"), 1)
        os.utime(data / "text.txt", ns=(1, 1))
        self.run_tool("--shared", data)
        self.assertEqual(self.runs("first"), 2)

    def test_fails_when_a_module_fails_and_runs_it_again(self):
        (self.modules / "broken.py").write_text("def write(out_dir, shared):\n    raise ValueError('no such model')\n")
        for _ in range(2):
            code, output = self.run_tool()
            self.assertEqual(code, 1)
            self.assertIn("no such model", output)
            self.assertIn("oracles: broken failed", output)
        self.assertEqual(self.runs("second"), 1)

    def test_removes_what_an_older_version_of_a_module_wrote(self):
        self.run_tool()
        (self.out / "first" / "stale.txt").write_text("")
        self.run_tool("--force")
        self.assertEqual([p.name for p in (self.out / "first").iterdir()], ["answer.txt"])


if __name__ == "__main__":
    unittest.main()
