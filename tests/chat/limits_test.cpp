// What a template may not do: other constructs, and work without an end.
#include <gtest/gtest.h>

#include <string>

#include "retort/base/error.h"
#include "retort/chat/chat_template.h"
#include "support/message_of.h"

namespace retort::chat {
namespace {

using test::message_of;

std::string refusal(const std::string& source) {
  return message_of<base::ModelError>([&] { (void)ChatTemplate::parse(source, "model"); });
}

std::string failure(const std::string& source) {
  Conversation conversation;
  conversation.add("user", "x");
  const auto chat_template = ChatTemplate::parse(source, "model");
  return message_of<base::DataError>([&] { (void)chat_template.render(conversation); });
}

TEST(ChatTemplate, RefusesByNameAndLineWhatItLacks) {
  EXPECT_SAYS(refusal("a\nb\n{% include 'x' %}"),
              "line 3: it uses the statement \"include\", which Retort lacks");
  EXPECT_SAYS(refusal("\n{{ x | wordwrap }}"), "line 2: it uses the filter \"wordwrap\", which Retort lacks");
  EXPECT_SAYS(refusal("{{ x.encode() }}"), "the method \"encode\", which Retort lacks");
  EXPECT_SAYS(refusal("{{ x.__class__ }}"), "begins with an underscore");
  EXPECT_SAYS(refusal("{% for x in y recursive %}{% endfor %}"), "recursive");
  EXPECT_SAYS(refusal("{% import 'os' as os %}"), "\"import\"");
  EXPECT_SAYS(refusal("{{ f(*x) }}"), "unpacked");
  EXPECT_SAYS(refusal("{% wonder %}"), "there is no statement \"wonder\"");
  EXPECT_SAYS(refusal("{% break %}"), "outside of a loop");
  EXPECT_SAYS(refusal("{% if x %}"), "the template ends where");
  EXPECT_SAYS(refusal("{{ 'x"), "has no end");
  EXPECT_SAYS(refusal("\xFF"), "not UTF-8");
  EXPECT_SAYS(refusal(std::string(2 << 20, 'x')), "more than 1 MiB");
}

TEST(ChatTemplate, RefusesDeepSyntaxWithoutRunningOutOfStack) {
  const auto repeated = [](const std::string& part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part;
    return text;
  };
  EXPECT_SAYS(refusal("{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}"), "200 deep");
  EXPECT_SAYS(refusal("{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}"), "200 deep");
  EXPECT_SAYS(refusal("{{ " + repeated("not ", 100000) + "x }}"), "200 deep");
  EXPECT_SAYS(refusal("{{ " + repeated("-", 100000) + "1 }}"), "200 deep");
  EXPECT_SAYS(refusal("{{ 1" + repeated(" + 1", 100000) + " }}"), "200 deep");
  EXPECT_SAYS(refusal("{{ x" + repeated(".a", 100000) + " }}"), "200 deep");
  EXPECT_SAYS(refusal("{{ x" + repeated("|trim", 100000) + " }}"), "200 deep");
  EXPECT_SAYS(refusal(repeated("{% if x %}", 50000)), "200 deep");
  EXPECT_SAYS(refusal("{% set " + repeated("(", 100000) + "x" + repeated(")", 100000) + " %}"), "200 deep");
}

TEST(ChatTemplate, EndsSoonWhateverItDoes) {
  const std::string nested =
      "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor "
      "%}{% endfor %}";
  EXPECT_SAYS(failure(nested), "20 million steps");
  EXPECT_SAYS(failure("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "more deeply");
  EXPECT_SAYS(failure("{% for a in range(99999) %}{{ 'x' * 99999 }}{% endfor %}"), "MiB");
  EXPECT_SAYS(failure("{{ 'x' * 999999999999 }}"), "512 MiB");
  EXPECT_SAYS(failure("{{ [1] * 999999999999 }}"), "512 MiB");
  EXPECT_SAYS(failure("{{ range(999999999999) }}"), "100,000");
  EXPECT_SAYS(
      failure("{% set n = namespace(x='x') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}"),
      "512 MiB");
  EXPECT_SAYS(
      failure("{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"),
      "200 deep");
  EXPECT_SAYS(failure("{{ 9223372036854775807 + 1 }}"), "64 bits");
}

TEST(ChatTemplate, KeepsNothingOfNamespacesThatHoldEachOther) {
  Conversation conversation;
  conversation.add("user", "x");
  const auto chat_template = ChatTemplate::parse(
      "{% set n = namespace() %}{% set n.self = n %}{% macro f() %}{{ n.self.self is defined }}{% endmacro %}"
      "{% set n.f = f %}{% for x in [n] %}{% set n.loop = loop %}{% endfor %}{{ n.f() }}",
      "model");
  EXPECT_EQ(chat_template.render(conversation).text, "True");  // the address sanitizer looks for the rest
}

TEST(ChatTemplate, SaysWhyAndWhereItRefusesAConversation) {
  EXPECT_SAYS(failure("\n\n{{ raise_exception('Only users.') }}"),
              "model: the chat template, line 3: it refuses the conversation: \"Only users.\"");
  EXPECT_SAYS(failure("{{ messages[0].tool.name }}"), "has no attribute \"tool\"");
  EXPECT_SAYS(failure("{{ messages.append(1) }}"), "the sandbox refuses");
}

TEST(Conversation, RefusesMessagesWithoutRoles) {
  const auto refused = [](const char* json) {
    return message_of<base::DataError>(
        [&] { (void)read_conversation(base::Json::parse(json), "chats.jsonl:3"); });
  };
  EXPECT_SAYS(refused("[{\"content\": \"x\"}]"), "chats.jsonl:3: message 1 has no text \"role\"");
  EXPECT_SAYS(refused("[{\"role\": \"user\", \"content\": 1}]"), "message 1 has the content \"1\"");
  EXPECT_SAYS(refused("[]"), "no message");
  EXPECT_SAYS(refused("{\"x\": 1}"), "expected a conversation");
  EXPECT_SAYS(refused("{\"messages\": [{\"role\": \"user\"}], \"tools\": 1}"), "\"tools\" is no list");
}

}  // namespace
}  // namespace retort::chat
