#include "retort/eval/generate_texts.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/comm/lead.h"
#include "retort/eval/sampling.h"

namespace retort::eval {
namespace {

using base::to_size;

// Tokens of prompts that begin in one pass, unless a single one is longer.
constexpr std::int64_t kPromptTokensAtOnce = 2048;

struct LiveText {
  std::size_t prompt;
  GrowingText text;
  std::int64_t prompt_tokens;
  base::Random random;
};

std::uint64_t stream_of(std::uint64_t number) {
  return base::stream_of(number == 0 ? "generation" : base::join("generation ", number));
}

std::int64_t most_tokens(const architecture::Config& config, const Prompt& prompt,
                         const TextsOptions& options) {
  const auto length = std::ssize(prompt.ids);
  return length + std::min(options.max_new_tokens, architecture::longest_context(config) - length);
}

struct Choice {
  std::int32_t id = 0, ends = 0;
};

class Round {
 public:
  Round(TextWeights& weights, std::span<const Prompt> prompts, const TextsOptions& options,
        const TextsListener& listener, comm::Group* group)
      : config_(weights.config()),
        decoder_(weights, cache_room_of(weights.config(), prompts, options)),
        prompts_(prompts),
        options_(options),
        listener_(listener),
        group_(group) {}

  void run() {
    if (listener_.begins && leads()) listener_.begins();
    while (begin_texts(), !live_.empty()) {
      std::vector<GrowingText*> texts;
      for (const auto& live : live_) texts.push_back(&live->text);
      take(chosen(decoder_.pass(texts)));
    }
  }

 private:
  bool leads() const { return !group_ || group_->rank() == 0; }

  void begin_texts() {
    std::int64_t tokens = 0;
    std::vector<GrowingText*> begun;
    for (; next_ < prompts_.size() && std::ssize(live_) < options_.texts_at_once; ++next_) {
      const auto& prompt = prompts_[next_];
      const auto most = most_tokens(config_, prompt, options_), length = std::ssize(prompt.ids);
      if (most == length) {
        end({prompt.ids, length, reason_of_limit(length)}, next_);
        continue;
      }
      if (tokens > 0 && tokens + length > kPromptTokensAtOnce) return;
      if (decoder_.gains_by_waiting(prompt.ids, begun)) return;
      auto live = std::make_unique<LiveText>(
          LiveText{next_, {prompt.ids, most}, length, {options_.sampling.seed, stream_of(prompt.number)}});
      if (!decoder_.admit(live->text)) return;
      begun.push_back(&live->text);
      tokens += length - live->text.seen;
      live_.push_back(std::move(live));
    }
  }

  // By rank 0 where there are several, which may round differently.
  std::vector<Choice> chosen(const at::Tensor& logits_NV) {
    std::vector<Choice> choices(live_.size());
    const auto choose = [&](std::int64_t begin, std::int64_t end) {
      for (auto n = to_size(begin); n < to_size(end); ++n) choices[n].id = id_of(*live_[n], logits_NV, n);
    };
    const auto ask_whether_they_end = [&] {
      for (std::size_t n = 0; n < live_.size(); ++n)
        choices[n].ends = listener_.ends && listener_.ends(live_[n]->prompt, choices[n].id) ? 1 : 0;
    };
    comm::agree(group_, [&] {
      if (!leads()) return;
      at::parallel_for(0, std::ssize(live_), 1, choose);  // each text has random numbers of its own
      ask_whether_they_end();
    });
    if (group_)
      group_
          ->broadcast({choices.data(), std::ssize(choices) * static_cast<std::int64_t>(sizeof(Choice)),
                       comm::Type::bytes},
                      0)
          .wait();
    return choices;
  }

  std::int32_t id_of(LiveText& live, const at::Tensor& logits_NV, std::size_t row) const {
    const auto vocab = to_size(logits_NV.size(1));
    const std::span<const float> logits_V(logits_NV.const_data_ptr<float>() + row * vocab, vocab);
    return next_id(logits_V, live.text.ids, options_.sampling, options_.ids_without_token, live.random);
  }

