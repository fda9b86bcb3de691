#include <set>

#include "data/corpus.h"
#include "retort/data/packer.h"
#include "retort/data/windows.h"

namespace retort::data {
namespace {

using test::encode_bytes;
using test::kSpecial;

class CalibrationTest : public test::Corpus {};

TEST_F(CalibrationTest, TakesTheFirstSequencesOfTheTrainingPart) {
  SourceOptions options = source({write("a.jsonl", test::jsonl(test::numbered_texts("doc", 500)))});
  options.held_out.every = 2;
  const PackingOptions packing{.sequence_length = 64};
  const auto sequences = calibration_sequences(options, packing, encode_bytes, kSpecial, 5, 20);
  ASSERT_EQ(sequences.size(), 20U);
  SequencePacker packer({options}, packing, encode_bytes, kSpecial, 5);
  for (const Sequence& sequence : sequences) EXPECT_EQ(sequence.ids, packer.next().ids);
  EXPECT_NE(calibration_sequences(options, packing, encode_bytes, kSpecial, 6, 1)[0].ids, sequences[0].ids);
}

// Two documents of 40 and 100 letters and what marks them, in sequences of 32.
TEST_F(CalibrationTest, SaysWhereADocumentGoesOn) {
  const SourceOptions options = source(
      {write("a.jsonl", test::jsonl({std::string(40, 'a'), std::string(100, 'b'), std::string(40, 'c')}))});
  const PackingOptions packing{.sequence_length = 32, .shuffle_documents = 1};
  const auto sequences = calibration_sequences(options, packing, encode_bytes, kSpecial, 5, 5);
  std::int32_t last = -1;
  for (const Sequence& sequence : sequences) {
    EXPECT_EQ(sequence.goes_on, sequence.ids.front() == last) << sequence.number;
    last = sequence.ids.back();
  }
  EXPECT_FALSE(sequences.front().goes_on);
  EXPECT_TRUE(sequences[1].goes_on);
}

TEST_F(CalibrationTest, DoesNotRepeatASmallSource) {
  const SourceOptions options = source({write("a.jsonl", test::jsonl(test::numbered_texts("doc", 20)))});
  const PackingOptions packing{.sequence_length = 64};
  const auto sequences = calibration_sequences(options, packing, encode_bytes, kSpecial, 5, 1000);
  std::set<std::vector<std::int32_t>> different;
  for (const Sequence& sequence : sequences) different.insert(sequence.ids);
  EXPECT_EQ(different.size(), sequences.size());
  EXPECT_GE(sequences.size(), 2U);
  EXPECT_LT(sequences.size(), 20U);
}

TEST_F(CalibrationTest, GivesNoSequenceThatRepeatsItsText) {
  const SourceOptions options = source({write("a.txt", "short")});
  EXPECT_EQ(calibration_sequences(options, {.sequence_length = 64}, encode_bytes, kSpecial, 5, 3).size(), 0U);
}

}  // namespace
}  // namespace retort::data
