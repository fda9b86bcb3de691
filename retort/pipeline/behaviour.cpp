#include "retort/pipeline/behaviour.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/eval/generate_texts.h"
#include "retort/eval/memory_plan.h"
#include "retort/eval/score.h"
#include "retort/io/quote.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/text_model.h"
#include "retort/publish/proof_texts.h"

namespace retort::pipeline {
namespace {

using base::Json;

constexpr const char* kPrompt = "The capital of France is";
constexpr std::int64_t kGreedyTokens = 64;
// Of logits that are compared in float64: a vocabulary may have 262144 tokens.
constexpr std::int64_t kRowsAtOnce = 4;
// Both as they are, as logarithms of shares, and what becomes of them.
constexpr std::int64_t kDoublesOfALogit = 7;
// Of perplexities that two processors compute.
constexpr double kPerplexityTolerance = 1e-3;

// Of the most likely tokens, without what a model's files say of sampling.
constexpr SamplingRequest kGreedy{
    .temperature = 0.0, .top_p = 1.0, .min_p = 0.0, .repetition_penalty = 1.0, .top_k = 0};

ModelRequest in_float32(const ModelRequest& request) {
  ModelRequest own = request;
  own.dtype = "fp32";
  return own;
}

eval::TextsOptions greedy_options(const TextModel& model) {
  return {.sampling = model.sampling,
          .max_new_tokens = kGreedyTokens,
          .texts_at_once = 1,
          .stop_ids = model.stop_ids,
          .ids_without_token = model.ids_without_token};
}

std::vector<eval::Prompt> greedy_prompt(const TextModel& model) {
  return {{model.text.prompt_ids(kPrompt), 0}};
}

std::vector<std::int32_t> greedy_ids(const TextModel& model, shard::Parameters& parameters) {
  const auto prompts = greedy_prompt(model);
  std::vector<std::int32_t> ids;
  const auto done = [&](std::size_t, const eval::Generation& made) {
    ids.assign(made.ids.begin() + made.prompt_tokens, made.ids.end());
  };
  eval::generate_texts(parameters, prompts, greedy_options(model), {.done = done});
  return ids;
}

// Few rows at a time: a vocabulary is long, and they are float64.
double sum_of_nll(const at::Tensor& logits_NV, std::span<const std::int32_t> ids) {
  const auto count = std::ssize(ids) - 1;
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += kRowsAtOnce) {
    const auto rows = std::min(kRowsAtOnce, count - first);
    const auto targets = model::index_tensor(
        ids.subspan(static_cast<std::size_t>(first) + 1, static_cast<std::size_t>(rows)), logits_NV.device());
    const auto log_shares = at::log_softmax(logits_NV.narrow(0, first, rows).to(at::kDouble), 1);
    sum -= log_shares.gather(1, targets.unsqueeze(1)).sum().item<double>();
  }
  return sum;
}

// Logits of each text, and the mean negative log-likelihood of those that all models read.
void score(shard::Parameters& parameters, at::Device device, std::span<const std::vector<std::int32_t>> texts,
           Behaviour& behaviour) {
  const auto& config = parameters.config();
  const auto& layout = parameters.layout();
  std::vector<at::Tensor> hidden;
  for (const auto& ids : texts)
    hidden.push_back(eval::forward_hidden(
        parameters, model::index_tensor(ids, device),
        model::make_token_layout(config, {0, static_cast<std::int64_t>(ids.size())}, device)));
  const eval::HeadScorer head(config, layout, parameters.acquire(layout.head_unit()));
  std::int64_t targets = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    behaviour.logits_NV.push_back(head.logits(hidden[i]).to(at::kCPU, at::kFloat));
    if (i >= publish::fixed_texts().size()) continue;
    behaviour.nll += sum_of_nll(behaviour.logits_NV.back(), texts[i]);
    targets += std::ssize(texts[i]) - 1;
  }
  behaviour.nll /= static_cast<double>(targets);
}

// Of the texts, by the model's own tokenizer; a conversation has its special tokens already.
std::vector<std::vector<std::int32_t>> ids_of(const Behaviour& behaviour, const ModelText& text) {
  std::vector<std::vector<std::int32_t>> ids;
  for (const char* words : publish::fixed_texts()) ids.push_back(text.prompt_ids(words));
  for (const auto& words : behaviour.own_texts) ids.push_back(text.prompt_ids(words));
  if (!behaviour.chat.empty()) ids.push_back(text.tokenizer.encode(behaviour.chat, false));
  return ids;
}

// A template may name tokens that the model has no rows for.
bool has_rows(const ModelText& text, const std::string& chat) {
  return std::ranges::all_of(text.tokenizer.encode(chat, false),
                             [&](std::int32_t id) { return id < text.rows; });
}

// Weights and the larger of both works, beside the logits that are kept of two models.
shard::MemoryPlan plan_of(const TextModel& model, std::span<const std::vector<std::int32_t>> texts) {
  const auto path = ops::path_of(model.device);
  const auto prompts = greedy_prompt(model);
  std::int64_t longest = 0, tokens = 0;
  for (const auto& ids : texts) {
    longest = std::max(longest, std::ssize(ids));
    tokens += std::ssize(ids);
  }
  auto plan = eval::plan_scoring(model.config, nullptr, model.item_bytes(), longest, path);
  auto greedy = eval::plan_texts(model.config, model.item_bytes(), prompts, greedy_options(model), path,
                                 eval::WeightsFrom::memory);
  const auto& vocabulary = model.config.vocab_size;
  const auto all_hidden = tokens * model.config.hidden_size * model.item_bytes();
  plan.items.push_back({"hidden states of the texts", all_hidden});
  if (greedy.total_bytes() > plan.total_bytes()) plan.items = greedy.items;
  plan.items.push_back(
      {"logits of the texts, of both models", 2 * tokens * vocabulary * std::int64_t{sizeof(float)}});
  plan.items.push_back({"logits that are compared, in float64",
                        kDoublesOfALogit * kRowsAtOnce * vocabulary * std::int64_t{sizeof(double)}});
  plan.advice = "use a machine with more memory, or --device cpu";
  return plan;
}

