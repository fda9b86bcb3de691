"""tools/cut_samples: numbers and columns are renewed, the layout of the document stays, and what is stale is told."""

import importlib.machinery
import importlib.util
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

REPOSITORY = Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("cut_samples", str(REPOSITORY / "tools" / "cut_samples"))
cut_samples = importlib.util.module_from_spec(importlib.util.spec_from_loader("cut_samples", LOADER))
LOADER.exec_module(cut_samples)


class Renewed(unittest.TestCase):
    def test_numbers_and_columns_are_those_of_the_output(self):
        template = "model     loss\n--------------\nteacher   7.29\n...\n"
        self.assertEqual(cut_samples.renewed(template, "model    loss\n-------------\nteacher  10.5\nstudent  9\n"),
                         "model    loss\n-------------\nteacher  10.5\n...\n")

    def test_lines_may_be_broken_where_the_output_is_not(self):
        template = '{"a":1,...,\n"b":[2.5,...],...}\n'
        self.assertEqual(cut_samples.renewed(template, '{"a":-3,"x":0,"b":[1e-05,7],"c":null}\n'), '{"a":-3,...,\n"b":[1e-05,...],...}\n')

    def test_other_words_are_stale(self):
        self.assertIsNone(cut_samples.renewed("loss 5\n", "nll 5\n"))
        self.assertIsNone(cut_samples.renewed("loss 5\n", "loss 5\nkl 2\n"), "nothing says that a line is left out")
        self.assertIsNone(cut_samples.renewed("loss 5\n...\n", "time 3\nloss 5\nkl 2\n"))


class Renew(unittest.TestCase):
    def renew(self, text, run_dir="/none"):
        told = []
        return cut_samples.renew(text, SimpleNamespace(run_dir=Path(run_dir), program=Path("/none/retort")), told.append), told

    def test_runs_the_commands_of_a_block_and_the_command_before_it(self):
        text = "<!-- sample -->\n```\n$ echo a 1\na 5\n$ echo b 2\nb 6\n```\n\n<!-- sample: echo 7 -->\n```json\n3\n```\n"
        self.assertEqual(self.renew(text), (text.replace("a 5", "a 1").replace("b 6", "b 2").replace("\n3\n", "\n7\n"), []))

    def test_what_no_marker_names_stays(self):
        text = "```\n$ echo 1\n2\n```\n"
        self.assertEqual(self.renew(text), (text, []))

    def test_a_stale_sample_stays_and_is_told(self):
        text = "<!-- sample -->\n```\n$ echo b 1\na 5\n```\n"
        new, told = self.renew(text)
        self.assertEqual(new, text)
        self.assertIn("echo b 1\n  the sample is not what the command prints", told[0])

    def test_samples_of_a_run_need_the_run(self):
        text = "<!-- sample: cat runs/quickstart/recipe.json -->\n```\n1\n```\n"
        self.assertEqual(self.renew(text), (text, []))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "recipe.json").write_text("2\n")
            self.assertEqual(self.renew(text, folder), (text.replace("\n1\n", "\n2\n"), []))

    def test_every_marker_of_the_documents_stands_before_a_block(self):
        for name in cut_samples.DOCUMENTS:
            text = (REPOSITORY / name).read_text()
            self.assertEqual(text.count("<!-- sample"), len(cut_samples.SAMPLE.findall(text)), name)


if __name__ == "__main__":
    unittest.main()
