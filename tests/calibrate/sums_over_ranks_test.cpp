#include "retort/calibrate/sums_over_ranks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "retort/comm/share.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/ranks.h"
#include "support/tolerance.h"

namespace retort {
namespace {

constexpr std::int64_t kColumns = 12;

// Inputs of very different size, one of them without a value in the first batch, one never with any.
std::vector<at::Tensor> batches(std::size_t count) {
  at::manual_seed(3);
  const auto scale_C = at::pow(10.0, at::linspace(-6, 3, kColumns, at::kDouble)).to(at::kFloat);
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(at::randn({70, kColumns}) * scale_C);
    if (i == 0) all.back().select(1, 4).zero_();
    all.back().select(1, 7).zero_();
  }
  return all;
}

at::Tensor sums_on(int ranks, const std::vector<at::Tensor>& text) {
  at::Tensor found_CC;
  std::mutex mutex;
  test::on_ranks(ranks, [&](comm::Group& group) {
    const auto own = comm::share_of(text.size(), group.rank(), group.size());
    calibrate::HessianSums sums;
    const auto add = [&](std::size_t begin, std::size_t end) {
      for (auto i = begin; i < end; ++i) calibrate::accumulate_hessian(sums, text[i], 2);
    };
    const auto second = std::min(own.first + 1, own.last);
    add(own.first, second);
    calibrate::agree_on_units(group, sums, kColumns, text.front().options());
    add(second, own.last);
    calibrate::sum_over_ranks(group, sums, kColumns, text.front().options());
    EXPECT_EQ(sums.sequences, 2 * std::ssize(text));
    const std::lock_guard lock(mutex);
    if (!found_CC.defined()) found_CC = sums.products_CC;
    test::expect_identical(sums.products_CC, found_CC);
  });
  return found_CC;
}

TEST(SumsOverRanks, HessiansAreTheSameBitsOnAnyNumber) {
  const auto text = batches(9);
  const auto one_CC = sums_on(1, text);
  for (const int ranks : {2, 3, 4, 7, 13}) test::expect_identical(sums_on(ranks, text), one_CC);
  // Rounding to units loses no more than products in float32 do.
  auto expected_CC = at::zeros({kColumns, kColumns}, at::kDouble);
  for (const auto& x_NC : text) expected_CC += at::mm(x_NC.to(at::kDouble).t(), x_NC.to(at::kDouble));
  const auto root_C = expected_CC.diagonal().sqrt();
  const auto size_CC = at::outer(root_C, root_C).clamp_min(1e-300);
  EXPECT_LT(((one_CC - expected_CC) / size_CC).abs().max().item<double>(), 1e-6);
  EXPECT_EQ(one_CC.select(0, 7).abs().max().item<double>(), 0);
}

TEST(SumsOverRanks, ATextThatBeginsWithNothingIsSummedAsItIs) {
  auto text = batches(4);
  text[0].zero_();
  const auto one_CC = sums_on(1, text), three_CC = sums_on(3, text);
  EXPECT_LT(test::largest_difference(one_CC, three_CC), 1e-12 * one_CC.abs().max().item<double>());
}

// Six batches of two sources, whose documents go on from batch to batch and so from rank to rank.
TEST(SumsOverRanks, DocumentsOfAllRanksAreThoseOfOne) {
  auto domains = test::random_domains(40, 300);
  for (auto& domain : domains)
    for (std::size_t i = 1; i < domain.sequences.size(); ++i) domain.sequences[i].goes_on = i % 100 != 0;
  const auto config = test::tiny_config();
  const auto documents_of = [](const std::vector<calibrate::Batch>& own) {
    std::vector<calibrate::DocumentSums> documents;
    for (const auto& batch : own) {
      // A value for each token that says which one it is.
      const auto ids_N = batch.ids_N.to(at::kDouble);
      calibrate::add_documents(batch, ids_N, ids_N * 3, {}, documents);
    }
    return documents;
  };
  const auto expected = documents_of(calibrate::calibration_batches(domains, config, at::kCPU));
  for (const int ranks : {2, 5, 9})
    test::on_ranks(ranks, [&](comm::Group& group) {
      const auto own = calibrate::batches_of_rank(domains, config, at::kCPU, group.rank(), group.size());
      auto found = documents_of(own);
      calibrate::join_over_ranks(group, own, found);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(found[i].source, expected[i].source);
        EXPECT_EQ(found[i].targets, expected[i].targets);
        EXPECT_EQ(found[i].nll, expected[i].nll) << "whole numbers";
        EXPECT_EQ(found[i].kl, expected[i].kl);
      }
    });
}

}  // namespace
}  // namespace retort
