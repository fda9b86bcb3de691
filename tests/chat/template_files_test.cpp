// Where a model's template is found.
#include "retort/chat/template_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::chat {
namespace {

using test::message_of;

class TemplateFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((directory_.path() / name).parent_path());
    std::ofstream(directory_.path() / name) << content;
  }
  std::string chosen(bool with_tools = false, const std::string& name = "") {
    Conversation conversation;
    conversation.add("user", "x");
    return choose_template(find_templates(directory_.path()), with_tools, name).render(conversation).text;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(TemplateFiles, TokenizerConfigHasTextAndSpecialTokens) {
  write("config.json", "{}");
  write(
      "tokenizer_config.json",
      R"({"chat_template": "{{ bos_token }}a{{ eos_token }}", "bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(chosen(), "<s>a</s>");
}

TEST_F(TemplateFiles, ListHasOneForTools) {
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"},
            {"name": "rag", "template": "c"}]})");
  EXPECT_EQ(chosen(), "a");
  EXPECT_EQ(chosen(true), "b");
  EXPECT_EQ(chosen(true, "rag"), "c");
  EXPECT_SAYS(message_of<base::ModelError>([&] { (void)chosen(false, "x"); }),
              "\"default\", \"tool_use\" and \"rag\"");
}

TEST_F(TemplateFiles, JinjaFilesComeFirst) {
  write("tokenizer_config.json", R"({"chat_template": "a", "eos_token": "E"})");
  write("chat_template.json", R"({"chat_template": "b"})");
  EXPECT_EQ(chosen(), "a");
  write("chat_template.jinja", "c{{ eos_token }}");
  write("additional_chat_templates/tool_use.jinja", "d");
  EXPECT_EQ(chosen(), "cE");
  EXPECT_EQ(chosen(true), "d");
}

TEST_F(TemplateFiles, ChatTemplateJsonComesLast) {
  write("tokenizer_config.json", "{}");
  write("chat_template.json", R"({"chat_template": "b"})");
  EXPECT_EQ(chosen(), "b");
}

TEST_F(TemplateFiles, SaysWhatToDoWhereThereIsNone) {
  write("tokenizer_config.json", "{}");
  EXPECT_SAYS(message_of<base::ModelError>([&] { (void)chosen(); }), "chat_template.jinja");
  write("tokenizer_config.json", R"({"chat_template": 3})");
  EXPECT_SAYS(message_of<base::ModelError>([&] { (void)chosen(); }), "neither a text nor a list");
}

}  // namespace
}  // namespace retort::chat
