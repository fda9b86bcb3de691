#pragma once
// A run directory of made-up numbers, with names and texts that try to break out of the page.

#include <string>

#include "retort/base/files.h"
#include "support/temporary_directory.h"

namespace retort::report {

/// A run directory to be.
class RunFolder : public test::TemporaryDirectory {
 public:
  void write(const std::string& name, const std::string& content) const {
    base::make_directories((path() / name).parent_path());
    base::write_file_atomically(path() / name, content);
  }
};

/// Ends scripts, attributes and comments, and holds the line separators that old JavaScript chokes on.
inline const std::string kHostile = "</script><script>alert(1)</script><!--\"'&\u2028\u2029";

/// kHostile as it stands inside a JSON string.
inline const std::string kHostileJson = "</script><script>alert(1)</script><!--\\\"'&\\u2028\\u2029";

inline const char* const kEvaluation = R"({
  "kind": "evaluate", "context": 512, "teacher": "teacher", "models": [
    {"name": "teacher", "parameters": 5511168, "nonzero_parameters": 5511168, "file_bytes": 11030528, "dequantised_from": "Q4_1, Q8_0", "tokens_per_second": 21950.4,
     "sources": [{"name": "manuals-en", "tokens": 20000, "bytes": 61000, "nll": 3.3, "perplexity": 27.11, "bits_per_byte": 1.561, "kl": 0, "top1_agreement": 1}],
     "mean": {"nll": 3.3, "perplexity": 27.1126, "bits_per_byte": 1.5609, "kl": 0, "top1_agreement": 1, "recovery": 1},
     "generations": [{"prompt": "The package ", "text": "The package manager keeps a list."}]},
    {"name": "student", "parameters": 3306700, "nonzero_parameters": 2480025, "file_bytes": 6620000, "tokens_per_second": 34012,
     "sources": [{"name": "manuals-en", "tokens": 20000, "bytes": 61000, "nll": 3.52, "perplexity": 33.78, "bits_per_byte": 1.665, "kl": 0.2134, "top1_agreement": 0.742}],
     "mean": {"nll": 3.52, "perplexity": 33.7844, "bits_per_byte": 1.6650, "kl": 0.21338, "top1_agreement": 0.7421, "recovery": 0.80252},
     "generations": [{"prompt": "The package ", "text": "is installed."}]}]})";

inline void write_made_up_run(const RunFolder& run) {
  run.write("recipe.yaml", "version: 1\n# " + kHostile + "\n");
  run.write("recipe.json", R"({"device": "cpu", "stages": {
    "teacher": {"kind": "finetune", "from": "models/tiny"},
    "pruned": {"kind": "prune", "from": "teacher"},
    "sparse": {"kind": "sparsify", "from": "pruned"},
    ")" + kHostileJson + R"(": {"kind": "distill", "from": "sparse", "teacher": "teacher"},
    "scores": {"kind": "evaluate"}}})");
  run.write("provenance.json", R"({"starts": [{"retort": "0.0.9", "started": "2026-01-01T00:00:00Z"},
    {"retort": "0.1.0", "torch": "2.13.0", "started": "2026-01-02T03:04:05Z", "processor": "abacus", "host": ")" +
                                   kHostileJson + R"("}]})");
  run.write(
      "stages/teacher.json",
      R"({"kind": "finetune", "steps": 2, "tokens": 4096, "seconds": 75.2, "matrix_product_flops": 4e9, "phase_flops_per_token": {"student_forward": 1e6}, "operation_flops_per_token": {"product": 1e6},
    "final": {"step": 2, "tokens": 4096, "loss": 3.31, "held_out": {"manuals-en": 3.3}},
    "memory_plan": [{"what": "master weights", "bytes": 22044672}, {"what": ")" +
          kHostileJson + R"(", "bytes": 1000}],
    "memory_planned_bytes": 22045672, "peak_tensor_bytes": 21500000, "process_peak_bytes": 190000000})");
  run.write(
      "stages/pruned.json",
      R"({"kind": "prune", "parameters_before": 5511168, "parameters_target": 3306700, "parameters_after": 3306600,
    "width_before": 8, "kept": {"blocks": [0, 2], "channels": [[0, 1, 5, 7], [2, 3, 4, 6]]},
    "decisions": [
      {"step": 1, "action": "drop_block", "block": 1, "objective": 0.0512, "delta_log_perplexity": 0.0301, "kl": 0.0211,
       "parameters_removed": 600000, "score": 8.5e-8, "worst_domain": ")" +
          kHostileJson + R"(", "domains": {"a": 0.05},
       "candidates": [{"action": "drop_block", "block": 1, "objective": 0.0512, "parameters_removed": 600000, "score": 8.5e-8},
                      {"action": "narrow", "width": 6, "objective": 0.2, "parameters_removed": 500000, "score": 4e-7}]},
      {"step": 2, "action": "narrow", "width": 4, "objective": 0.21, "delta_log_perplexity": 0.1, "kl": 0.11,
       "parameters_removed": 1000000, "score": 2.1e-7, "worst_domain": "manuals-en", "candidates": []}]})");
  run.write(
      "stages/sparse.json",
      R"({"kind": "sparsify", "pattern": "2:4", "zeros_fraction": 0.5, "layers": [
    {"name": "model.layers.0.mlp.up_proj.weight", "rows": 4, "cols": 8, "dampening": 0.01, "loss": 12.5, "identity_residual": 1e-12, "kept_share_before": 0.9036, "kept_share_after": 0.916, "relative_error": 0.0712},
    {"name": ")" +
          kHostileJson +
          R"(", "rows": 4, "cols": 8, "dampening": 0.01, "loss": 2.5, "identity_residual": 1e-12, "relative_error": 0.05}]})");
  run.write("stages/scores.json", kEvaluation);
  const std::string hostile_stage = R"("stage": ")" + kHostileJson + R"(")";
  run.write(
      "metrics.jsonl",
      R"({"stage": "teacher", "step": 1, "tokens": 2048, "loss": 3.41, "gradient_norm": 1.2, "lr": 1e-4, "tokens_per_second": 900, "held_out": {"manuals-en": 3.4}})"
      "\n"
      R"({"stage": "teacher", "step": 2, "tokens": 4096, "loss": 3.31, "gradient_norm": 1.1, "lr": 5e-5, "tokens_per_second": 910, "phase_seconds": {"student_forward": 1.5, "update": 0.5}, "operation_seconds": {"product": 1.25, "norm": 0.25}})"
      "\n{" +
          hostile_stage +
          R"(, "step": 1, "tokens": 2048, "loss": 2.2, "parts": {"cross_entropy": 3.9, "kl_divergence": 0.9, ")" +
          kHostileJson +
          R"(": 0.3}, "held_out": {"manuals-en": 3.8}})"
          "\n{" +
          hostile_stage + R"(, "step": 2, "tokens": 4096, "lo)");
}

}  // namespace retort::report
