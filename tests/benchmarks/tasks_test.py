"""benchmarks/smollm2/tasks.py gives the log-likelihoods of transformers, with the begin-of-text token where a model adds one."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL = REPOSITORY / "models" / "europa-5m"
sys.path.insert(0, str(REPOSITORY / "benchmarks" / "smollm2"))

import tasks  # noqa: E402

REQUESTS = [("The Debian project is", " an association"), ("The Debian project is", " a group of people"), ("The package is", " installed"),
            ("Der Bericht des", " Ausschusses"), ("A file of the system cannot be", " read"), ("The package is", " not there")]
ADDS_BOS = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}}


class Tasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.tokenizer = AutoTokenizer.from_pretrained(MODEL)
        cls.model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def expected(self, prefix):
        sums = []
        for context, continuation in REQUESTS:
            ids = prefix + self.tokenizer(context + continuation, add_special_tokens=False).input_ids
            begin = len(prefix) + len(self.tokenizer(context, add_special_tokens=False).input_ids)
            with torch.no_grad():
                logs = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            sums.append(sum(logs[i - 1, ids[i]].item() for i in range(begin, len(ids))))
        return sums

    def compare(self, bos, prefix, model=MODEL):
        options = argparse.Namespace(device="cpu", program=os.environ["RETORT_PROGRAM"], bos=bos)
        found = tasks.log_likelihoods(options, str(model), REQUESTS, self.folder)
        for actual, wanted in zip(found, self.expected(prefix), strict=True):
            self.assertAlmostEqual(actual, wanted, delta=1e-3)

    def test_scores_without_the_token_where_the_tokenizer_adds_none(self):
        self.compare("model", [])
        self.compare("never", [])

    def test_scores_with_the_token_where_it_is_asked_for(self):
        self.compare("always", [0])

    def test_scores_with_the_token_where_the_tokenizer_adds_it(self):
        model = shutil.copytree(MODEL, self.folder / "adds_bos")
        tokenizer = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
        (model / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": ADDS_BOS}), encoding="utf-8")
        self.compare("model", [0], model)

    def test_takes_up_what_it_scored_before(self):
        words = [{"context": "The package", "continuation": "is"}, {"context": "A file of the", "continuation": "system"}]
        questions = [{"query": "The package is ", "choices": ["installed", "not there"], "gold": 0}]
        options = argparse.Namespace(device="cpu", program=os.environ["RETORT_PROGRAM"], bos="never", keep=self.folder / "kept.jsonl")
        first = tasks.scored_once(options, str(MODEL), words, questions)
        options.program = "/there/is/none"
        self.assertEqual(tasks.scored_once(options, str(MODEL), words, questions), first)
        with self.assertRaises(FileNotFoundError):
            tasks.scored_once(options, str(MODEL), words[::-1], questions)
        whole = options.keep.read_text(encoding="utf-8")
        options.keep.write_text(whole[:-40], encoding="utf-8")  # as a run that was killed leaves it
        with self.assertRaises(FileNotFoundError):
            tasks.scored_once(options, str(MODEL), words, questions)

    def test_counts_a_choice_as_right_by_its_sum_and_by_its_length(self):
        items = [{"choices": ["ab", "abcd"], "gold": 1}, {"choices": ["ab", "abcd"], "gold": 0}]
        scores = tasks.piqa([-2.0, -3.0, -1.0, -4.0], items)
        self.assertEqual((scores["acc"], scores["acc_norm"]), (0.5, 1.0))


if __name__ == "__main__":
    unittest.main()
