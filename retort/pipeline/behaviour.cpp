#include "retort/pipeline/behaviour.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "retort/base/error.h"
#include "retort/eval/memory_plan.h"
#include "retort/eval/score.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/inspect_model.h"

namespace retort::pipeline {
namespace {

using base::Json;

// Prose, digits, code, accents, other scripts, signs of several code points, and white space of every kind.
constexpr std::array kTexts{
    "The river rose in the night. By morning the lower road was gone, and the post came by boat: two "
    "letters, a "
    "newspaper three days old, and a parcel of seeds that nobody had ordered.",
    "In 1969 about 600 million people watched; 3.14159 is not 22/7, and 1,000,000 - 999,999 = 1.",
    "def mean(values):\n    total = 0.0\n    for v in values:\n        total += v\n    return total / "
    "len(values)  # "
    "fails on []\n",
    "Żółw i łoś spotkały się w Łodzi; l'été, où êtes-vous? Größe, straße, año, coração, ψυχή, въпрос.",
    "Das Wasser kocht bei hundert Grad, sagt man. Wer es genau wissen will, misst den Luftdruck und rechnet "
    "nach.",
    "水は高きより低きに流れる。我在北京吃苹果。한국어도 씁니다.",
    "I'm sure they'll say it's 'fine' — we've heard that... haven't we?! (Yes/No) [x] {y} <z> @home #1 $5 "
    "100%",
    "👩‍👩‍👧 🇪🇺 ✅ naïve café e\u0301 \u00a0nbsp",
    "  two spaces\t\ttabs\n\n\nthree breaks   and   more    \r\nend ",
};
constexpr const char* kPrompt = "The capital of France is";
constexpr std::int64_t kGreedyTokens = 64;
// Of logits that are compared in float64: a vocabulary may have 262144 tokens.
constexpr std::int64_t kRowsAtOnce = 16;
// Of perplexities that two processors compute.
constexpr double kPerplexityTolerance = 1e-3;

ModelRequest in_float32(const ModelRequest& request) {
  ModelRequest own = request;
  own.dtype = "fp32";
  return own;
}

std::vector<std::int32_t> greedy_ids(const ModelRequest& request) {
  record::Observer observer;  // what is to be said of the model was said
  GenerateRequest greedy{.model = in_float32(request), .text = {}, .prompt = kPrompt};
  greedy.text.sampling = {
      .temperature = 0.0, .top_p = 1.0, .min_p = 0.0, .repetition_penalty = 1.0, .top_k = 0};
  greedy.text.max_new_tokens = kGreedyTokens;
  const auto made = generate(greedy, observer);
  auto ids = made.at("ids").get<std::vector<std::int32_t>>();
  ids.erase(ids.begin(), ids.begin() + made.at("prompt_tokens").get<std::int64_t>());
  return ids;
}

double sum_of_nll(const at::Tensor& logits_NV, std::span<const std::int32_t> ids) {
  const auto rows = static_cast<std::int64_t>(ids.size()) - 1;
  const auto targets = model::index_tensor(ids.subspan(1), logits_NV.device());
  const auto log_shares = at::log_softmax(logits_NV.narrow(0, 0, rows).to(at::kDouble), 1);
  return -log_shares.gather(1, targets.unsqueeze(1)).sum().item<double>();
}

// Logits of each text, and the mean negative log-likelihood of all.
void score(const ModelRequest& request, std::span<const std::vector<std::int32_t>> texts,
           Behaviour& behaviour) {
  const auto device = model::parse_device(request.device);
  const auto parameters = shard::resident_parameters(model::load_weights(request.model, at::kFloat, device),
                                                     shard::Use::frozen, at::kFloat);
  const auto& config = parameters->config();
  const auto& layout = parameters->layout();
  std::vector<at::Tensor> hidden;
  for (const auto& ids : texts)
    hidden.push_back(eval::forward_hidden(
        *parameters, model::index_tensor(ids, device),
        model::make_token_layout(config, {0, static_cast<std::int64_t>(ids.size())}, device)));
  const eval::HeadScorer head(config, layout, parameters->acquire(layout.head_unit()));
  std::int64_t targets = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    behaviour.logits_NV.push_back(head.logits(hidden[i]).to(at::kCPU, at::kFloat));
    behaviour.nll += sum_of_nll(behaviour.logits_NV.back(), texts[i]);
    targets += std::ssize(texts[i]) - 1;
  }
  behaviour.nll /= static_cast<double>(targets);
}

// Ids that both share from the beginning on.
template <typename Ids>
std::int64_t equal_ids(const Ids& a, const Ids& b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

}  // namespace

Behaviour behaviour_of(const ModelRequest& request, const Behaviour* like, record::Observer& observer) {
  ops::install_tensor_allocator();
  const auto device = model::parse_device(request.device);
  settle_float32_products(device, observer);
  const auto config = inspect_model(request.model, observer);
  const auto text = read_model_text(request.model, config);
  Behaviour behaviour;
  std::int64_t longest = 0, tokens = 0;
  for (const char* words : kTexts) {
    behaviour.ids.push_back(text.prompt_ids(words));
    longest = std::max(longest, std::ssize(behaviour.ids.back()));
    tokens += std::ssize(behaviour.ids.back());
  }
  auto plan = eval::plan_scoring(config, nullptr, std::int64_t{sizeof(float)}, longest, ops::path_of(device));
  plan.items.push_back(
      {"logits of the texts, of both models", 2 * tokens * config.vocab_size * std::int64_t{sizeof(float)}});
  shard::require_fits(plan, available_bytes(request.available_memory, device));
  score(request, like ? like->ids : behaviour.ids, behaviour);
  behaviour.greedy_ids = greedy_ids(request);
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
      {"tokens", {{"texts", source.ids.size()}, {"equal", source.ids == written.ids}}},
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
  return {{"ids", behaviour.ids},
          {"perplexity", std::exp(behaviour.nll)},
          {"prompt", kPrompt},
          {"greedy_ids", behaviour.greedy_ids}};
}

void require_as_recorded(const Behaviour& behaviour, const Json& recorded, const std::string& where) {
  const auto as_then = [&](bool same, const char* what) {
    base::require<base::ValidationError>(
        same, where, ": ", what,
        " other than those that were certified; export the model again, or use the "
        "version of Retort that wrote it.");
  };
  as_then(recorded["ids"] == Json(behaviour.ids), "the tokenizer gives ids");
  const double then = recorded["perplexity"], now = std::exp(behaviour.nll);
  as_then(std::abs(now - then) <= kPerplexityTolerance * then, "texts have probabilities");
  const auto answer = recorded["greedy_ids"].get<std::vector<std::int32_t>>();
  as_then(equal_ids(behaviour.greedy_ids, answer) * 2 >= std::ssize(answer), "a greedy answer has tokens");
}

}  // namespace retort::pipeline
