#include "retort/eval/generate.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/base/random.h"
#include "retort/eval/held_head.h"
#include "retort/model/block.h"
#include "retort/model/sparsity.h"
#include "retort/ops/path.h"
#include "retort/shard/acquired_unit.h"

namespace retort::eval {
namespace {

using base::require;
using base::UsageError;

// Single rows are multiplied by matrices as they are, where that is as fast as they are read.
HeadMatrix head_matrix(shard::Parameters& parameters) {
  const shard::AcquiredUnit head(parameters, parameters.layout().head_unit());
  return ops::path_of(head.flat().device()) == ops::Path::cpu ? HeadMatrix::as_it_is : HeadMatrix::widened;
}

// The model with what it remembers of one text.
class Decoder {
 public:
  Decoder(shard::Parameters& parameters, std::int64_t prompt_tokens, std::int64_t max_tokens,
          std::span<const std::string> packed_layers)
      : max_tokens_(max_tokens),
        parameters_(parameters),
        scorer_(parameters, 0, head_matrix(parameters)),
        device_(scorer_.device()),
        text_(model::growing_layout(parameters.config(), prompt_tokens, max_tokens, device_)) {
    const shard::AcquiredUnit embedding(parameters, 0);  // for the type that blocks compute in
    for (const auto& block : parameters.config().blocks)
      caches_.push_back(model::make_cache(block, max_tokens, embedding.flat().options()));
    if (!parameters.resident()) return;
    for (std::size_t block = 0; block < caches_.size(); ++block)
      with_weights(block, [&](model::BlockWeights weights) {
        model::pack_sparse_rows(weights, unit_of(block), packed_layers);
        weights_.push_back(std::move(weights));
      });
  }

  /// Whether the text becomes so long with `count` more tokens that all of it is turned by other angles.
  bool outgrows(std::int64_t count) const {
    const auto& ropes = parameters_.config().ropes;
    return position_ > 0 && std::any_of(ropes.begin(), ropes.end(), [&](const architecture::Rope& rope) {
             return rope.starts_anew && position_ <= rope.original_context &&
                    position_ + count > rope.original_context;
           });
  }

  /// Forgets the text; it is given anew, `tokens` of it together.
  void restart(std::int64_t tokens) {
    text_ = model::growing_layout(parameters_.config(), tokens, max_tokens_, device_);
    for (auto& cache : caches_) cache.tokens = 0;
    position_ = 0;
  }

  /// Logits [V] after `ids`, which follow those given before.
  at::Tensor next(std::span<const std::int32_t> ids) {
    const c10::InferenceMode mode;  // each operation is found sooner
    const auto count = static_cast<std::int64_t>(ids.size());
    const auto tokens = model::part_of(text_, position_, count);
    const double eps = parameters_.config().rms_norm_eps;
    auto hidden_ND = embedded(parameters_, model::index_tensor(ids, device_));
    for (std::size_t block = 0; block < caches_.size(); ++block) {
      const auto decode = [&](const model::BlockWeights& weights) {
        hidden_ND = model::block_decode(weights, eps, hidden_ND, tokens, caches_[block]);
      };
      if (weights_.empty())
        with_weights(block, decode);
      else
        decode(weights_[block]);
    }
    position_ += count;
    return scorer_.logits(hidden_ND.narrow(0, count - 1, 1)).squeeze(0);
  }

 private:
  static std::int64_t index_of(std::size_t block) {
    return architecture::Layout::block_unit(static_cast<std::int64_t>(block));
  }
  const architecture::Unit& unit_of(std::size_t block) const {
    return parameters_.layout().units[static_cast<std::size_t>(index_of(block))];
  }

  template <typename Act>
  void with_weights(std::size_t block, Act act) {
    const shard::AcquiredUnit acquired(parameters_, index_of(block));
    if (block + 1 < caches_.size()) parameters_.prefetch(index_of(block + 1));
    act(model::block_weights(parameters_.config().blocks[block], unit_of(block), acquired.flat()));
  }

