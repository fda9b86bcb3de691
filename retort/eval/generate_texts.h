#pragma once
// Many texts go on from their prompts together: where one ends, the next begins in its place.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "retort/comm/group.h"
#include "retort/eval/options.h"
#include "retort/eval/text_decoder.h"

namespace retort::eval {

enum class StopReason { end_of_text, max_new_tokens, context, asked };

struct Generation {
  std::vector<std::int32_t> ids;  ///< prompt and answer; the answer includes the token that ended it
  std::int64_t prompt_tokens = 0;
  StopReason reason = StopReason::max_new_tokens;
};

/// Throws UsageError for a prompt without tokens, longer than architecture::longest_context() or with ids
/// outside the vocabulary, and for a negative number of new tokens.
void check_prompt(const architecture::Config& config, std::span<const std::int32_t> prompt,
                  std::int64_t max_new_tokens);

struct Prompt {
  std::vector<std::int32_t> ids = {};
  std::uint64_t number = 0;  ///< of its random numbers, with the seed
};

struct TextsOptions {
  Sampling sampling = {};
  std::int64_t max_new_tokens = 64;
  std::int64_t texts_at_once = 16;
  std::vector<std::int32_t> stop_ids = {}, ids_without_token = {};
};

/// What a caller hears; members may be empty.
struct TextsListener {
  /// All that a first pass needs is there.
  std::function<void()> begins = {};
  /// A text got one more token, and its pass is over.
  std::function<void(std::size_t prompt)> token = {};
  /// Each id of an answer, before token() and done() are told of it; true ends the text.
  std::function<bool(std::size_t prompt, std::int32_t id)> ends = {};
  /// In the order in which texts end.
  std::function<void(std::size_t prompt, const Generation& generation)> done = {};
};

/// Room for keys and values that generate_texts takes.
CacheRoom cache_room_of(const architecture::Config& config, std::span<const Prompt> prompts,
                        const TextsOptions& options);

std::int64_t longest_prompt(std::span<const Prompt> prompts);
/// Tokens that go through a block together, at most.
std::int64_t tokens_at_once(std::span<const Prompt> prompts, const TextsOptions& options);

/// Each text gets the ids that it gets alone: to the bit on a CPU; elsewhere as far as the device's products
/// do not depend on their number of rows.  Throws what check_prompt() throws, UsageError for sampling out of
/// range, and ValidationError for logits that are not finite.  `group`: ranks that gather units from each
/// other; rank 0 chooses and listens.  Collective over it.
void generate_texts(TextWeights& weights, std::span<const Prompt> prompts, const TextsOptions& options,
                    const TextsListener& listener, comm::Group* group = nullptr);
/// Of TextWeights that live as long as the call.
void generate_texts(shard::Parameters& parameters, std::span<const Prompt> prompts,
                    const TextsOptions& options, const TextsListener& listener, comm::Group* group = nullptr);

}  // namespace retort::eval
