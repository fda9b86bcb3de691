// How many sequences of a step are written, where prompts end, and how texts become sequences.
#include "retort/train/written_texts.h"

#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/message_of.h"

namespace retort {
namespace {

using Ids = std::vector<std::int32_t>;
using Lists = std::vector<Ids>;
constexpr auto kNone = data::kNoTarget;

TEST(WrittenSequences, AShareIsExactOverAStage) {
  for (const double share : {0.0, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 1.0})
    for (const std::int64_t sequences : {1, 3, 4, 8}) {
      SCOPED_TRACE(testing::Message() << share << " of " << sequences);
      std::int64_t all = 0;
      for (std::int64_t step = 1; step <= 120; ++step) {
        const auto written = train::written_sequences({.share = share}, sequences, step);
        EXPECT_GE(written, 0);
        EXPECT_LE(written, sequences);
        EXPECT_LE(static_cast<double>(written), std::ceil(share * static_cast<double>(sequences)));
        all += written;
        EXPECT_NEAR(static_cast<double>(all), share * static_cast<double>(sequences * step), 1);
      }
      EXPECT_NEAR(static_cast<double>(all), share * static_cast<double>(sequences * 120), 1e-6);
    }
}

TEST(Beginnings, CutTextAndLeaveChatsWhole) {
  data::Encode encode([](std::string_view text) { return Ids(text.size(), 1); });
  encode.chat = [](const chat::Conversation&) { return data::ChatTokens{.ids = {1, 2, 3, 4, 5}}; };
  const auto shortened = train::beginnings(encode, 3);

  EXPECT_EQ(shortened("ab"), Ids(2, 1));
  EXPECT_EQ(shortened("abcd"), Ids(3, 1));
  ASSERT_TRUE(shortened.chat) << "or a source of chats cannot be read";
  EXPECT_EQ(shortened.chat({}).ids, (Ids{1, 2, 3, 4, 5}));
}

TEST(PromptsOf, AreTheBeginningsOfDocuments) {
  // One that goes on, one of 4 tokens, one of a single token, one that the end cuts off.
  const data::Sequence sequence{.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                                .targets = {2, kNone, 4, 5, 6, kNone, kNone, 9, 10},
                                .starts = {0, 2, 6, 7},
                                .goes_on = true};

  EXPECT_EQ(train::prompts_of(sequence, 3).ids, (Lists{{3, 4, 5}, {7}}));
  EXPECT_EQ(train::prompts_of(sequence, 2).ids, (Lists{{3, 4}, {7}, {8, 9}}));
  EXPECT_EQ(train::prompts_of(sequence, 20).ids, (Lists{{3, 4, 5, 6}, {7}}));
}

TEST(PromptsOf, GoUpToTheBeginningOfAnAnswer) {
  const data::Sequence sequence{.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                .targets = {kNone, kNone, 4, 5, kNone, kNone, kNone, kNone, 10, kNone},
                                .starts = {0, 5},
                                .goes_on = false};

  EXPECT_EQ(train::prompts_of(sequence, 4).ids, (Lists{{1, 2, 3}, {6, 7, 8, 9}}));
  const auto short_ones = train::prompts_of(sequence, 3);
  EXPECT_EQ(short_ones.ids, (Lists{{1, 2, 3}}));
  EXPECT_EQ(short_ones.too_long, 1);
}

TEST(PromptsOf, ADocumentOfWhichNothingIsAskedHasNone) {
  const data::Sequence sequence{
      .ids = {1, 2, 3}, .targets = {kNone, kNone, kNone}, .starts = {0}, .goes_on = false};

  EXPECT_TRUE(train::prompts_of(sequence, 8).ids.empty());
}

TEST(PackedTexts, HaveTargetsOnlyWhereTheStudentWrote) {
  const std::vector<eval::Generation> texts{{.ids = {5, 6, 7, 8}, .prompt_tokens = 2},
                                            {.ids = {9, 2}, .prompt_tokens = 1},
                                            {.ids = {4, 4}, .prompt_tokens = 2},  // nothing was added
                                            {.ids = {3, 3, 3, 3, 3}, .prompt_tokens = 1}};

  const auto sequences = train::packed_texts(texts, 4);

  ASSERT_EQ(sequences.size(), 2U);
  EXPECT_EQ(sequences[0].ids, (Ids{5, 6, 7, 9}));
  EXPECT_EQ(sequences[0].targets, (Ids{kNone, 7, 8, 2}));
  EXPECT_EQ(sequences[0].starts, (Ids{0, 3}));
  EXPECT_EQ(sequences[1].ids, (Ids{3, 3, 3, 3}));
  EXPECT_EQ(sequences[1].targets, (Ids{3, 3, 3, 3}));
  EXPECT_EQ(sequences[1].number, 1);
}

TEST(PackedTexts, AsManyPromptsAsFitNeverNeedMoreSequences) {
  const train::OnPolicyOptions options{.share = 1, .max_new_tokens = 7, .prompt_tokens = 5};
  EXPECT_EQ(train::texts_of_sequence(options, 32), 2);
  EXPECT_EQ(train::texts_of_sequence(options, 33), 3);
  std::vector<eval::Generation> texts;
  for (std::size_t text = 0; text < 4 * 3; ++text)
    texts.push_back({.ids = Ids(text % 4 == 0 ? 8 : 12, 7), .prompt_tokens = 5});

  for (const auto& sequence : train::packed_texts(texts, 33)) EXPECT_LE(sequence.ids.size(), 33U);
  EXPECT_LE(train::packed_texts(texts, 33).size(), 4U);
}

TEST(RepeatsItself, IsSaidOfShortPiecesOverAndOver) {
  const auto text_of = [](std::size_t piece, std::size_t tokens) {
    eval::Generation text{.ids = {1, 2, 3}, .prompt_tokens = 3};
    for (std::size_t i = 0; i < tokens; ++i) text.ids.push_back(static_cast<std::int32_t>(i % piece));
    return text;
  };
  for (const std::size_t piece : {1, 3, 8}) EXPECT_TRUE(train::repeats_itself(text_of(piece, 40))) << piece;
  EXPECT_FALSE(train::repeats_itself(text_of(9, 40)));
  EXPECT_FALSE(train::repeats_itself(text_of(1, 31)));
}

TEST(WrittenCounts, TellTextsApart) {
  train::WrittenCounts counts;
  counts.add({.ids = {1, 2}, .prompt_tokens = 1, .reason = eval::StopReason::end_of_text});
  counts.add({.ids = {1, 5, 2}, .prompt_tokens = 1, .reason = eval::StopReason::end_of_text});
  counts.add({.ids = Ids(41, 5), .prompt_tokens = 1, .reason = eval::StopReason::max_new_tokens});

  EXPECT_EQ(counts.texts, 3);
  EXPECT_EQ(counts.tokens, 1 + 2 + 40);
  EXPECT_EQ(counts.ended, 2);
  EXPECT_EQ(counts.ended_at_once, 1);
  EXPECT_EQ(counts.repeating, 1);
}

TEST(OnPolicy, RefusesWhatCannotBe) {
  train::TrainOptions options;
  options.packing.sequence_length = 128;
  options.on_policy = {.share = 0.5, .max_new_tokens = 65, .prompt_tokens = 65};
  const auto message = [&](const std::vector<loss::LossOptions>& losses) {
    return test::message_of<base::UsageError>([&] { train::check_on_policy("student", options, losses); });
  };
  EXPECT_SAYS(message(loss::default_distillation_losses()), "stage 'student': on_policy");
  EXPECT_SAYS(message(loss::default_distillation_losses()), "65 + 65 - 1 tokens and 128");
  options.on_policy.prompt_tokens = 64;
  EXPECT_NO_THROW(train::check_on_policy("student", options, loss::default_distillation_losses()));
  EXPECT_SAYS(message({{}}), "expected a loss that compares distributions");
  EXPECT_SAYS(message({{}, {.kind = loss::LossKind::squarehead}}), "found none");
  options.on_policy.share = 0;
  EXPECT_NO_THROW(train::check_on_policy("student", options, {{}}));
}

}  // namespace
}  // namespace retort
