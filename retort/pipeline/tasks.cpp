#include "retort/pipeline/tasks.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "retort/base/bytes.h"
#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/base/output_file.h"
#include "retort/chat/template_files.h"
#include "retort/comm/lead.h"
#include "retort/eval/generation_config.h"
#include "retort/ops/threads.h"
#include "retort/parquet/table.h"
#include "retort/pipeline/stop_texts.h"

namespace retort::pipeline {
namespace {

void read_parquet(const base::Path& file, const std::function<void(base::Json row)>& take) {
  const auto rows = parquet::open(file)->read({});
  for (base::Json row; rows->next(row);) take(std::move(row));
}

tasks::DataOptions data_of(const tasks::TaskOptions& options) {
  return {.directory = options.data, .read_parquet = read_parquet};
}

std::vector<tasks::Task> read_tasks(const tasks::TaskOptions& options) {
  const std::vector<base::Path> files(options.files.begin(), options.files.end());
  auto read = tasks::read_tasks(files);
  if (options.num_fewshot >= 0)
    for (auto& task : read) (void)tasks::set_num_fewshot(task, options.num_fewshot);
  return read;
}

std::optional<std::int32_t> named_token(const chat::TemplateVariables& names, const char* name,
                                        const text::Tokenizer& tokenizer) {
  for (const auto& [key, token] : names)
    if (key == name) return tokenizer.token_to_id(token);
  return {};
}

std::optional<std::int32_t> or_else(std::optional<std::int32_t> named, std::int32_t known) {
  if (named || known < 0) return named;
  return known;
}

tasks::Encoder encoder_of(const base::Path& directory, const ModelText& text,
                          const architecture::Config& config) {
  const auto names = chat::find_templates(directory).variables;
  return tasks::Encoder(text.tokenizer,
                        {.max_length = config.max_position_embeddings,
                         .bos = or_else(named_token(names, "bos_token", text.tokenizer), text.special.bos),
                         .eos = or_else(named_token(names, "eos_token", text.tokenizer), text.special.eos),
                         .add_special_tokens = {}});
}

std::string place_of(const tasks::PreparedTask& task, const tasks::PreparedDocument& document) {
  return base::join(task.task.name, ": document ", document.id);
}

// A question with its answer.
std::string whole_text(const tasks::PreparedDocument& document) {
  const auto& gold = document.gold;
  const auto which = gold.indices.empty() ? 0 : static_cast<std::size_t>(gold.indices.front());
  const auto& request = document.requests[std::min(which, document.requests.size() - 1)];
  return request.context + (gold.texts.empty() ? request.continuation : gold.texts.front());
}

class TaskEncoding {
 public:
  TaskEncoding(const tasks::PreparedTask& task, const tasks::Encoder& encoder)
      : task_(task), encoder_(encoder) {}

  TaskIds ids() && {
    for (const auto& document : task_.documents)
      for (const auto& request : document.requests) add(request, place_of(task_, document));
    return std::move(ids_);
  }

 private:
  void add(const tasks::Request& request, const std::string& where) {
    switch (request.kind) {
      case tasks::RequestKind::loglikelihood:
        return add_windows({encoder_.pair(request.context, request.continuation, where)});
      case tasks::RequestKind::loglikelihood_rolling:
        return add_windows(encoder_.rolling(request.continuation));
      case tasks::RequestKind::generate_until:
        auto prompt = encoder_.prompt(request.context, task_.task.generation.max_tokens, where);
        count(std::ssize(prompt.ids), prompt.cut);
        ids_.prompts.push_back({.ids = std::move(prompt.ids), .number = ids_.prompts.size()});
    }
  }

  void add_windows(std::vector<tasks::Window> windows) {
    ids_.windows.push_back(std::ssize(windows));
    for (auto& window : windows) {
      count(std::ssize(window.ids), window.cut);
      ids_.ends.push_back({std::move(window.ids), window.scored});
    }
  }

  void count(std::int64_t tokens, std::int64_t cut) {
    ids_.tokens += tokens;
    ids_.longest_tokens = std::max(ids_.longest_tokens, tokens);
    if (cut > 0) ++ids_.cut;
  }

