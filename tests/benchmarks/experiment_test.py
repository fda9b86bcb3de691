"""benchmarks/experiment: the driver runs methods to their results, goes on after a kill to the same numbers, refuses sets that
overlap; the documents are dealt out disjoint; intervals, ranks and verdicts are what they should be."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "benchmarks" / "experiment"
sys.path.insert(0, str(FOLDER))

import archive  # noqa: E402
import documents  # noqa: E402
import paired  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402

WORDS = "the package system file of a user and to install debian can be is run with server option value name list".split()


def made_documents(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=220)) for _ in range(count)]


class Documents(unittest.TestCase):
    def test_sets_are_disjoint_although_documents_repeat(self):
        texts = made_documents(400)
        texts[10] = texts[49]  # a copy of a test document
        dealt = documents.deal({"a": texts, "b": texts[:100] + made_documents(100, 1)}, test_every=50)
        owner = {}
        for sets in dealt.values():
            for name, members in sets.items():
                for text in members:
                    self.assertEqual(owner.setdefault(documents.key(text), name), name)
        self.assertEqual(dealt["a"]["test"], texts[49::50])
        self.assertGreater(len(dealt["a"]["search"]), 10)
        self.assertGreater(len(dealt["a"]["selection"]), 5)
        self.assertGreater(len(dealt["a"]["train"]), 250)

    def test_an_overlap_of_the_files_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            documents.write(folder, documents.deal({"a": made_documents(300)}, test_every=50), 5, 1000)
            documents.check(folder, ["a"])
            stolen = documents.read(documents.piece(folder, "test", "a"))[0]  # cut; in training it is whole
            with documents.piece(folder, "train", "a").open("a") as train:
                train.write(json.dumps({"text": stolen + " and more"}) + "\n")
            with self.assertRaisesRegex(documents.Refused, "test/a.jsonl and .*train/a.jsonl have 1 documents in common"):
                documents.check(folder, ["a"])


class Numbers(unittest.TestCase):
    def test_kendall_tau(self):
        self.assertEqual(paired.kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]), 1)
        self.assertEqual(paired.kendall_tau([1, 2, 3], [3, 2, 1]), -1)
        self.assertAlmostEqual(paired.kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 4 / 6)
        self.assertAlmostEqual(paired.kendall_tau([1, 2, 2, 3], [1, 2, 3, 4]), 5 / (5 * 6) ** 0.5)
        self.assertIsNone(paired.kendall_tau([1, 1], [1, 2]))

    def test_interval_is_paired_and_covers_the_truth(self):
        rng = random.Random(1)
        scores = {"a": [[100, rng.gauss(400, 80)] for _ in range(60)], "b": [[50, rng.gauss(150, 40)] for _ in range(60)]}
        worse = {source: [[n, loss + 0.02 * n + rng.gauss(0, 0.5)] for n, loss in rows] for source, rows in scores.items()}
        mean, (low, high) = paired.gap([(worse, scores), (worse, scores)])
        self.assertLess(low, 0.02)
        self.assertLess(0.02, high)
        self.assertLess(high - low, 0.01, "documents differ by much more than the pairs do")
        self.assertAlmostEqual(mean, 0.02, delta=0.005)
        self.assertEqual(paired.gap([(scores, scores)]), (0, None))  # equal documents

    def test_without_eight_documents_there_is_no_interval(self):
        scores = {"a": [[100, 400 + i] for i in range(7)]}
        worse = {"a": [[100, 410 + 2 * i] for i in range(7)]}
        self.assertEqual(paired.written(*paired.gap([(worse, scores)])), "+0.1300 [–]")

    def test_verdicts(self):
        self.assertEqual(table.verdict([0.02, 0.011, 0.03, 0.001, 0.02]), "win")
        self.assertEqual(table.verdict([0.02, 0.02, 0.03, -0.001, 0.02]), "tie")
        self.assertEqual(table.verdict([0.009] * 5), "tie")
        self.assertEqual(table.verdict([-0.02] * 5), "loss")


class Driver(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.text = Path(self.folder.name) / "en.jsonl"
        self.text.write_text("".join(json.dumps({"text": text}) + "\n" for text in made_documents(300)))

    def command(self, out):
        return [sys.executable, "-B", str(FOLDER / "run.py"), "--program", os.environ["RETORT_PROGRAM"], "--out", str(out), "--text", str(self.text),
                "--only", "europa-5m/per_layer/keep-0.6", "--methods", "random", "influence", "--seeds", "1", "--calibration-tokens", "1024",
                "--budget-tokens", "4k", "--distill-tokens", "4096", "--dtype", "fp32", "--jobs", "2"]

    def results(self, out):
        found = {}
        for path in sorted(out.glob("*/*/*/*/*/result.json")):
            result = json.loads(path.read_text())
            found[result["method"]] = (result["kept"], result["search"]["objective"], result["before"], result["after"])
        return found

    def interrupted(self, out, number, lines):
        """The driver's exit code when a signal comes after so many lines of its first search."""
        journal = out / "europa-5m/per_layer/keep-0.6/random/seed-1/run/checkpoints/pruned/search.jsonl"
        with subprocess.Popen(self.command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
            for _ in range(6000):
                if journal.exists() and journal.read_text().count("\n") >= lines or driver.poll() is not None:
                    break
                time.sleep(0.01)
            self.assertIsNone(driver.poll(), "it is still at work when it is interrupted")
            driver.send_signal(number)
            return driver.wait(timeout=120)

    def test_children_are_asked_to_stop_once(self):
        """The second signal would end them before they have saved."""
        options = unittest.mock.Mock(out=Path(self.folder.name))
        experiment, child = run.Experiment(options), unittest.mock.Mock()
        experiment.children.add(child)
        experiment.on_signal()  # the child is waited for
        experiment.stop()
        child.terminate.assert_called_once_with()
        experiment.children.clear()
        with self.assertRaises(run.Stopped):
            experiment.on_signal()

    def test_dtype_auto_is_what_the_program_decides(self):
        options = unittest.mock.Mock(out=Path(self.folder.name), dtype="auto", text=[self.text], distill_tokens=4096, program=os.environ["RETORT_PROGRAM"])
        experiment = run.Experiment(options)
        experiment.runs = [unittest.mock.Mock(model="europa-5m")]
        self.assertIn(experiment.dtype(), ("bf16", "fp32"))
        experiment.call = lambda arguments, log: self.fail("it is asked once")
        self.assertIn(experiment.dtype(), ("bf16", "fp32"))
        (experiment.out / "experiment.json").write_text('{"dtype": "bf16", "models": {}}')
        options.dtype = "auto"
        self.assertEqual(experiment.dtype(), "bf16", "a machine that goes on with it computes as it began")

    def test_a_killed_experiment_ends_with_the_same_numbers(self):
        whole, killed = Path(self.folder.name) / "whole", Path(self.folder.name) / "killed"
        done = subprocess.run(self.command(whole), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = self.results(whole)
        self.assertEqual(set(expected), {"random", "influence"})

        early = subprocess.run([*self.command(killed), "--hours", "1e-9"], capture_output=True, text=True, timeout=300)
        self.assertEqual((early.returncode, early.stdout), (85, ""), "no run is begun after its time")
        self.assertIn("the same command goes on", early.stderr)
        self.assertEqual(self.interrupted(killed, signal.SIGTERM, lines=2), 85)
        self.assertEqual(self.interrupted(killed, signal.SIGKILL, lines=3), -signal.SIGKILL)
        self.assertNotIn("random", self.results(killed))
        for _ in range(3000):  # the child ends with its parent, and gives its directory back
            done = subprocess.run(self.command(killed), capture_output=True, text=True, timeout=300)
            if "works in this directory" not in done.stderr:
                break
            time.sleep(0.1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.results(killed), expected)

        tables = subprocess.run([sys.executable, "-B", str(FOLDER / "table.py"), str(killed)], capture_output=True, text=True, timeout=60)
        self.assertEqual(tables.returncode, 0, tables.stderr)
        self.assertIn("| random | 1 |", tables.stdout)

        with self.assertRaisesRegex(archive.Refused, "found no results"):
            archive.pack(Path(self.folder.name) / "none", Path(self.folder.name) / "none.xz")
        for name in ("/etc/experiment.json", "../experiment.json", "a/experiment.json", "../a/keep-1/b/seed-1/result.json", "other.json"):
            self.assertFalse(archive.is_part(name), name)
        archived = Path(self.folder.name) / "archived"
        archive.pack(killed, Path(self.folder.name) / "results.xz")
        archive.unpack(Path(self.folder.name) / "results.xz", archived)
        self.assertEqual(self.results(archived), expected)
        listed = subprocess.run([*self.command(archived), "--list"], capture_output=True, text=True, timeout=60)
        self.assertEqual(listed.stdout.count("done"), 2, listed.stderr)
        again = subprocess.run([sys.executable, "-B", str(FOLDER / "table.py"), str(archived)], capture_output=True, text=True, timeout=60)
        self.assertEqual(again.stdout, tables.stdout)

        other = subprocess.run([*self.command(killed), "--distill-tokens", "8192"], capture_output=True, text=True, timeout=60)
        self.assertIn("was begun with distill_tokens 4096, found 8192", other.stderr)


if __name__ == "__main__":
    unittest.main()
