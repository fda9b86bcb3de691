// A reference by its most likely tokens against the KL over the whole vocabulary.
#include "retort/calibrate/top_k_reference.h"

#include <gtest/gtest.h>

#include "support/random_text.h"

namespace retort {
namespace {

// More tokens than are kept, and several chunks of rows in a batch.
TEST(TopKReference, BoundsTheKlFromBelowAndHasTheSameLoss) {
  constexpr std::int64_t kVocab = 700, kChunkRows = 10;
  auto config = test::tiny_config(2);
  config.vocab_size = kVocab;
  const auto reference = test::tiny_model(config, 1, at::kFloat),
             changed = test::tiny_model(config, 2, at::kFloat);
  const auto batches =
      calibrate::calibration_batches(test::random_domains(kVocab, 4), config, at::kCPU, /*batch_tokens=*/48);
  ASSERT_GT(batches.size(), 2U);
  const eval::HeadScorer scorer(config, reference.layout, reference.units.front());
  calibrate::TopKReference kept(scorer, kChunkRows);
  const auto output = [&](const model::Weights& weights, const calibrate::Batch& batch) {
    return model::forward_blocks(weights, model::embedded(reference, batch.ids_N), batch.layout);
  };
  for (const auto& batch : batches) {
    kept.keep(batch, output(reference, batch));
    EXPECT_TRUE(kept.is_finite());
  }
  std::vector<calibrate::DocumentSums> documents, exact;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto hidden_ND = output(changed, batches[i]);
    kept.add_documents(i, batches[i], hidden_ND, documents);
    calibrate::add_documents(batches[i], scorer, hidden_ND, scorer, output(reference, batches[i]), 1000,
                             exact);
  }
  ASSERT_EQ(documents.size(), exact.size());
  for (std::size_t d = 0; d < exact.size(); ++d) {
    SCOPED_TRACE(d);
    const auto allowed = 1e-4 * exact[d].kl;  // float32 of some tens of rows
    EXPECT_EQ(documents[d].targets, exact[d].targets);
    EXPECT_NEAR(documents[d].nll, exact[d].nll, allowed);
    EXPECT_LT(documents[d].kl, exact[d].kl);
    EXPECT_GE(documents[d].kl + documents[d].kl_gap, exact[d].kl - allowed);
  }
}

TEST(TopKReference, SaysWhereALossIsNotFinite) {
  const auto config = test::tiny_config(1);
  const auto weights = test::tiny_model(config, 1, at::kFloat);
  const auto batches = calibrate::calibration_batches(test::random_domains(40, 1), config, at::kCPU, 48);
  calibrate::TopKReference kept(eval::HeadScorer(config, weights.layout, weights.units.front()), 16);
  kept.keep(batches[0], at::full({batches[0].layout.tokens(), config.hidden_size}, NAN));
  EXPECT_FALSE(kept.is_finite());
}

}  // namespace
}  // namespace retort
