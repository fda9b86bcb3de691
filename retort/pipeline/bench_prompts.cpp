#include "retort/pipeline/bench_prompts.h"

#include <algorithm>
#include <filesystem>

#include "retort/architecture/hf_config.h"
#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/bench/operands.h"
#include "retort/eval/generation_config.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/prompt_reader.h"
#include "retort/pipeline/prompts.h"

namespace retort::pipeline {
namespace {

using base::join;
using base::UsageError;
using Ids = std::vector<std::int32_t>;

bool is_shape_file(const base::Path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && path.extension() == ".json";
}

architecture::Config shape_of(const base::Path& path, record::Observer& observer) {
  if (!is_shape_file(path)) return inspect_shape(path, observer);
  std::vector<std::string> notes;
  auto config =
      architecture::parse_hf_config(base::read_file(path, std::size_t{1} << 20), path.string(), &notes);
  for (const auto& note : notes) observer.message(record::Level::warning, note);
  return config;
}

// Beside the configuration, where there is one.
std::optional<ModelText> text_of_shape(const base::Path& path, const architecture::Config& config) {
  const auto directory = is_shape_file(path) ? path.parent_path() : path;
  const auto here = directory.empty() ? base::Path(".") : directory;
  const auto has = [&](const char* name) {
    std::error_code ignored;
    return std::filesystem::exists(here / name, ignored);
  };
  const bool is_gguf_file = here == path && !std::filesystem::is_directory(here);
  if (!is_gguf_file && !has("tokenizer.json") && !has("tokenizer.model") && !has("tekken.json")) return {};
  return read_model_text(here, config);
}

eval::TextsOptions options_of(const BenchGenerationRequest& request, const TimedModel& model) {
  eval::TextsOptions options{.max_new_tokens = request.new_tokens};
  if (model.text) options.ids_without_token = model.text->ids_without_token(model.config.vocab_size);
  if (request.free_length)
    options.stop_ids =
        model.random_weights ? model.config.eos_token_ids : eval::end_of_text_ids(model.path, model.config);
  return options;
}

std::vector<Ids> ids_of_file(const BenchGenerationRequest& request, const TimedModel& model,
                             const std::vector<base::Json>& lines) {
  PromptReader reader(model.path, *model.text, request.bos);
  std::vector<Ids> all;
  for (const auto& line : lines) {
    all.push_back(reader.ids_of(line));
    base::require<UsageError>(!all.back().empty(), request.prompts.string(), ": prompt ", all.size(),
                              " has no tokens for ", model.name, "; write some text, or leave it out.");
  }
  return all;
}

// As long as the prompts of a model that has a tokenizer.
std::vector<Ids> ids_as_long(const std::vector<Ids>& others, const architecture::Config& config) {
  std::vector<Ids> all;
  for (const auto& other : others)
    all.push_back(bench::random_ids(std::ssize(other), config.vocab_size, all.size()));
  return all;
}

std::vector<std::vector<Ids>> ids_of_file(const BenchGenerationRequest& request,
                                          const std::vector<TimedModel>& models, std::size_t baseline) {
  const auto lines = read_prompts(request.prompts);
  std::vector<std::vector<Ids>> by_model(models.size());
  const std::vector<Ids>* example = nullptr;
  for (std::size_t i = 0; i < models.size(); ++i)
    if (models[i].text) {
      by_model[i] = ids_of_file(request, models[i], lines);
      if (!example || i == baseline) example = &by_model[i];
    }
  base::require<UsageError>(example, request.prompts.string(),
                            ": expected a model with a tokenizer that reads the prompts, found none; give "
                            "--prompt-tokens in place of --prompts.");
  for (std::size_t i = 0; i < models.size(); ++i)
    if (!models[i].text) by_model[i] = ids_as_long(*example, models[i].config);
  return by_model;
}

std::vector<eval::Prompt> prompts_of(const std::vector<Ids>& ids) {
  std::vector<eval::Prompt> prompts;
  for (const auto& one : ids) prompts.push_back({one, prompts.size()});
  return prompts;
}

std::vector<TimedWork> works_of_file(const BenchGenerationRequest& request,
                                     const std::vector<TimedModel>& models, std::size_t baseline) {
  std::vector<std::vector<eval::Prompt>> by_model;
  for (const auto& ids : ids_of_file(request, models, baseline)) by_model.push_back(prompts_of(ids));
  std::vector<TimedWork> works;
  for (const auto batch : request.batches) works.push_back({batch, by_model});
  return works;
}

std::vector<TimedWork> random_works(const BenchGenerationRequest& request,
                                    const std::vector<TimedModel>& models) {
  auto vocab_size = models.front().config.vocab_size;
  for (const auto& model : models) vocab_size = std::min(vocab_size, model.config.vocab_size);
  std::vector<TimedWork> works;
  for (const auto tokens : request.prompt_tokens)
    for (const auto batch : request.batches) {
      std::vector<Ids> ids;
      const auto texts = base::to_size(request.texts > 0 ? request.texts : batch);
      while (ids.size() < texts) ids.push_back(bench::random_ids(tokens, vocab_size, ids.size()));
      works.push_back({batch, std::vector(models.size(), prompts_of(ids))});
    }
  return works;
}

void check(const BenchGenerationRequest& request, const TimedModel& model,
           const std::vector<eval::Prompt>& prompts) {
  const auto context = architecture::longest_context(model.config);
  for (const auto& prompt : prompts) {
    const auto length = std::ssize(prompt.ids);
    const auto room = request.free_length ? std::int64_t{1} : request.new_tokens;
    base::require<UsageError>(length + room <= context, "bench generate: prompt ", prompt.number + 1, " has ",
                              length, " tokens of ", model.name, "; with ", room,
                              " new ones expected at most ", context, ", so shorten it",
                              request.free_length ? "." : ", or lower --new-tokens.");
    eval::check_prompt(model.config, prompt.ids, request.new_tokens);
  }
}

}  // namespace

std::vector<TimedModel> inspect_timed_models(const BenchGenerationRequest& request,
                                             record::Observer& observer) {
  std::vector<TimedModel> models;
  const auto add = [&](const std::string& name, bool random_weights) {
    const auto same = std::ranges::count(models, base::Path(name), &TimedModel::path);
    models.push_back({.name = same == 0 ? name : join(name, " (", same + 1, ")"),
                      .path = name,
                      .random_weights = random_weights,
                      .config = random_weights ? shape_of(name, observer) : inspect_model(name, observer),
                      .text = {},
                      .options = {},
                      .weights = {}});
    auto& model = models.back();
    model.text = random_weights ? text_of_shape(name, model.config) : read_model_text(name, model.config);
    model.options = options_of(request, model);
  };
  for (const auto& name : request.models) add(name, false);
  for (const auto& name : request.shapes) add(name, true);
  return models;
}

std::vector<TimedWork> timed_works(const BenchGenerationRequest& request,
                                   const std::vector<TimedModel>& models, std::size_t baseline) {
  auto works =
      request.prompts.empty() ? random_works(request, models) : works_of_file(request, models, baseline);
  for (const auto& work : works)
    for (std::size_t i = 0; i < models.size(); ++i) check(request, models[i], work.by_model[i]);
  return works;
}

bool same_ids(const std::vector<TimedWork>& works, std::size_t one, std::size_t other) {
  return std::ranges::all_of(works, [&](const TimedWork& work) {
    return std::ranges::equal(work.by_model[one], work.by_model[other], {}, &eval::Prompt::ids,
                              &eval::Prompt::ids);
  });
}

}  // namespace retort::pipeline
