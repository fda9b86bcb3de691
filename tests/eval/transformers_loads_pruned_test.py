#!/usr/bin/env python3
"""transformers loads every shape that uniform pruning reaches, computes the same logits, and loads others only by their code,
or padded until their blocks are alike.

The argument is the directory of models that the test program of prune saved: uniform/<n>/, own/<name>/, gemma3/<name>/,
families/<name>/ and padded/<name>/, each with model/, case.json (ids, tolerance) and logits.safetensors, Retort's logits of the
saved model, and in padded/ of the model before it was padded.
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

modules = tempfile.TemporaryDirectory()  # where transformers copies a model's code to
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_MODULES_CACHE=modules.name)

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM, MistralForCausalLM

SAVED = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
SAME_IN_EVERY_FAMILY = ("bos_token_id", "eos_token_id", "pad_token_id", "vocab_size", "max_position_embeddings", "hidden_act",
                        "initializer_range", "rope_parameters", "attention_dropout", "dtype", "head_dim")


def folders(kind):
    return sorted((SAVED / kind).iterdir())


class UniformShapes(unittest.TestCase):
    def test_all_load_and_compute_the_same_logits(self):
        kinds = {"llama": 0, "mistral": 0}
        for folder in folders("uniform"):
            with self.subTest(folder.name):
                case = json.loads((folder / "case.json").read_text())
                model, report = AutoModelForCausalLM.from_pretrained(folder / "model", dtype="auto",
                                                                     output_loading_info=True)
                self.assertFalse(any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report)
                with torch.no_grad():
                    logits = model.eval()(torch.tensor([case["ids"]])).logits[0]
                difference = (logits - load_file(folder / "logits.safetensors")["logits"]).abs().max().item()
                self.assertLessEqual(difference, case["tolerance"])
                config = model.config
                divides = config.hidden_size % config.num_attention_heads == 0
                self.assertEqual(config.model_type, "llama" if divides else "mistral")
                kinds[config.model_type] += 1
        self.assertGreater(min(kinds.values()), 10, kinds)

    def test_a_mistral_says_all_that_the_llama_said(self):
        for tied in (True, False):
            configs = [AutoConfig.from_pretrained(folder / "model") for folder in folders("uniform")]
            configs = [config for config in configs if config.tie_word_embeddings == tied]
            llama = next(config for config in configs if config.model_type == "llama")
            mistrals = [config for config in configs if config.model_type == "mistral"]
            self.assertTrue(mistrals)
            for mistral in mistrals:
                self.assertIsNone(mistral.sliding_window)
                for key in SAME_IN_EVERY_FAMILY:
                    self.assertEqual(getattr(mistral, key), getattr(llama, key), key)
                # Fewer hidden features make eps larger in the same proportion.
                self.assertAlmostEqual(mistral.rms_norm_eps * mistral.hidden_size, llama.rms_norm_eps * llama.hidden_size,
                                       delta=1e-12)


class BlocksThatDiffer(unittest.TestCase):
    def test_the_code_beside_them_computes_the_same_logits(self):
        for folder in folders("own") + folders("gemma3"):
            with self.subTest(folder.name), tempfile.TemporaryDirectory() as again:
                case = json.loads((folder / "case.json").read_text())
                ids = torch.tensor([case["ids"]])
                expected = load_file(folder / "logits.safetensors")["logits"]
                model, report = AutoModelForCausalLM.from_pretrained(folder / "model", dtype="auto", trust_remote_code=True,
                                                                     output_loading_info=True)
                self.assertFalse(any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report)
                model.save_pretrained(again)
                saved = AutoModelForCausalLM.from_pretrained(again, dtype="auto", trust_remote_code=True)
                with torch.no_grad():
                    for one in (model, saved):
                        difference = (one.eval()(ids).logits[0] - expected).abs().max().item()
                        self.assertLessEqual(difference, case["tolerance"])
                    texts = [model.generate(ids[:, :6], max_new_tokens=8, do_sample=False, use_cache=cached).tolist()
                             for cached in (True, False)]
                self.assertEqual(*texts)

    def test_no_class_loads_them_without_it(self):
        self.assertEqual(len(folders("own")), 5)
        for folder in folders("own"):
            for loader in (AutoModelForCausalLM, LlamaForCausalLM, MistralForCausalLM):
                with self.subTest(folder.name, loader=loader.__name__), self.assertRaises(Exception):
                    loader.from_pretrained(folder / "model", trust_remote_code=False)

    def test_heads_that_do_not_divide_the_hidden_size_are_told_by_the_code_alone(self):
        self.assertEqual([folder.name for folder in folders("gemma3")], ["all_layers", "one_layer"])
        for folder in folders("gemma3"):
            config = json.loads((folder / "model" / "config.json").read_text())
            self.assertEqual(config["architectures"], ["RetortForCausalLM"])
            self.assertIn(6, config["num_attention_heads"])

    def test_the_refusal_says_what_to_do(self):
        for folder in folders("own"):
            with self.assertRaisesRegex(ValueError, "trust_remote_code=True"):
                AutoModelForCausalLM.from_pretrained(folder / "model", trust_remote_code=False)


class Families(unittest.TestCase):
    def test_transformers_computes_the_same_logits_of_every_family_without_some_parts(self):
        self.assertGreater(len(folders("families")), 100)
        for folder in folders("families"):
            with self.subTest(folder.name):
                case = json.loads((folder / "case.json").read_text())
                ids = torch.tensor([case["ids"]])
                model, report = AutoModelForCausalLM.from_pretrained(folder / "model", dtype="auto", trust_remote_code=True,
                                                                     output_loading_info=True)
                self.assertFalse(any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report)
                with torch.no_grad():
                    difference = (model.eval()(ids).logits[0] - load_file(folder / "logits.safetensors")["logits"]).abs().max()
                self.assertLessEqual(difference.item(), case["tolerance"])


class Padded(unittest.TestCase):
    def test_stock_classes_compute_what_the_model_did_whose_blocks_differ(self):
        kinds = set()
        for folder in folders("padded"):
            with self.subTest(folder.name):
                case = json.loads((folder / "case.json").read_text())
                self.assertFalse(list((folder / "model").glob("*.py")))
                model, report = AutoModelForCausalLM.from_pretrained(folder / "model", dtype="auto", output_loading_info=True)
                self.assertFalse(any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report)
                with torch.no_grad():
                    logits = model.eval()(torch.tensor([case["ids"]])).logits[0]
                difference = (logits - load_file(folder / "logits.safetensors")["logits"]).abs().max().item()
                self.assertLessEqual(difference, case["tolerance"])
                kinds.add(folder.name.split("_")[0])
        self.assertEqual(len(kinds), 13, kinds)


if __name__ == "__main__":
    unittest.main()
