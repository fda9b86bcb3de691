// A chat template; behind a line "%%" a conversation as JSON, else one that is made here.
#include "retort/chat/chat_template.h"

#include "fuzz/harness.h"
#include "retort/base/utf8.h"

using namespace retort;

namespace {

constexpr std::string_view kConversation = R"({"messages": [
  {"role": "system", "content": "Be brief. <|im_end|>"},
  {"role": "user", "content": [{"type": "text", "text": " Gr\u00fc\u00dfe "}, {"type": "image"}]},
  {"role": "assistant", "content": "", "reasoning_content": "a\nb", "tool_calls": [
    {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5, null, true]}}}]},
  {"role": "tool", "content": "{}", "tool_call_id": "1"},
  {"role": "user", "content": "x"}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}]})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kCut = "\n%%\n";
  const auto input = fuzz::text_of(data, size);
  const auto source = input.substr(0, input.find(kCut));
  const auto given = input.substr(std::min(source.size() + kCut.size(), input.size()));
  fuzz::taken([&] {
    base::Json json;
    try {
      json = base::parse_json(given.empty() ? kConversation : given);
    } catch (const base::JsonFault&) {
      return;
    }
    const auto conversation = chat::read_conversation(json, "conversation");
    const auto chat_template =
        chat::ChatTemplate::parse(source, "template", {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    chat::RenderOptions options;
    options.now = std::tm{};
    for (const bool prompt : {true, false}) {
      options.add_generation_prompt = prompt;
      options.continue_final_message = !prompt;
      fuzz::taken([&] {
        const auto rendered = chat_template.render(conversation, options);
        fuzz::require(base::is_utf8(rendered.text), "what is rendered is UTF-8");
        for (const auto& [begin, end] : rendered.answers)
          fuzz::require(begin <= end && end <= rendered.text.size(), "an answer lies in the text");
      });
    }
  });
  return 0;
}
