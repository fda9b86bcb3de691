#include "retort/recipe/suggestion.h"

#include <algorithm>

#include "retort/base/units.h"

namespace retort::recipe {
namespace {

struct Synonym {
  std::string_view written;
  std::string_view meant;
};

// Left the words of transformers, TRL, torchtune, axolotl, ModelOpt, llm-compressor and the papers.  The
// first that is allowed where the word stands is suggested.
constexpr Synonym kSynonyms[] = {
    {"learning_rate", "lr"},
    {"embedding_learning_rate", "embedding_lr"},
    {"adam_beta1", "beta1"},
    {"adam_beta2", "beta2"},
    {"adam_epsilon", "eps"},
    {"epsilon", "eps"},
    {"max_grad_norm", "clip_norm"},
    {"gradient_clipping", "clip_norm"},
    {"grad_clip", "clip_norm"},
    {"lr_scheduler_type", "schedule"},
    {"lr_scheduler", "schedule"},
    {"scheduler", "schedule"},
    {"warmup_ratio", "warmup_fraction"},
    {"min_lr_ratio", "final_lr_fraction"},
    {"optimizer", "optim"},
    {"optimiser", "optim"},
    {"batch_size", "sequences"},
    {"micro_batch_size", "sequences"},
    {"per_device_train_batch_size", "sequences"},
    {"gradient_accumulation_steps", "accumulate"},
    {"gradient_accumulation", "accumulate"},
    {"gradient_checkpointing", "recompute"},
    {"activation_checkpointing", "recompute"},
    {"seq_len", "sequence_length"},
    {"seq_length", "sequence_length"},
    {"max_length", "sequence_length"},
    {"max_seq_length", "sequence_length"},
    {"max_seq_len", "sequence_length"},
    {"context_length", "sequence_length"},
    {"block_size", "sequence_length"},
    {"save_steps", "checkpoint_every_steps"},
    {"save_total_limit", "keep_checkpoints"},
    {"eval_steps", "evaluate_every_steps"},
    {"max_tokens", "tokens"},
    {"num_tokens", "tokens"},
    {"max_steps", "tokens"},
    {"steps", "tokens"},
    {"epochs", "tokens"},
    {"num_train_epochs", "tokens"},
    {"num_samples", "calibration_tokens"},
    {"num_calibration_samples", "calibration_tokens"},
    {"model", "from"},
    {"student", "from"},
    {"model_name_or_path", "from"},
    {"teacher_model", "teacher"},
    {"dataset", "data"},
    {"datasets", "data"},
    {"losses", "loss"},
    {"dataset_text_field", "field"},
    {"text_field", "field"},
    {"text_column", "field"},
    {"mask_structure", "pattern"},
    {"sparsity", "target"},
    {"ratio", "parameters"},
    {"ratio", "target"},
    {"params", "parameters"},
    {"temp", "temperature"},
    {"tau", "temperature"},
    {"mlp", "channels"},
    {"intermediate_size", "channels"},
    {"ffn", "channels"},
    {"neurons", "channels"},
    {"attention_heads", "heads"},
    {"kv_heads", "heads"},
    {"layers", "blocks"},
    {"depth", "blocks"},
    {"hidden_size", "hidden"},
    {"type", "kind"},
    {"seeds", "seed"},
    {"precision", "dtype"},
    {"torch_dtype", "dtype"},
    {"bfloat16", "bf16"},
    {"float32", "fp32"},
    {"float", "fp32"},
    {"gpu", "cuda"},
    {"kl", "kl_divergence"},
    {"kld", "kl_divergence"},
    {"kl_div", "kl_divergence"},
    {"forward_kl", "kl_divergence"},
    {"reverse_kl", "kl_divergence"},
    {"logits", "kl_divergence"},
    {"jsd", "jensen_shannon"},
    {"gkd", "jensen_shannon"},
    {"tvd", "total_variation"},
    {"ce", "cross_entropy"},
    {"nll", "cross_entropy"},
    {"lm", "cross_entropy"},
    {"mse", "squarehead"},
    {"hidden_states", "squarehead"},
    {"sft", "finetune"},
    {"calibrate", "profile"},
    {"pretrain", "train"},
    {"kd", "distill"},
    {"distillation", "distill"},
    {"heal", "distill"},
    {"eval", "evaluate"},
    {"sparse", "sparsify"},
    {"sparsegpt", "sparsify"},
};

std::string_view last_part(std::string_view dotted) {
  const auto dot = dotted.rfind('.');
  return dot == dotted.npos ? dotted : dotted.substr(dot + 1);
}

// The key of this name, which may stand in a map of its own; those right here come first.
std::string named(std::string_view word, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return std::string(word);
  for (const std::string& one : known)
    if (last_part(one) == word) return one;
  return "";
}

}  // namespace

std::string meant(std::string_view written, const std::vector<std::string>& known) {
  if (std::string elsewhere = named(written, known); !elsewhere.empty()) return elsewhere;
  for (const auto& synonym : kSynonyms)
    if (synonym.written == written)
      if (std::string found = named(synonym.meant, known); !found.empty()) return found;
  std::vector<std::string> here;
  for (const std::string& one : known)
    if (one.find('.') == one.npos) here.push_back(one);
  return base::nearest(written, here);
}

std::string did_you_mean(std::string_view written, const std::vector<std::string>& known) {
  const std::string near = meant(written, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace retort::recipe