  const tasks::PreparedTask& task_;
  const tasks::Encoder& encoder_;
  TaskIds ids_;
};

// What other ranks have to know of a task.
void put_bytes(std::string& bytes, const TaskIds& ids) {
  base::put_bytes(bytes, ids.ends.size());
  for (const auto& end : ids.ends) {
    base::put_bytes(bytes, end.ids);
    base::put_bytes(bytes, end.scored);
  }
  base::put_bytes(bytes, ids.prompts.size());
  for (const auto& prompt : ids.prompts) base::put_bytes(bytes, prompt.ids);
  base::put_bytes(bytes, ids.max_new_tokens);
}

void get_bytes(base::ByteReader& reader, TaskIds& ids) {
  std::size_t count = 0;
  reader.get(count);
  ids.ends.resize(count);
  for (auto& end : ids.ends) {
    reader.get(end.ids);
    reader.get(end.scored);
  }
  reader.get(count);
  ids.prompts.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    reader.get(ids.prompts[i].ids);
    ids.prompts[i].number = i;
  }
  reader.get(ids.max_new_tokens);
}

// Those of rank 0, on every rank.
void share(std::vector<TaskIds>& all, comm::Group* group) {
  if (!group || group->size() == 1) return;
  std::string bytes;
  base::put_bytes(bytes, all.size());
  for (const auto& ids : all) put_bytes(bytes, ids);
  group->share(bytes);
  if (group->rank() == 0) return;
  base::ByteReader reader(bytes);
  std::size_t count = 0;
  reader.get(count);
  all.resize(count);
  for (auto& ids : all) get_bytes(reader, ids);
}

std::vector<std::string> made(const TaskIds& ids, const Answerer& answerer) {
  auto& parameters = answerer.subject.parameters;
  std::vector<std::string> texts(ids.prompts.size());
  eval::TextsListener listener{.done = [&](std::size_t which, const eval::Generation& generation) {
    const auto answer = std::span(generation.ids).subspan(static_cast<std::size_t>(generation.prompt_tokens));
    texts[which] = tasks::before_stops(answerer.text.tokenizer.decode(answer), ids.stops);
  }};
  StopTexts stops(answerer.text.tokenizer, ids.stops);
  stops.end_texts_of(listener);
  // Hugging Face generates greedily, and still with the penalty that a model's makers set.
  eval::Sampling greedy;
  greedy.repetition_penalty = eval::default_sampling(answerer.directory).repetition_penalty;
  const eval::TextsOptions options{
      .sampling = greedy,
      .max_new_tokens = ids.max_new_tokens,
      .stop_ids = eval::end_of_text_ids(answerer.directory, parameters.config()),
      .ids_without_token = answerer.text.ids_without_token(parameters.config().vocab_size)};
  eval::generate_texts(parameters, ids.prompts, options, listener,
                       parameters.resident() ? nullptr : answerer.group);
  return texts;
}

std::vector<std::string> generated(const TaskIds& ids, const Answerer& answerer) {
  if (ids.prompts.empty()) return {};
  if (!answerer.group || !answerer.subject.parameters.resident()) return made(ids, answerer);
  std::vector<std::string> texts;
  comm::lead(*answerer.group, [&] {
    const ops::Threads threads(answerer.threads);
    texts = made(ids, answerer);
  });
  return texts;
}

// One answer for each request, from the scores of its windows or from its text.
std::vector<std::vector<tasks::Answer>> answers_of(const tasks::PreparedTask& task, const TaskIds& ids,
                                                   std::span<const eval::EndScore> scores,
                                                   std::span<const std::string> texts) {
  std::vector<std::vector<tasks::Answer>> answers;
  std::size_t request = 0, window = 0, text = 0;
  for (const auto& document : task.documents) {
    auto& of_document = answers.emplace_back();
    for (const auto& asked : document.requests) {
      auto& answer = of_document.emplace_back();
      if (asked.kind == tasks::RequestKind::generate_until) {
        answer.text = texts[text++];
        continue;
      }
      answer.is_greedy = true;
      for (std::int64_t i = 0; i < ids.windows[request]; ++i, ++window) {
        answer.log_likelihood += scores[window].log_likelihood;
        answer.is_greedy = answer.is_greedy && scores[window].greedy;
      }
      ++request;
    }
  }
  return answers;
}

}  // namespace

std::vector<tasks::PreparedTask> prepare_tasks(const tasks::TaskOptions& options, const base::Path& model) {
  tasks::PromptOptions prompts;
  if (options.limit > 0) prompts.limit = options.limit;
  if (!options.system.empty()) prompts.system_instruction = options.system;
  if (options.chat)
    prompts.chat =
        tasks::chat_writer(chat::choose_template(chat::find_templates(model), /*with_tools=*/false));
  prompts.fewshot_as_multiturn = options.multiturn;
  std::vector<tasks::PreparedTask> prepared;
  for (auto& task : read_tasks(options)) {
    auto documents = tasks::read_documents(task, data_of(options));
    prepared.push_back(tasks::prepare(std::move(task), std::move(documents), prompts));
  }
  return prepared;
}

std::vector<data::MeasuredTexts> texts_of_tasks(const tasks::TaskOptions& options) {
  auto alone = options;  // without examples, which are other documents
  alone.num_fewshot = 0;
  alone.chat = false;
  std::vector<data::MeasuredTexts> all;
  if (options.files.empty()) return all;
  for (const auto& task : prepare_tasks(alone, {})) {
    auto& of_task = all.emplace_back(data::MeasuredTexts{task.task.name, {}});
    for (const auto& document : task.documents) of_task.texts.push_back(whole_text(document));
  }
  return all;
}

