// Source: transformers 5.23.0, models/ministral3.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"num_key_value_heads", &Settings::num_key_value_heads, "8"},
                         {"head_dim", &Settings::head_dim, "128"},
                         {"rms_norm_eps", &Settings::rms_norm_eps, "1e-05"},
                         {"pad_token_id", &Settings::pad_token_id, "11"},
                         {"sliding_window", &Settings::sliding_window, "null"}};

const Family kMinistral3{.architecture = "Ministral3ForCausalLM",
                         .model_type = "ministral3",
                         .models = "Ministral 3",
                         .keys = kKeys,
                         .rope = R"({"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
                "original_max_position_embeddings": 16384, "beta_fast": 32.0, "beta_slow": 1.0,
                "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1})",
                         .queries_grow = true,
                         .tokenizer_class_is_fixed = true,
                         .cuts_by_tekken = true};

}  // namespace retort::architecture
