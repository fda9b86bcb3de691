#pragma once
// Which programs were seen to load what is handed out: docs/formats/loads.md, as a table.

#include <span>
#include <string>
#include <string_view>

namespace retort::publish {

/// What pruning did to a model, in the words of the table.
inline constexpr std::string_view kWhole = "whole", kBlocks = "blocks", kHeads = "heads",
                                  kChannels = "channels", kHidden = "hidden", kPerLayer = "per_layer",
                                  kSubBlocks = "sub_blocks", kTwoFour = "2:4";
/// Settings of a model that a program may compute otherwise, or not at all.
inline constexpr std::string_view kWindows = "windows", kAttentionBias = "attention_bias", kGelu = "gelu",
                                  kUntied = "untied";

struct SeenToLoad {
  enum class Answer { loads, fails, not_tried };
  Answer answer = Answer::not_tried;
  std::string said;  ///< "loads in llama.cpp 2026.10.11549", or why not
};

/// Of several changes or settings the first that does not load.  What the table has no row for was not tried,
/// and what is not pruned so neither.
SeenToLoad seen_to_load(std::string_view architecture, std::span<const std::string_view> changes,
                        std::string_view program);

}  // namespace retort::publish
