// A source that holds out too little says which key to set to what, and that helps.
#include "retort/data/held_out_part.h"

#include <charconv>

#include "data/corpus.h"
#include "retort/base/error.h"
#include "retort/data/windows.h"

namespace retort::data {
namespace {

class HeldOutPart : public test::Corpus {
 protected:
  // 39 documents, none of which lies below the default fraction.
  SourceOptions few() const {
    std::vector<std::string> some;
    for (int i = 0; some.size() < 39; ++i)
      if (auto text = base::join("document ", i); held_out_place(text) >= 0.02) some.push_back(text);
    auto options = source({write("few.jsonl", test::jsonl(some))});
    options.held_out.fraction = 0.02;
    return options;
  }
};

double value_after(const std::string& text, const std::string& key) {
  const auto at = text.find(key);
  EXPECT_NE(at, std::string::npos) << text;
  double value = 0;
  if (at != std::string::npos)
    std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

TEST_F(HeldOutPart, SaysWhichFractionHoldsOutEnough) {
  auto options = few();
  EXPECT_EQ(held_out_documents(options, 8), 0);
  for (const int wanted : {1, 2, 8}) {
    const auto advice = held_out_advice(options, wanted);
    auto changed = options;
    changed.held_out.fraction = value_after(advice, "set its held_out.fraction to ");
    EXPECT_GE(held_out_documents(changed, 100), wanted) << advice;
    EXPECT_LE(held_out_documents(changed, 100), wanted + 1) << advice;
    EXPECT_EQ(held_out_documents(changed, 100), value_after(advice, "which holds out ")) << advice;
  }
  auto changed = options;
  const auto advice = held_out_advice(options, 19);
  changed.held_out.every = static_cast<std::int64_t>(
      advice.find("every") != advice.npos ? value_after(advice, "set its held_out.every to ") : 0);
  changed.held_out.fraction =
      advice.find("every") != advice.npos ? 0 : value_after(advice, "set its held_out.fraction to ");
  EXPECT_GE(held_out_documents(changed, 100), 19) << advice;
  EXPECT_SAYS(held_out_advice(options, 20), "only 39 documents: cut it into more by a separator");
  options.held_out.paths = {"held.txt"};
  EXPECT_SAYS(held_out_advice(options, 1), "held_out.path");
}

TEST_F(HeldOutPart, CountsTheBadLinesThatLeaveTooFewDocuments) {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += R"({"words": "a"})"
             "\n";
  auto options = source({write("bad.jsonl", lines)});
  options.skip_bad_lines = true;
  options.held_out.fraction = 0.02;
  EXPECT_SAYS(held_out_advice(options, 1), "has 0 documents, and 40 lines that are bad and were skipped");
}

TEST_F(HeldOutPart, ReadsNoFurtherThanItMust) {
  auto options = source({write("late.jsonl", test::jsonl({"a", "b", "c"}) + "{")});
  options.held_out.every = 2;
  EXPECT_EQ(held_out_documents(options, 1), 1);
  EXPECT_THROW((void)held_out_documents(options, 2), base::DataError);
  options.held_out.every = 0;
  options.held_out.fraction = 0;
  EXPECT_EQ(held_out_documents(options, 1), 0) << "without a rule there is nothing to look for";
}

TEST_F(HeldOutPart, IsAskedForWithTheKeyToSet) {
  WindowReader reader(few(), Split::held_out, {.context = 16}, test::encode_bytes, test::kSpecial);
  Sequence window;
  EXPECT_SAYS(test::message_of<base::DataError>([&] { (void)reader.next(window); }),
              "found none among 39; set its held_out.fraction to 0.");
}

}  // namespace
}  // namespace retort::data
