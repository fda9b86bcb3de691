#include "retort/tasks/encode.h"

#include "tasks/files_for_tests.h"

namespace retort::tasks {
namespace {

using base::DataError;
using Ids = std::vector<std::int32_t>;

// Characters as tokens: <s> 0, </s> 1, a space 2, a 3, b 4, c 5, "ab" 6.
text::Tokenizer tokenizer(const TaskFolder& folder, bool adds_begin) {
  const std::string around = adds_begin ? R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}})"
                                        : "null";
  const std::string added =
      R"([{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
      "normalized": false, "special": true}, {"id": 1, "content": "</s>", "single_word": false, "lstrip": false,
      "rstrip": false, "normalized": false, "special": true}])";
  const auto path = folder.write("tokenizer.json", R"({"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": )" + added + R"(, "normalizer": null,
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
      "post_processor": )" + around + R"(, "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
        "vocab": {"<s>": 0, "</s>": 1, "\u0120": 2, "a": 3, "b": 4, "c": 5, "ab": 6}, "merges": ["a b"]}})");
  return text::Tokenizer::from_file(path);
}

Encoder encoder(bool adds_begin, std::int64_t max_length = 16) {
  const TaskFolder folder;
  return Encoder(tokenizer(folder, adds_begin),
                 {.max_length = max_length, .bos = 0, .eos = 1, .add_special_tokens = {}});
}

TEST(TaskEncoder, MovesSpacesToTheContinuation) {
  const auto window = encoder(false).pair("c  ", "a", "w");

  EXPECT_EQ(window.ids, (Ids{5, 2, 2, 3}));
  EXPECT_EQ(window.scored, 3);
}

TEST(TaskEncoder, CutsWhatIsEncodedTogetherAtTheContextsLength) {
  const auto window = encoder(false).pair("ca", "bc", "w");  // together c, ab, c

  EXPECT_EQ(window.ids, (Ids{5, 3, 5}));
  EXPECT_EQ(window.scored, 1);
}

TEST(TaskEncoder, AddsSpecialTokensOnce) {
  EXPECT_EQ(encoder(true).pair("a", "c", "w").ids, (Ids{0, 3, 5}));
  EXPECT_EQ(encoder(true).pair("<s>a", "c", "w").ids, (Ids{0, 3, 5}));
  EXPECT_EQ(encoder(true).prompt("<s>a", 1, "w").ids, (Ids{0, 3}));
  EXPECT_EQ(encoder(true).prompt("a", 1, "w").ids, (Ids{0, 3}));
}

TEST(TaskEncoder, PutsTheBeginTokenBeforeATextWithoutContext) {
  EXPECT_EQ(encoder(true).pair("", "ac", "w").ids, (Ids{0, 3, 5}));
  EXPECT_EQ(encoder(false).pair("", "ac", "w").ids, (Ids{0, 3, 5}));
  const auto begun = encoder(false).pair("", "<s>ac", "w");
  EXPECT_EQ(begun.ids, (Ids{0, 3, 5}));
  EXPECT_EQ(begun.scored, 2);
}

TEST(TaskEncoder, CutsContextsFromTheLeft) {
  const auto window = encoder(false, 3).pair("abcc", "a", "w");

  EXPECT_EQ(window.ids, (Ids{6, 5, 5, 3}));
  EXPECT_EQ(encoder(false, 2).pair("abcc", "a", "w").cut, 1);
  EXPECT_EQ(encoder(false, 4).prompt("acbacb", 2, "w").ids, (Ids{5, 4}));
  EXPECT_EQ(encoder(false, 4).prompt("acbacb", 2, "w").cut, 4);
}

TEST(TaskEncoder, JudgesEachIdOfATextOnce) {
  const auto windows = encoder(true, 3).rolling("cacac");  // with its begin token six ids

  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0].ids, (Ids{0, 0, 5, 3}));
  EXPECT_EQ(windows[0].scored, 3);
  EXPECT_EQ(windows[1].ids, (Ids{3, 5, 3, 5}));
  const auto rest = encoder(false, 3).rolling("cacac");
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[1].ids, (Ids{3, 5, 3, 5}));
  EXPECT_EQ(rest[1].scored, 2);
  EXPECT_TRUE(encoder(false).rolling("").empty());
}

TEST(TaskEncoder, RefusesWhatAModelCannotJudge) {
  EXPECT_SAYS(test::message_of<DataError>([] { (void)encoder(false, 3).pair("a", "cccc", "t: document 5"); }),
              "t: document 5: the continuation has 4 ids, more than the model's 3");
  EXPECT_SAYS(test::message_of<DataError>([] { (void)encoder(false).pair("a", "", "w"); }), "has no ids");
  EXPECT_SAYS(test::message_of<DataError>([] { (void)encoder(false).pair("  ", "a", "w"); }),
              "is white space");
  EXPECT_SAYS(test::message_of<DataError>([] { (void)encoder(false, 8).prompt("a", 8, "w"); }),
              "set max_gen_toks");
}

TEST(TaskEncoder, EndsAnswersBeforeTheFirstStop) {
  EXPECT_EQ(encoder(false).stops({"\n"}), (std::vector<std::string>{"\n", "</s>"}));
  EXPECT_EQ(before_stops("one\ntwo Q: x", {"Q:", "", "\n"}), "one");
  EXPECT_EQ(before_stops("one", {"Q:"}), "one");
}

}  // namespace
}  // namespace retort::tasks
