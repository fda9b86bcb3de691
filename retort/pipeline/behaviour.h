#pragma once
// What a model makes of texts that come with the program: ids, logits, a greedy answer.  Two models that
// agree in them are one model in two forms.
//
// Shape legend: N tokens of a text, V vocabulary.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/pipeline/pipeline.h"

namespace retort::pipeline {

struct Behaviour {
  std::vector<std::string> own_texts;          ///< with the tokenizer's added tokens, behind the fixed texts
  std::string chat;                            ///< the last text: a conversation in its template; or none
  std::vector<std::vector<std::int32_t>> ids;  ///< by its own tokenizer, of each text
  std::vector<at::Tensor> logits_NV;           ///< of each text, float32
  double nll = 0;                              ///< of the fixed texts, nats a token
  std::vector<std::int32_t> greedy_ids;        ///< that continue the prompt
};

/// Computes in float32, whatever the request says, of a model that is loaded once.  Texts are those of
/// `like`, where given, and logits of its ids, where it has some.  Throws MemoryError before the model is
/// loaded, ModelError.
Behaviour behaviour_of(const ModelRequest& request, const Behaviour* like, record::Observer& observer);

/// {"tokens": {"texts", "equal", "with_added_tokens", "chat"}, "logits": {"tokens", "largest_difference",
/// "mean_kl", "top1_agreement"}, "greedy": {"tokens", "equal"}, "perplexity": {"source", "written"}}
base::Json compared(const Behaviour& source, const Behaviour& written);

/// In words what of texts or ids is not equal; empty: all is.
std::string first_difference(const Behaviour& source, const Behaviour& written);

/// What a certificate keeps: texts, ids, perplexity and the greedy answer.
base::Json recorded(const Behaviour& behaviour);
/// The texts of that.
Behaviour recorded_texts(const base::Json& recorded);
/// Throws ValidationError, which names `where`, unless a model still does what was recorded of it.  Other
/// processors round otherwise: a perplexity may differ by 1e-3 of itself, and an answer from its second half
/// on.
void require_as_recorded(const Behaviour& behaviour, const base::Json& recorded, const std::string& where);

}  // namespace retort::pipeline
