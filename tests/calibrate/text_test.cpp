#include "retort/calibrate/text.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"

namespace retort {
namespace {

TEST(Calibration, BatchesHoldWholeSequencesOfOneDomain) {
  const auto config = test::tiny_config();
  const auto domains = test::random_domains(config.vocab_size, 3, 24);
  const auto batches = calibrate::calibration_batches(domains, config, at::kCPU, 50);
  ASSERT_EQ(batches.size(), 4u);
  EXPECT_EQ(batches[0].sequences(), 2);
  EXPECT_EQ(batches[1].sequences(), 1);
  EXPECT_EQ(batches[2].source, 1u);
  EXPECT_EQ(batches[0].layout.starts, (std::vector<std::int64_t>{0, 12, 24, 36, 48}));
  EXPECT_EQ(batches[0].ids_N[24].item<std::int64_t>(), domains[0].sequences[1].ids[0]);
  EXPECT_EQ(batches[0].targets_N[11].item<std::int64_t>(), -1);
}

TEST(Calibration, ASequenceLongerThanABatchIsABatch) {
  const auto config = test::tiny_config();
  const auto batches =
      calibrate::calibration_batches(test::random_domains(config.vocab_size, 2, 24), config, at::kCPU, 10);
  EXPECT_EQ(batches.size(), 4u);
}

TEST(Calibration, RefusesTextThatCannotBeUsed) {
  const auto config = test::tiny_config();
  auto foreign = test::random_domains(config.vocab_size), silent = foreign, empty = foreign, beyond = foreign;
  foreign[1].sequences[0].ids[3] = 40;
  beyond[1].sequences[0].targets[3] = -2;
  for (auto& sequence : silent[1].sequences)
    sequence.targets.assign(sequence.targets.size(), data::kNoTarget);
  empty[1].sequences.clear();
  for (const auto& domains : {foreign, beyond, silent, empty}) {
    const auto message =
        test::message_of<base::DataError>([&] { calibrate::calibration_batches(domains, config, at::kCPU); });
    EXPECT_NE(message.find("'second'"), std::string::npos) << message;
  }
  EXPECT_THROW(calibrate::calibration_batches({}, config, at::kCPU), base::DataError);
}

}  // namespace
}  // namespace retort
