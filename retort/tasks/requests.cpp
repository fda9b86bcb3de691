#include "retort/tasks/requests.h"

#include <algorithm>
#include <utility>

#include "retort/base/error.h"
#include "retort/chat/code_points.h"
#include "retort/io/quote.h"
#include "retort/tasks/few_shot.h"
#include "retort/tasks/gold.h"
#include "retort/tasks/messages.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;
using base::require;

// As re.split(r"\s+", text) counts, so that a text of white space has two words.
std::int64_t words_in(std::string_view text) {
  std::int64_t words = 1;
  bool in_space = false;
  chat::for_each_character(text, [&](std::string_view one) {
    const bool space = chat::leading_space(one) > 0;
    words += space && !in_space ? 1 : 0;
    in_space = space;
  });
  return words;
}

std::string text_of(const Json& value, const DocField& field, const std::string& where) {
  require<DataError>(value.is_string(), where, ": ", field.name(), " is ", io::shown(value),
                     ", expected a text.");
  return value.get<std::string>();
}

// A choice by its number where there are choices, the first of a list, else the text itself.
std::string answer_text(const Json& target, const std::vector<std::string>& choices, const DocField& field,
                        const std::string& where) {
  const bool is_index = target.is_number_integer() || target.is_boolean();
  if (!choices.empty() && is_index)
    return choices[static_cast<std::size_t>(choice_of(target, choices, where))];
  if (target.is_array() && !target.empty()) return text_of(target[0], field, where);
  return text_of(target, field, where);
}

class Preparer {
 public:
  Preparer(Task task, TaskDocuments documents, const PromptOptions& options)
      : options_(options),
        features_(std::move(documents.evaluated.features)),
        rows_(std::move(documents.evaluated.rows)),
        sampler_(task.fewshot.sampler, std::move(documents.fewshot), task.name) {
    out_.task = std::move(task);
    require<DataError>(!rows_.empty(), out_.task.name, ": has no documents; give it one.");
    require<DataError>(out_.task.shots() == 0 || documents.has_pool, out_.task.name,
                       ": has no documents for examples; ask for none.");
  }

  PreparedTask run() {
    out_.documents_in_split = std::ssize(rows_);
    if (options_.limit) rows_.resize(std::min(rows_.size(), static_cast<std::size_t>(*options_.limit)));
    out_.several_contexts = has_choices() && text_field(0).is_number_integer();
    for (std::size_t i = 0; i < rows_.size(); ++i) out_.documents.push_back(document(i));
    out_.rows = std::move(rows_);
    return std::move(out_);
  }

 private:
  const Task& task() const { return out_.task; }
  bool has_choices() const { return task().doc_to_choice.is_given(); }
  DocView view(std::size_t i) const {
    return {rows_[i], features_, base::join(task().name, ": document ", i)};
  }
  Json text_field(std::size_t i) const { return task().doc_to_text.as_text(view(i), has_choices()); }

  PreparedDocument document(std::size_t i) {
    const DocView doc = view(i);
    PreparedDocument prepared;
    prepared.id = static_cast<std::int64_t>(i);
    prepared.target = task().doc_to_target.as_target(doc, has_choices());
    if (has_choices()) prepared.choices = task().doc_to_choice.as_choices(doc);
    if (task().output_type == OutputType::loglikelihood_rolling) {
      add_rolling(prepared, doc);
      return prepared;
    }
    const std::string prefix = prefix_of(doc);
    auto messages = before(doc);
    switch (task().output_type) {
      case OutputType::multiple_choice:
        add_choices(prepared, doc, messages, prefix);
        break;
      case OutputType::loglikelihood:
        prepared.requests = {{RequestKind::loglikelihood, context(doc, std::move(messages), prefix),
                              text_of(prepared.target, task().doc_to_target, doc.where)}};
        break;
      default:
        prepared.gold = gold_texts(prepared.target, prepared.choices, doc.where);
        prepared.requests = {{RequestKind::generate_until, context(doc, std::move(messages), prefix), ""}};
    }
    return prepared;
  }

  std::string prefix_of(const DocView& doc) const {
    if (!task().gen_prefix.is_given()) return {};
    const Json prefix = task().gen_prefix.column_or_text(doc);
    return prefix.is_null() ? "" : text_of(prefix, task().gen_prefix, doc.where);
  }

  // The system message and the examples.
  std::vector<Message> before(const DocView& doc) {
    std::vector<Message> messages;
    const auto description = task().description.as_prefix(doc);
    const auto system =
        delimited(options_.system_instruction.value_or(""), description, task().fewshot_delimiter);
    if (!system.empty()) messages.push_back({"system", system, ""});
    if (task().shots() == 0) return messages;
    const bool may_draw_itself = task().fewshot.split == task().test_split;
    for (const Json& example : sampler_.sample(task().shots(), may_draw_itself ? &doc.doc : nullptr))
      add_example(messages, {example, features_, doc.where + ": an example"});
    return messages;
  }

