// Source: transformers 5.23.0, models/phi3: q, k, v lie in files as one matrix, and gate and up.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"rms_norm_eps", &Settings::rms_norm_eps, "1e-05"},
                         {"eos_token_id", &Settings::eos_token_id, "32000"},
                         {"pad_token_id", &Settings::pad_token_id, "32000"},
                         {"sliding_window", &Settings::sliding_window, "null"}};
constexpr TensorName kStored[] = {{Role::query, "self_attn.qkv_proj.weight"},
                                  {Role::key, "self_attn.qkv_proj.weight"},
                                  {Role::value, "self_attn.qkv_proj.weight"},
                                  {Role::gate, "mlp.gate_up_proj.weight"},
                                  {Role::up, "mlp.gate_up_proj.weight"}};
constexpr std::string_view kIgnored[] = {"resid_pdrop",  "embd_pdrop",    "attention_bias",    "mlp_bias",
                                         "lm_head_bias", "full_attn_mod", "interpolate_factor"};

const Family kPhi3{.architecture = "Phi3ForCausalLM",
                   .model_type = "phi3",
                   .models = "Phi-3, Phi-3.5, Phi-4, Phi-4-mini",
                   .keys = kKeys,
                   .partial_rotary = true,
                   .yarn_is_longrope = true,
                   .longrope_starts_anew = true,
                   .longrope_by_hidden = true,
                   .original_context = 4096,
                   .tokenizer_class_is_fixed = true,
                   .stored = kStored,
                   .ignored = kIgnored};

}  // namespace retort::architecture
