// Which sequences each rank has of a step.
#include "retort/train/step_sequences.h"

#include "support/ranks.h"
#include "train/training.h"

namespace retort {
namespace {

class StepSequencesTest : public test::TrainingTest {
 protected:
  struct Step {
    std::vector<std::int64_t> numbers;
    std::vector<std::vector<std::int32_t>> ids;
    bool operator==(const Step&) const = default;
  };
  static constexpr std::int64_t kSequences = 7, kSteps = 4;

  /// The steps that a job of so many ranks makes after `skipped` ones: what its ranks have, one after the
  /// other.
  std::vector<Step> steps_of(int ranks, std::int64_t skipped = 0) const {
    const auto text = source("text", test::made_up_documents(60));
    std::vector<std::vector<train::StepShare>> shares(static_cast<std::size_t>(ranks));
    test::on_ranks(
        ranks,
        [&](comm::Group& world) {
          std::optional<data::SequenceStream> stream;
          if (world.rank() == 0)
            stream.emplace(std::vector{text}, packing(), test::encode_bytes, test::kSpecial, 5);
          train::StepSequences sequences(stream ? &*stream : nullptr, world, kSequences);
          if (skipped > 0) {
            for (std::int64_t step = 0; step < skipped; ++step) (void)sequences.next();
            const auto cursor = sequences.cursor();
            sequences.fetch();  // ahead, as a job does that then ends
            sequences.seek(cursor);
          }
          for (std::int64_t step = skipped; step < kSteps; ++step) {
            shares[static_cast<std::size_t>(world.rank())].push_back(sequences.next());
            EXPECT_LE(std::ssize(shares[static_cast<std::size_t>(world.rank())].back().sequences),
                      sequences.most());
          }
        },
        false);
    return joined(shares);
  }

 private:
  static data::PackingOptions packing() {
    data::PackingOptions options;
    options.sequence_length = 32;
    return options;
  }
  static std::vector<Step> joined(const std::vector<std::vector<train::StepShare>>& shares) {
    std::vector<Step> steps(shares.front().size());
    for (const auto& of_rank : shares)
      for (std::size_t step = 0; step < steps.size(); ++step) {
        for (const auto& sequence : of_rank[step].sequences) {
          steps[step].numbers.push_back(sequence.number);
          steps[step].ids.push_back(sequence.ids);
        }
        EXPECT_EQ(of_rank[step].first_number, shares[0][step].first_number);
        EXPECT_EQ(of_rank[step].last_number, shares[0][step].last_number);
      }
    for (std::size_t step = 0; step < steps.size(); ++step) {
      EXPECT_EQ(shares[0][step].first_number, steps[step].numbers.front());
      EXPECT_EQ(shares[0][step].last_number, steps[step].numbers.back());
    }
    return steps;
  }
};

TEST_F(StepSequencesTest, AreTheSameInTheSameOrderOnAnyNumberOfRanks) {
  const auto one = steps_of(1);
  ASSERT_EQ(std::ssize(one), kSteps);
  for (std::int64_t step = 0; step < kSteps; ++step)
    for (std::int64_t i = 0; i < kSequences; ++i)
      EXPECT_EQ(one[static_cast<std::size_t>(step)].numbers[static_cast<std::size_t>(i)],
                step * kSequences + i);
  for (const int ranks : {2, 3, 4, 8}) EXPECT_EQ(steps_of(ranks), one) << ranks;
}

// What was fetched ahead is not lost.
TEST_F(StepSequencesTest, GoOnWhereACursorStands) {
  const auto whole = steps_of(1);
  for (const int ranks : {1, 3}) {
    const auto rest = steps_of(ranks, 2);
    ASSERT_EQ(rest.size(), 2U);
    for (std::size_t step = 0; step < 2; ++step) {
      EXPECT_EQ(rest[step].numbers, whole[2 + step].numbers) << ranks;
      EXPECT_EQ(rest[step].ids, whole[2 + step].ids) << ranks;
    }
  }
}

}  // namespace
}  // namespace retort
