#include "retort/pipeline/prompt_reader.h"

#include "retort/chat/encode.h"

namespace retort::pipeline {

PromptReader::PromptReader(base::Path model, const ModelText& text, bool bos)
    : model_(std::move(model)), text_(text), bos_(bos) {}

std::vector<std::int32_t> PromptReader::ids_of(const base::Json& line) {
  if (line.contains("prompt")) return text_.prompt_ids(line.at("prompt").get<std::string>(), bos_);
  const auto conversation = chat::read_conversation(line, "messages");
  if (!template_)
    template_ = chat::choose_template(chat::find_templates(model_), !conversation.tools.is_null());
  return chat::encode_conversation(*template_, text_.tokenizer, conversation, {.add_generation_prompt = true})
      .ids;
}

}  // namespace retort::pipeline
