#pragma once
// Text goes on from a prompt, one token at a time, with the keys and values of earlier tokens kept.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "retort/comm/group.h"
#include "retort/eval/options.h"
#include "retort/shard/parameters.h"

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

/// Greedy at temperature 0 (ties: the lower id), else drawn from softmax(logits / temperature) over the ids
/// that are tokens: the same seed, model and prompt give the same ids.  Stops after any of `stop_ids`. Throws
/// UsageError (empty prompt, prompt longer than architecture::longest_context(), an id outside the
/// vocabulary, a bad temperature), ValidationError (logits that are not finite).  Of `packed_layers`, which
/// are 2:4, single tokens read no zeros where weights stay in memory.  `group`: ranks that gather units from
/// each other; all make what rank 0 chooses.  Collective over it.
Generation generate(shard::Parameters& parameters, std::span<const std::int32_t> prompt,
                    const GenerateOptions& options, std::span<const std::int32_t> stop_ids,
                    std::span<const std::string> packed_layers = {}, comm::Group* group = nullptr);

}  // namespace retort::eval
