// Rows that other programs gave, by which a recipe is judged before it runs.
#include "retort/publish/load_table.h"

#include <gtest/gtest.h>

#include <array>

#include "support/message_of.h"

namespace retort::publish {
namespace {

TEST(LoadTable, SaysWhatWasSeen) {
  const std::array alike{kBlocks, kHeads, kChannels};
  const std::array differ{kPerLayer}, heads{kHeads};
  EXPECT_SAYS(seen_to_load("LlamaForCausalLM", alike, "llama.cpp").said, "loads in llama.cpp ");
  EXPECT_SAYS(seen_to_load("LlamaForCausalLM", differ, "ollama").said, "loads in llama.cpp ");
  EXPECT_SAYS(seen_to_load("LlamaForCausalLM", differ, "transformers").said, "loads in transformers ");
  EXPECT_SAYS(seen_to_load("Qwen2ForCausalLM", alike, "llama.cpp").said, ", heads: refused: ");
  EXPECT_EQ(seen_to_load("Qwen2ForCausalLM", heads, "mlx").said, "not tried in mlx");
  EXPECT_EQ(seen_to_load("BertModel", heads, "vllm").said, "not tried in vllm");
  EXPECT_EQ(seen_to_load("LlamaForCausalLM", heads, "vllm").answer, SeenToLoad::Answer::loads);
  EXPECT_EQ(seen_to_load("Qwen2ForCausalLM", heads, "vllm").answer, SeenToLoad::Answer::fails);
  EXPECT_EQ(seen_to_load("Olmo2ForCausalLM", heads, "vllm").answer, SeenToLoad::Answer::not_tried);
}

}  // namespace
}  // namespace retort::publish