  void add_example(std::vector<Message>& messages, const DocView& example) const {
    const FewShotOptions& fewshot = task().fewshot;
    const Json question = fewshot.doc_to_text.as_text(example, has_choices());
    std::vector<std::string> choices;
    if (fewshot.doc_to_choice.is_given()) choices = fewshot.doc_to_choice.as_choices(example);
    const Json target = fewshot.doc_to_target.as_target(example, has_choices());
    Turn turn{"", std::nullopt, fewshot.gen_prefix.as_prefix(example), fewshot.target_delimiter,
              fewshot.fewshot_delimiter};
    if (out_.several_contexts) {
      turn.question = choices[static_cast<std::size_t>(choice_of(question, choices, example.where))];
      choices.clear();
    } else {
      turn.question = text_of(question, fewshot.doc_to_text, example.where);
    }
    if (!target.is_null()) turn.answer = answer_text(target, choices, fewshot.doc_to_target, example.where);
    add_turn(messages, turn);
  }

  std::string context(const DocView& doc, std::vector<Message> messages, const std::string& prefix) const {
    const auto question =
        text_of(task().doc_to_text.as_text(doc, has_choices()), task().doc_to_text, doc.where);
    return context_of(question, std::move(messages), prefix, task().target_delimiter);
  }
  std::string context_of(const std::string& question, std::vector<Message> messages,
                         const std::string& prefix, const std::string& target_delimiter) const {
    add_turn(messages, {question, std::nullopt, prefix, target_delimiter, ""});
    return written(messages, options_, !prefix.empty());
  }

  // What stands between a context and a choice.
  std::string delimiter() const {
    if (!options_.chat) return task().target_delimiter;
    const Json& prefix = task().gen_prefix.written();
    const bool needs = prefix.is_string() && !prefix.get_ref<const std::string&>().empty() &&
                       !ends_with_space(prefix.get_ref<const std::string&>());
    return needs ? task().target_delimiter : "";
  }

  void add_choices(PreparedDocument& prepared, const DocView& doc, const std::vector<Message>& messages,
                   const std::string& prefix) const {
    const auto between = delimiter();
    if (out_.several_contexts) {
      const auto continuation = between + python_text_of(prepared.target, doc.where);
      prepared.gold =
          gold_choices(text_field(static_cast<std::size_t>(prepared.id)), prepared.choices, doc.where);
      for (const auto& choice : prepared.choices)
        prepared.requests.push_back(
            {RequestKind::loglikelihood, context_of(choice, messages, prefix, ""), continuation});
    } else {
      prepared.gold = gold_choices(prepared.target, prepared.choices, doc.where);
      const auto one = context(doc, messages, prefix);
      for (const auto& choice : prepared.choices)
        prepared.requests.push_back({RequestKind::loglikelihood, one, between + choice});
    }
    if (!task().has(Metric::acc_mutual_info)) return;
    for (const auto& choice : prepared.choices)
      prepared.requests.push_back({RequestKind::loglikelihood, "", between + choice});
  }

  void add_rolling(PreparedDocument& prepared, const DocView& doc) const {
    const auto text = text_of(prepared.target, task().doc_to_target, doc.where);
    prepared.words = words_in(text);
    prepared.bytes = std::ssize(text);
    prepared.requests = {{RequestKind::loglikelihood_rolling, "", text}};
  }

  const PromptOptions& options_;
  std::vector<std::string> features_;
  std::vector<Json> rows_;
  ExampleSampler sampler_;
  PreparedTask out_;
};

}  // namespace

PreparedTask prepare(Task task, TaskDocuments documents, const PromptOptions& options) {
  require<base::UsageError>(!options.limit || *options.limit > 0, "The limit of documents is ",
                            options.limit.value_or(0), ", expected at least 1.");
  return Preparer(std::move(task), std::move(documents), options).run();
}

ChatWriter chat_writer(chat::ChatTemplate chat_template) {
  return [chat_template](const Json& messages, bool add_generation_prompt) {
    const chat::RenderOptions options{.add_generation_prompt = add_generation_prompt,
                                      .continue_final_message = !add_generation_prompt};
    chat::Conversation conversation;
    conversation.messages = messages;
    try {
      return chat_template.render(conversation, options).text;
    } catch (const DataError&) {
      std::erase_if(conversation.messages.get_ref<Json::array_t&>(),
                    [](const Json& message) { return message.at("role") == "system"; });
      if (conversation.messages.size() == messages.size()) throw;
    }
    return chat_template.render(conversation, options).text;
  };
}

}  // namespace retort::tasks
