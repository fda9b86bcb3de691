// Attention to keys and values in pages: that of the whole text, however the pages lie.
#include "retort/ops/paged_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/score_rules.h"
#include "tests/support/tolerance.h"

namespace retort {
namespace {

constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kHeadDim = 24, kWidth = (kHeads + 2 * kKeyHeads) * kHeadDim;

// Texts of these lengths, whose pages lie in turn and backwards in the common memory.
struct Texts {
  explicit Texts(at::ScalarType type) {
    at::manual_seed(5);
    const auto options = at::TensorOptions().dtype(type);
    std::int32_t next = 40;
    for (const std::int64_t tokens : {1, 31, 32, 33, 100}) {
      qkv_TX.push_back(at::randn({tokens, kWidth}, at::kDouble).to(type));
      pages.emplace_back();
      for (std::int64_t t = 0; t < tokens; t += ops::kPageTokens) pages.back().push_back(next -= 2);
    }
    for (auto* x : {&memory.k_PTKE, &memory.v_PTKE})
      *x = at::full({40, ops::kPageTokens, kKeyHeads, kHeadDim}, 1e30, options);  // what nobody may read
  }
  // Tokens one after the other, each text a row while it has more.
  std::vector<at::Tensor> attended(const ops::ScoreRule& rule) const {
    std::vector<std::vector<at::Tensor>> rows(pages.size());
    for (std::int64_t t = 0; t < 100; ++t) {
      std::vector<at::Tensor> now;
      std::vector<ops::PagedText> of;
      std::vector<std::size_t> which;
      for (std::size_t i = 0; i < pages.size(); ++i) {
        if (t >= qkv_TX[i].size(0)) continue;
        now.push_back(qkv_TX[i].narrow(0, t, 1));
        of.push_back({pages[i], t + 1});
        which.push_back(i);
      }
      if (now.empty()) break;
      const auto qkv_NX = at::cat(now);
      ops::keep_in_pages(qkv_NX, of, memory);
      const auto out_NY = ops::attention_of_texts(qkv_NX, of, memory, rule);
      for (std::size_t n = 0; n < which.size(); ++n)
        rows[which[n]].push_back(out_NY.narrow(0, static_cast<std::int64_t>(n), 1));
    }
    std::vector<at::Tensor> result;
    for (const auto& of_text : rows) result.push_back(at::cat(of_text));
    return result;
  }

  std::vector<at::Tensor> qkv_TX;
  std::vector<std::vector<std::int32_t>> pages;
  ops::KeyValuePages memory;
};

TEST(PagedAttention, IsThatOfTheWholeText) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const auto& rule : {ops::ScoreRule{}, {.scale = 0.3, .softcap = 5}, {.window = 7}, {.window = 40}}) {
      const Texts texts(type);
      const auto found = texts.attended(rule);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto all_TAE = texts.qkv_TX[i].view({-1, kHeads + 2 * kKeyHeads, kHeadDim});
        const auto whole =
            ops::attention(all_TAE.narrow(1, 0, kHeads), all_TAE.narrow(1, kHeads, kKeyHeads),
                           all_TAE.narrow(1, kHeads + kKeyHeads, kKeyHeads), {0, all_TAE.size(0)}, rule);
        test::expect_close(found[i], whole.out_NHE.flatten(1), test::tolerance(type));
      }
    }
}

TEST(PagedAttention, OfATextDoesNotDependOnTheOthers) {
  const Texts texts(at::kFloat);
  const auto together = texts.attended({});
  for (std::size_t i = 0; i < together.size(); ++i) {
    Texts alone(at::kFloat);
    alone.qkv_TX = {texts.qkv_TX[i]};
    alone.pages = {{3, 9, 27, 1}};
    EXPECT_TRUE(at::equal(alone.attended({})[0], together[i])) << i;
  }
}

}  // namespace
}  // namespace retort
