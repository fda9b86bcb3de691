// Attention to keys and values in pages: that of the whole text, however the pages lie.
#include "retort/ops/paged_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/score_rules.h"
#include "retort/ops/path.h"
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

// However many of the last tokens ask; a page that no window reaches is not held.
TEST(PagedAttention, OfTheEndHasTheBitsOfTheWholeText) {
  at::manual_seed(9);
  constexpr std::int64_t kTokens = 333;
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const auto& rule : {ops::ScoreRule{}, {.scale = 0.3, .softcap = 5}, {.window = 40}}) {
      Texts texts(type);
      const auto qkv_TX = at::randn({kTokens, kWidth}, at::kDouble).to(type);
      std::vector<std::int32_t> pages;
      std::vector<ops::PagedText> rows;
      for (std::int32_t page = 0; page < 11; ++page) pages.push_back(33 - 3 * page);
      for (std::int64_t t = 0; t < kTokens; ++t) rows.push_back({pages, t + 1});
      ops::keep_in_pages(qkv_TX, rows, texts.memory);
      const auto all_TAE = qkv_TX.view({-1, kHeads + 2 * kKeyHeads, kHeadDim});
      const auto whole_TY =
          ops::attention(all_TAE.narrow(1, 0, kHeads), all_TAE.narrow(1, kHeads, kKeyHeads),
                         all_TAE.narrow(1, kHeads + kKeyHeads, kKeyHeads), {0, kTokens}, rule)
              .out_NHE.flatten(1);
      for (const std::int64_t count : {1, 2, 45, 200, 333}) {
        auto held = pages;
        for (std::int64_t page = 0; (page + 1) * ops::kPageTokens + rule.window < kTokens - count; ++page)
          if (rule.window > 0) held[static_cast<std::size_t>(page)] = -1;
        const auto end_NY = ops::attention_of_end(qkv_TX.narrow(0, kTokens - count, count), {held, kTokens},
                                                  texts.memory, rule);
        const auto expected_NY = whole_TY.narrow(0, kTokens - count, count);
        if (ops::path_of(at::kCPU) == ops::Path::cpu) {
          EXPECT_TRUE(at::equal(end_NY, expected_NY)) << type << " " << count;
        } else {
          test::expect_close(end_NY, expected_NY, test::tolerance(type));
        }
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