std::vector<base::Path> files_of_tasks(const tasks::TaskOptions& options) {
  std::vector<base::Path> files(options.files.begin(), options.files.end());
  for (const auto& task : read_tasks(options)) {
    std::vector<std::string> splits{task.evaluated_split()};
    if (task.shots() > 0 && task.fewshot.split) splits.push_back(*task.fewshot.split);
    for (const auto& split : splits)
      std::ranges::copy(tasks::files_of(task, split, data_of(options)), std::back_inserter(files));
  }
  return files;
}

std::vector<TaskIds> encode_tasks(const std::vector<tasks::PreparedTask>& prepared,
                                  const base::Path& directory, const ModelText& text,
                                  const architecture::Config& config) {
  const auto encoder = encoder_of(directory, text, config);
  std::vector<TaskIds> all;
  for (const auto& task : prepared) {
    auto& ids = all.emplace_back(TaskEncoding(task, encoder).ids());
    ids.max_new_tokens = task.task.generation.max_tokens;
    ids.stops = encoder.stops(task.task.generation.until);
  }
  return all;
}

void say_what_was_cut(const std::vector<tasks::PreparedTask>& prepared, const std::vector<TaskIds>& ids,
                      const architecture::Config& config, record::Observer& observer) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i].cut > 0)
      observer.message(record::Level::warning,
                       base::join("task ", prepared[i].task.name, ": ", ids[i].cut,
                                  " requests are longer than the ", config.max_position_embeddings,
                                  " tokens that the model was made for; their beginnings are left out"));
}

shard::MemoryPlan plan_tasks(const architecture::Config& config, std::int64_t item_bytes,
                             const std::vector<TaskIds>& all, ops::Path path, eval::WeightsFrom from) {
  std::int64_t longest = 1;
  for (const auto& ids : all) longest = std::max(longest, ids.longest_tokens);
  auto plan =
      eval::plan_scoring(config, nullptr, item_bytes, longest, path, {.tokens = eval::EndSettings().tokens});
  const auto scoring = plan.total_bytes() - plan.bytes_of(eval::kModelWeights);
  std::int64_t making = 0, requests = 0;
  for (const auto& ids : all) {
    requests += ids.tokens * static_cast<std::int64_t>(sizeof(std::int32_t));
    if (ids.prompts.empty()) continue;
    const auto of_texts =
        eval::plan_texts(config, item_bytes, ids.prompts, {.max_new_tokens = ids.max_new_tokens}, path, from);
    making = std::max(making, of_texts.total_bytes() - of_texts.bytes_of(eval::kModelWeights));
  }
  // Scoring is over when texts are made, so the larger of both counts.
  if (making > scoring) plan.items.push_back({"generated texts, beyond scoring", making - scoring});
  plan.items.push_back({"requests of tasks", requests});
  return plan;
}

base::Json AnsweredTasks::to_json() const {
  auto json = tasks::results_json(tasks, scores);
  json["tokens"] = tokens;
  json["seconds"] = seconds;
  return json;
}

AnsweredTasks answer_tasks(std::vector<tasks::PreparedTask> prepared, std::vector<TaskIds> all,
                           const Answerer& answerer, const eval::EndsProgress& progress) {
  share(all, answerer.group);
  std::int64_t asked = 0, done = 0;
  for (const auto& ids : all) asked += std::ssize(ids.ends) + std::ssize(ids.prompts);
  const bool leads = !answerer.group || answerer.group->rank() == 0;
  AnsweredTasks answered{.tasks = std::move(prepared)};
  const double start = base::monotonic_seconds();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& ids = all[i];
    const auto scores =
        eval::score_ends(answerer.subject, ids.ends, {.group = answerer.group},
                         [&](std::int64_t of_task, std::int64_t) { progress(done + of_task, asked); });
    const auto texts = generated(ids, answerer);
    done += std::ssize(ids.ends) + std::ssize(ids.prompts);
    progress(done, asked);
    answered.tokens += ids.tokens;
    if (leads) answered.answers.push_back(answers_of(answered.tasks[i], ids, scores, texts));
  }
  answered.seconds = base::monotonic_seconds() - start;
  comm::agree(answerer.group, [&] {
    for (std::size_t i = 0; leads && i < all.size(); ++i)
      answered.scores.push_back(tasks::score(answered.tasks[i], answered.answers[i]));
  });
  return answered;
}

void write_samples(const base::Path& directory, const AnsweredTasks& answered) {
  base::make_directories(directory);
  for (std::size_t i = 0; i < answered.tasks.size(); ++i) {
    base::AtomicFile file(directory / base::join("samples_", answered.tasks[i].task.name, ".jsonl"));
    for (const auto& line : tasks::sample_lines(answered.tasks[i], answered.answers[i], answered.scores[i]))
      file.write(line.dump() + "\n");
    file.commit();
  }
}

base::Json compare_tasks(const AnsweredTasks& student, const AnsweredTasks& teacher) {
  auto all = base::Json::array();
  for (std::size_t i = 0; i < student.tasks.size(); ++i) {
    const auto compared =
        tasks::to_json(tasks::compare(student.tasks[i], student.scores[i], teacher.scores[i]));
    all.insert(all.end(), compared.begin(), compared.end());
  }
  return all;
}

}  // namespace retort::pipeline
