#!/usr/bin/env python3
"""transformers loads the models that Retort saved and computes the same logits as from the originals.

The argument is the directory of saved models, one per case of the oracle module `model`.
"""

import json
import os
import sys
import unittest
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

CASES = Path(os.environ["RETORT_ORACLES"]) / "model" / "cases"
SAVED = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None


class TransformersLoads(unittest.TestCase):
    def test_every_case_was_saved(self):
        self.assertEqual(sorted(p.name for p in SAVED.iterdir()), sorted(p.name for p in CASES.iterdir()))

    def test_logits_are_those_of_the_original(self):
        for folder in sorted(CASES.iterdir()):
            with self.subTest(folder.name):
                case = json.loads((folder / "case.json").read_text())
                original = AutoModelForCausalLM.from_pretrained(case["directory"], dtype="auto")
                model, report = AutoModelForCausalLM.from_pretrained(SAVED / folder.name, dtype="auto",
                                                                     output_loading_info=True)
                self.assertFalse(any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report)
                self.assertEqual(model.dtype, original.dtype)
                for key in ("tie_word_embeddings", "num_key_value_heads", "max_position_embeddings", "eos_token_id"):
                    self.assertEqual(getattr(model.config, key), getattr(original.config, key), key)
                # Not model.float(): some classes have constants that were rounded to the type of the weights.
                model = AutoModelForCausalLM.from_pretrained(SAVED / folder.name, dtype=torch.float32).eval()
                starts, ids = case["starts"], case["ids"]
                with torch.no_grad():
                    logits = torch.cat([model(torch.tensor([ids[a:b]])).logits[0] for a, b in zip(starts, starts[1:])])
                self.assertTrue(torch.equal(logits, load_file(folder / "logits.safetensors")["logits"]))

    def test_the_tokenizer_travels_with_the_model(self):
        for folder in sorted(CASES.iterdir()):
            original = Path(json.loads((folder / "case.json").read_text())["directory"])
            if not (original / "tokenizer.json").is_file():
                continue
            with self.subTest(folder.name):
                texts = ["Once upon a time, there was a small house.", "Größe 42 — ça va?"]
                ids = [AutoTokenizer.from_pretrained(path)(texts)["input_ids"] for path in (original, SAVED / folder.name)]
                self.assertEqual(ids[0], ids[1])


if __name__ == "__main__":
    unittest.main()