  void take(const std::vector<Choice>& choices) {
    for (std::size_t n = 0; n < live_.size(); ++n) {
      auto& live = *live_[n];
      live.text.ids.push_back(choices[n].id);
      if (listener_.token && leads()) listener_.token(live.prompt);
      const bool stops = std::ranges::find(options_.stop_ids, choices[n].id) != options_.stop_ids.end();
      if (!stops && choices[n].ends == 0 && std::ssize(live.text.ids) < live.text.most_tokens) continue;
      decoder_.release(live.text);
      const auto reason = stops                  ? StopReason::end_of_text
                          : choices[n].ends != 0 ? StopReason::asked
                                                 : reason_of_limit(live.prompt_tokens);
      end({std::move(live.text.ids), live.prompt_tokens, reason}, live.prompt);
      live_[n].reset();
    }
    std::erase(live_, nullptr);
  }

  StopReason reason_of_limit(std::int64_t prompt_tokens) const {
    const auto room = architecture::longest_context(config_) - prompt_tokens;
    return room < options_.max_new_tokens ? StopReason::context : StopReason::max_new_tokens;
  }

  void end(const Generation& generation, std::size_t prompt) const {
    if (listener_.done && leads()) listener_.done(prompt, generation);
  }

  const architecture::Config& config_;
  TextDecoder decoder_;
  std::span<const Prompt> prompts_;
  const TextsOptions& options_;
  const TextsListener& listener_;
  comm::Group* group_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<LiveText>> live_;
};

}  // namespace

void check_prompt(const architecture::Config& config, std::span<const std::int32_t> prompt,
                  std::int64_t max_new_tokens) {
  const auto length = static_cast<std::int64_t>(prompt.size());
  base::require<base::UsageError>(
      length > 0,
      "generation: expected a prompt of at least one token, found none; begin with the model's "
      "begin-of-text token or give a text.");
  const auto longest = architecture::longest_context(config);
  base::require<base::UsageError>(length <= longest, "generation: the prompt has ", length,
                                  " tokens, but the model was made for at most ", longest, "; shorten it.");
  base::require<base::UsageError>(max_new_tokens >= 0,
                                  "generation: expected a number of new tokens of at least 0, found ",
                                  max_new_tokens, ".");
  for (const auto id : prompt)
    base::require<base::UsageError>(id >= 0 && id < config.vocab_size, "generation: the prompt holds token ",
                                    id, ", but the model knows only ", config.vocab_size,
                                    "; use the tokenizer that belongs to it.");
}

CacheRoom cache_room_of(const architecture::Config& config, std::span<const Prompt> prompts,
                        const TextsOptions& options) {
  std::vector<std::int64_t> tokens;
  for (const auto& prompt : prompts) tokens.push_back(most_tokens(config, prompt, options));
  std::ranges::sort(tokens, std::greater());
  tokens.resize(std::min(tokens.size(), to_size(options.texts_at_once)));
  return {.texts = std::ssize(tokens),
          .longest_tokens = tokens.empty() ? 0 : tokens.front(),
          .tokens = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0})};
}

std::int64_t longest_prompt(std::span<const Prompt> prompts) {
  std::int64_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, std::ssize(prompt.ids));
  return longest;
}

std::int64_t tokens_at_once(std::span<const Prompt> prompts, const TextsOptions& options) {
  std::int64_t all = 0;
  for (const auto& prompt : prompts) all += std::ssize(prompt.ids);
  return std::min(all, std::max(kPromptTokensAtOnce, longest_prompt(prompts))) + options.texts_at_once;
}

void generate_texts(TextWeights& weights, std::span<const Prompt> prompts, const TextsOptions& options,
                    const TextsListener& listener, comm::Group* group) {
  comm::agree(group, [&] {
    check(options.sampling);
    base::require<base::UsageError>(options.texts_at_once > 0,
                                    "generation: expected at least one text at once, found ",
                                    options.texts_at_once, ".");
    for (const auto& prompt : prompts) check_prompt(weights.config(), prompt.ids, options.max_new_tokens);
  });
  if (prompts.empty()) return;
  Round(weights, prompts, options, listener, group).run();
}

void generate_texts(shard::Parameters& parameters, std::span<const Prompt> prompts,
                    const TextsOptions& options, const TextsListener& listener, comm::Group* group) {
  if (prompts.empty()) return;
  TextWeights weights(parameters);
  generate_texts(weights, prompts, options, listener, group);
}

}  // namespace retort::eval