  std::int64_t max_tokens_;
  shard::Parameters& parameters_;
  HeldHead scorer_;
  at::Device device_;
  model::TokenLayout text_;                   ///< up to the last token that may be made
  std::vector<model::BlockWeights> weights_;  ///< of all blocks, where they stay in memory
  std::vector<ops::KeyValueCache> caches_;
  std::int64_t position_ = 0;
};

std::int32_t draw(const at::Tensor& logits_V, double temperature, base::Random& random) {
  const auto weights_V = at::softmax(logits_V.to(at::kCPU, at::kDouble) / temperature, -1).contiguous();
  const double* weight = weights_V.const_data_ptr<double>();
  const auto vocab = weights_V.numel();
  double left = random.next_double() * weights_V.sum().item<double>();
  std::int64_t last = 0;
  for (std::int64_t id = 0; id < vocab; ++id) {
    if (weight[id] <= 0) continue;
    last = id;
    if ((left -= weight[id]) < 0) break;
  }
  return static_cast<std::int32_t>(last);
}

// Rows of the head without a token are there for their number only.
at::Tensor of_tokens(const at::Tensor& logits_V, std::span<const std::int32_t> ids_without_token) {
  if (ids_without_token.empty()) return logits_V;
  return logits_V.index_fill(0, model::index_tensor(ids_without_token, logits_V.device()),
                             -std::numeric_limits<double>::infinity());
}

std::int32_t choose(const at::Tensor& logits_V, const GenerateOptions& options, base::Random& random) {
  const auto [least, most] = at::aminmax(logits_V);  // not a number where any of the logits is none
  require<base::ValidationError>(std::isfinite(least.item<double>()) && std::isfinite(most.item<double>()),
                                 "generation: the model's logits are not finite; the model is damaged.");
  const auto tokens_V = of_tokens(logits_V, options.ids_without_token);
  if (options.temperature > 0) return draw(tokens_V, options.temperature, random);
  return static_cast<std::int32_t>(tokens_V.argmax().item<std::int64_t>());
}

// By rank 0 where there are several, which may round differently.
std::int32_t chosen(const at::Tensor& logits_V, const GenerateOptions& options, base::Random& random,
                    comm::Group* group) {
  std::int32_t id = 0;
  comm::agree(group, [&] {
    if (!group || group->rank() == 0) id = choose(logits_V, options, random);
  });
  if (group) group->broadcast({&id, sizeof id, comm::Type::bytes}, 0).wait();
  return id;
}

}  // namespace

void check_prompt(const architecture::Config& config, std::span<const std::int32_t> prompt,
                  std::int64_t max_new_tokens) {
  const auto length = static_cast<std::int64_t>(prompt.size());
  require<UsageError>(
      length > 0,
      "generation: expected a prompt of at least one token, found none; begin with the model's "
      "begin-of-text token or give a text.");
  const auto longest = architecture::longest_context(config);
  require<UsageError>(length <= longest, "generation: the prompt has ", length,
                      " tokens, but the model was made for at most ", longest, "; shorten it.");
  require<UsageError>(max_new_tokens >= 0,
                      "generation: expected a number of new tokens of at least 0, found ", max_new_tokens,
                      ".");
  for (const auto id : prompt)
    require<UsageError>(id >= 0 && id < config.vocab_size, "generation: the prompt holds token ", id,
                        ", but the model knows only ", config.vocab_size,
                        "; use the tokenizer that belongs to it.");
}

Generation generate(shard::Parameters& parameters, std::span<const std::int32_t> prompt,
                    const GenerateOptions& options, std::span<const std::int32_t> stop_ids,
                    std::span<const std::string> packed_layers, comm::Group* group) {
  const auto& config = parameters.config();
  comm::agree(group, [&] {
    check_prompt(config, prompt, options.max_new_tokens);
    require<UsageError>(std::isfinite(options.temperature) && options.temperature >= 0,
                        "generation: expected a temperature of 0 (greedy) or more, found ",
                        options.temperature, ".");
  });
  Generation result{.ids = {prompt.begin(), prompt.end()},
                    .prompt_tokens = static_cast<std::int64_t>(prompt.size()),
                    .reason = StopReason::max_new_tokens};
  const auto room = architecture::longest_context(config) - result.prompt_tokens;
  const auto limit = std::min(options.max_new_tokens, room);
  if (limit < options.max_new_tokens) result.reason = StopReason::context;
  Decoder decoder(parameters, result.prompt_tokens, result.prompt_tokens + limit, packed_layers);
  base::Random random(options.seed, base::stream_of("generation"));
  auto unseen = prompt;
  for (std::int64_t made = 0; made < limit; ++made) {
    if (decoder.outgrows(std::ssize(unseen))) {
      decoder.restart(std::ssize(result.ids));
      unseen = result.ids;
    }
    result.ids.push_back(chosen(decoder.next(unseen), options, random, group));
    if (std::find(stop_ids.begin(), stop_ids.end(), result.ids.back()) != stop_ids.end()) {
      result.reason = StopReason::end_of_text;
      break;
    }
    unseen = std::span<const std::int32_t>(&result.ids.back(), 1);
  }
  return result;
}

}  // namespace retort::eval
