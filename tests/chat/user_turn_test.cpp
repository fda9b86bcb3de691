#include "retort/chat/user_turn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/outside_data.h"

namespace retort::chat {
namespace {

class UserTurnOf : public testing::Test {
 protected:
  static ChatTemplate parsed(const std::string& source) { return ChatTemplate::parse(source, "t.jinja"); }
  std::string before(const std::string& source) const {
    return tokenizer_.decode(user_turn(parsed(source), tokenizer_).before, false);
  }
  std::string refusal(const std::string& source) const {
    return test::message_of<base::ModelError>([&] { (void)user_turn(parsed(source), tokenizer_); });
  }

  text::Tokenizer tokenizer_ = text::Tokenizer::from_file(test::source() / "models" / "europa-5m");
};

TEST_F(UserTurnOf, HasAllThatStandsBeforeTheMessage) {
  EXPECT_EQ(before("{% if messages[0].role != 'system' %}be good\n{% endif %}"
                   "{% for m in messages %}<{{ m.role }}>\n{{ m.content }}\n{% endfor %}"),
            "be good\n<user>\n");
}

// The space before a word belongs to the word's token, so a prefix that has it would ask for another one.
TEST_F(UserTurnOf, LeavesASpaceToTheMessage) {
  EXPECT_EQ(before("{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}"), "[INST]");
}

TEST_F(UserTurnOf, EndsByATokenOrByTheTextBehindTheMessage) {
  const auto written = user_turn(
      parsed("{% for m in messages %}[INST] {{ m.content }} [/INST]\nmore{% endfor %}"), tokenizer_);
  EXPECT_EQ(written.end, "[/INST]");
  const auto special = tokenizer_.added_tokens().front();
  const auto token = user_turn(
      parsed("{% for m in messages %}[INST] {{ m.content }}" + special.content + "{% endfor %}"), tokenizer_);
  EXPECT_EQ(token.end, "");
  EXPECT_NE(std::find(token.end_ids.begin(), token.end_ids.end(), special.id), token.end_ids.end());
}

TEST_F(UserTurnOf, RefusesTemplatesThatHideTheMessage) {
  EXPECT_NE(refusal("{% for m in messages %}Q: {{ m.content | upper }}\n{% endfor %}")
                .find("writes a user's message as it is"),
            std::string::npos);
  EXPECT_NE(refusal("{% for m in messages %}{{ m.content | length }}: {{ m.content }}{% endfor %}")
                .find("begins alike"),
            std::string::npos);
  EXPECT_NE(refusal("{% for m in messages %}{{ m.content }}{% endfor %}").find("found none"),
            std::string::npos);
}

}  // namespace
}  // namespace retort::chat