// Ids that both share from the beginning on.
template <typename Ids>
std::int64_t equal_ids(const Ids& a, const Ids& b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

}  // namespace

Behaviour behaviour_of(const ModelRequest& request, const Behaviour* like, record::Observer& observer) {
  const TextModel model(in_float32(request), kGreedy, observer);
  Behaviour behaviour;
  behaviour.chat = publish::chat_text(model.path);
  behaviour.own_texts =
      like ? like->own_texts : publish::texts_of_added_tokens(model.text.tokenizer, model.text.rows);
  if ((like && like->chat.empty()) || !has_rows(model.text, behaviour.chat)) behaviour.chat.clear();
  behaviour.ids = ids_of(behaviour, model.text);
  const auto& texts = like && !like->ids.empty() ? like->ids : behaviour.ids;
  shard::require_fits(plan_of(model, texts), available_bytes(request.available_memory, model.device));
  const auto parameters = shard::resident_parameters(
      model::load_weights(request.model, at::kFloat, model.device), shard::Use::frozen, at::kFloat);
  score(*parameters, model.device, texts, behaviour);
  behaviour.greedy_ids = greedy_ids(model, *parameters);
  return behaviour;
}

Json compared(const Behaviour& source, const Behaviour& written) {
  double largest = 0, kl = 0;
  std::int64_t tokens = 0, agreed = 0;
  for (std::size_t i = 0; i < source.logits_NV.size(); ++i) {
    const auto rows = source.logits_NV[i].split(kRowsAtOnce),
               theirs = written.logits_NV[i].split(kRowsAtOnce);
    for (std::size_t part = 0; part < rows.size(); ++part) {
      const auto &a = rows[part], &b = theirs[part];
      largest = std::max(largest, (a - b).abs().max().item<double>());
      const auto log_a = at::log_softmax(a.to(at::kDouble), 1), log_b = at::log_softmax(b.to(at::kDouble), 1);
      kl += (log_a.exp() * (log_a - log_b)).sum().item<double>();
      agreed += (a.argmax(1) == b.argmax(1)).sum().item<std::int64_t>();
      tokens += a.size(0);
    }
  }
  const auto count = static_cast<double>(tokens);
  return {
      {"tokens",
       {{"texts", source.ids.size()},
        {"equal", source.ids == written.ids && source.chat == written.chat},
        {"with_added_tokens", source.own_texts.size()},
        {"chat", !source.chat.empty()}}},
      {"logits",
       {{"tokens", tokens},
        {"largest_difference", largest},
        {"mean_kl", kl / count},
        {"top1_agreement", static_cast<double>(agreed) / count}}},
      {"greedy",
       {{"tokens", source.greedy_ids.size()}, {"equal", equal_ids(source.greedy_ids, written.greedy_ids)}}},
      {"perplexity", {{"source", std::exp(source.nll)}, {"written", std::exp(written.nll)}}}};
}

Json recorded(const Behaviour& behaviour) {
  return {{"ids", behaviour.ids},   {"texts", behaviour.own_texts},
          {"chat", behaviour.chat}, {"perplexity", std::exp(behaviour.nll)},
          {"prompt", kPrompt},      {"greedy_ids", behaviour.greedy_ids}};
}

Behaviour recorded_texts(const Json& recorded) {
  Behaviour behaviour;
  behaviour.own_texts = recorded.value("texts", std::vector<std::string>{});
  behaviour.chat = recorded.value("chat", "");
  return behaviour;
}

std::string first_difference(const Behaviour& source, const Behaviour& written) {
  if (source.chat != written.chat) return "the text of a conversation";
  const auto fixed = publish::fixed_texts();
  for (std::size_t i = 0; i < source.ids.size(); ++i) {
    if (source.ids[i] == written.ids[i]) continue;
    if (i < fixed.size()) return base::join("the ids of ", io::quote(fixed[i]));
    const std::size_t own = i - fixed.size();
    return own < source.own_texts.size() ? base::join("the ids of ", io::quote(source.own_texts[own]))
                                         : "the ids of a conversation";
  }
  return "";
}

void require_as_recorded(const Behaviour& behaviour, const Json& recorded, const std::string& where) {
  const auto as_then = [&](bool same, const char* what) {
    base::require<base::ValidationError>(
        same, where, ": ", what,
        " other than those that were certified; export the model again, or use the "
        "version of Retort that wrote it.");
  };
  as_then(recorded.value("chat", "") == behaviour.chat, "the chat template gives a text");
  as_then(recorded["ids"] == Json(behaviour.ids), "the tokenizer gives ids");
  const double then = recorded["perplexity"], now = std::exp(behaviour.nll);
  as_then(std::abs(now - then) <= kPerplexityTolerance * then, "texts have probabilities");
  const auto answer = recorded["greedy_ids"].get<std::vector<std::int32_t>>();
  as_then(equal_ids(behaviour.greedy_ids, answer) * 2 >= std::ssize(answer), "a greedy answer has tokens");
}

}  // namespace retort::pipeline
