// What `retort generate` does with a model: one text, or a file of them.
#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/machine.h"
#include "retort/eval/generate_texts.h"
#include "retort/eval/memory_plan.h"
#include "retort/ops/path.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/prompt_reader.h"
#include "retort/pipeline/prompts.h"
#include "retort/pipeline/stop_texts.h"
#include "retort/pipeline/text_model.h"
#include "retort/pipeline/torch_errors.h"

namespace retort::pipeline {
namespace {

base::Json to_json(const eval::Sampling& s) {
  return {{"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"repetition_penalty", s.repetition_penalty},
          {"seed", s.seed}};
}

const char* word_of(eval::StopReason reason) {
  switch (reason) {
    case eval::StopReason::end_of_text:
      return "end of text";
    case eval::StopReason::context:
      return "context";
    case eval::StopReason::asked:
      return "stop text";
    case eval::StopReason::max_new_tokens:
      break;
  }
  return "max new tokens";
}

// A model that is about to be loaded, and how it makes texts.
class Generator {
 public:
  Generator(const ModelRequest& request, const TextRequest& texts, record::Observer& observer)
      : request_(texts),
        available_memory_(request.available_memory),
        observer_(observer),
        model_(request, texts.sampling, observer),
        prompts_(model_.path, model_.text, texts.bos),
        options_{.sampling = model_.sampling,
                 .max_new_tokens = texts.max_new_tokens,
                 .texts_at_once = texts.texts_at_once,
                 .stop_ids = model_.stop_ids,
                 .ids_without_token = model_.ids_without_token},
        stops_(model_.text.tokenizer, texts.stop) {}

  const eval::TextsOptions& options() const { return options_; }
  const text::Tokenizer& tokenizer() const { return model_.text.tokenizer; }

  std::vector<std::int32_t> ids_of(const base::Json& line) { return prompts_.ids_of(line); }

  // Refuses, before the model is loaded, what does not fit.
  void generate(std::span<const eval::Prompt> prompts, eval::TextsListener listener) {
    for (const auto& prompt : prompts) eval::check_prompt(model_.config, prompt.ids, options_.max_new_tokens);
    const auto available = available_bytes(available_memory_, model_.device);
    const auto plan = eval::plan_texts_within(available, model_.config, model_.item_bytes(), prompts,
                                              options_, ops::path_of(model_.device), eval::WeightsFrom::file);
    observer_.message(record::Level::debug, "memory plan\n" + shard::describe(plan));
    shard::require_fits(plan, available);
    stops_.end_texts_of(listener);
    auto weights = model_.load();
    const double start = base::monotonic_seconds();
    eval::generate_texts(weights, prompts, options_, listener);
    seconds_ = base::monotonic_seconds() - start;
  }

  // From the loaded model to the last token.
  double seconds() const { return seconds_; }

  // Up to the text that ends it.
  std::string answer_of(std::span<const std::int32_t> ids) const {
    auto answer = tokenizer().decode(ids);
    for (const auto& stop : request_.stop) answer = answer.substr(0, answer.find(stop));
    return answer;
  }

 private:
  const TextRequest& request_;
  const AvailableMemory& available_memory_;
  record::Observer& observer_;
  TextModel model_;
  PromptReader prompts_;
  eval::TextsOptions options_;
  StopTexts stops_;
  double seconds_ = 0;
};

base::Json generate_text(const GenerateRequest& request, record::Observer& observer) {
  Generator generator(request.model, request.text, observer);
  const std::vector<eval::Prompt> prompts = {{generator.ids_of({{"prompt", request.prompt}}), 0}};
  eval::Generation made;
  generator.generate(prompts, {.done = [&](std::size_t, const auto& generation) { made = generation; }});
  const auto answer = std::span(made.ids).subspan(static_cast<std::size_t>(made.prompt_tokens));
  return {{"ids", made.ids},
          {"prompt_tokens", made.prompt_tokens},
          {"prompt", request.prompt},
          {"text", generator.tokenizer().decode(made.ids)},
          {"answer", generator.answer_of(answer)}};
}

// What the answers depend on besides the prompts.
std::string settings_of(const GenerateFileRequest& request, const eval::TextsOptions& options) {
  const base::Json all = {{"model", weight_checksums(request.model.model)},
                          {"dtype", request.model.dtype},
                          {"device", request.model.device},
                          {"sampling", to_json(options.sampling)},
                          {"max_new_tokens", options.max_new_tokens},
                          {"stop", request.text.stop},
                          {"bos", request.text.bos}};
  const auto text = all.dump();
  base::Hasher hash;
  hash.update(text.data(), text.size());
  return hash.hex().substr(0, 16);
}

base::Json line_of(const base::Json& asked, const eval::Generation& made, const Generator& generator) {
  const auto answer = std::span(made.ids).subspan(static_cast<std::size_t>(made.prompt_tokens));
  const char* key = asked.contains("prompt") ? "prompt" : "messages";
  return {{key, asked.at(key)},
          {"answer", generator.answer_of(answer)},
          {"answer_ids", std::vector<std::int32_t>(answer.begin(), answer.end())},
          {"prompt_tokens", made.prompt_tokens},
          {"ended_by", word_of(made.reason)}};
}

base::Json generate_lines(const GenerateFileRequest& request, record::Observer& observer) {
  const auto lines = read_prompts(request.prompts);
  Generator generator(request.model, request.text, observer);
  AnswerFile answers(request.out, lines, settings_of(request, generator.options()));
  const auto first = answers.count();
  std::vector<eval::Prompt> prompts;
  for (auto i = first; i < lines.size(); ++i) prompts.push_back({generator.ids_of(lines[i]), i});
  answers.open();
  if (first > 0)
    observer.message(record::Level::info, base::join(request.out.string(), ": goes on behind ", first,
                                                     " answers of ", lines.size()));
  std::int64_t tokens = 0, ended = static_cast<std::int64_t>(first);
  const auto done = [&](std::size_t prompt, const eval::Generation& made) {
    answers.add(first + prompt, line_of(lines[first + prompt], made, generator));
    tokens += std::ssize(made.ids) - made.prompt_tokens;
    observer.progress("generate: texts", ++ended, std::ssize(lines));
  };
  if (!prompts.empty()) generator.generate(prompts, {.done = done});
  answers.finish();
  return {{"texts", lines.size()},
          {"made", lines.size() - first},
          {"new_tokens", tokens},
          {"seconds", generator.seconds()},
          {"sampling", to_json(generator.options().sampling)}};
}

}  // namespace

base::Json generate(const GenerateRequest& request, record::Observer& observer) {
  base::Json generation;
  translate_torch_errors([&] { generation = generate_text(request, observer); });
  return generation;
}

base::Json generate_file(const GenerateFileRequest& request, record::Observer& observer) {
  base::Json result;
  translate_torch_errors([&] { result = generate_lines(request, observer); });
  return result;
}

}  // namespace retort::pipeline
