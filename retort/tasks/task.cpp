#include "retort/tasks/task.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/io/quote.h"
#include "retort/tasks/task_config.h"
#include "retort/tasks/task_file.h"
#include "retort/tasks/task_metrics.h"

namespace retort::tasks {
namespace {

using base::Json;
using base::UsageError;
using io::YamlValue;

// What a file may say: what is written beside results, and what decides how the file is read.
std::vector<std::string> known_keys() {
  auto keys = config_keys();
  keys.insert(keys.end(), {"tag", "group", "include"});
  return keys;
}

// Keys of lm-eval that Retort does not have, and why.
struct Refused {
  const char* key;
  const char* why;
};
constexpr Refused kRefused[] = {
    {"group_alias", "belongs to a group of tasks; give its tasks one by one"},
    {"aggregate_metric_list", "belongs to a group of tasks; give its tasks one by one"},
    {"process_docs", "is a Python function, which Retort does not run"},
    {"process_results", "is a Python function, which Retort does not run"},
    {"custom_dataset", "is a Python function, which Retort does not run"},
    {"class", "is a Python class, which Retort does not run"},
    {"use_prompt", "takes a prompt of promptsource, which Retort lacks; write it as doc_to_text"},
    {"doc_to_image", "asks for images, which Retort does not read"},
    {"doc_to_audio", "asks for sounds, which Retort does not read"}};

class TaskReader {
 public:
  TaskReader(const base::Path& file, YamlValue root) : file_(file), root_(std::move(root)) {}

  Task run() {
    refuse_group();
    refuse_others();
    task_.file = file_;
    task_.data.directory = file_.parent_path();
    task_.name = text("task").value_or("");
    if (task_.name.empty()) mistakes_.add(file_.string(), "the task has no name; add the key task");
    task_.alias = text("task_alias").value_or(task_.name);
    read_output_type();
    read_data();
    read_fields();
    read_fewshot();
    read_generation();
    task_.metrics = read_metrics(given("metric_list"), task_.output_type, mistakes_);
    task_.filters = read_filters(given("filter_list"), mistakes_);
    read_rest();
    mistakes_.refuse(file_.string());
    task_.config = config_of(task_, root_);
    return std::move(task_);
  }

 private:
  // Null is as good as absent, as in lm-eval.
  const YamlValue* given(std::string_view key) const {
    const auto* value = root_.find(key);
    return value == nullptr || value->kind == YamlValue::Kind::null ? nullptr : value;
  }

  std::optional<std::string> text_of(const YamlValue* value, const std::string& key) {
    if (value == nullptr || value->kind == YamlValue::Kind::null) return std::nullopt;
    if (value->kind == YamlValue::Kind::scalar) return value->text;
    mistakes_.add(*value, key + ": expected a text");
    return std::nullopt;
  }
  std::optional<std::string> text(const std::string& key) { return text_of(root_.find(key), key); }

  std::optional<std::int64_t> whole_of(const YamlValue* value, const std::string& key) {
    if (value == nullptr || value->kind == YamlValue::Kind::null) return std::nullopt;
    const Json number = resolved(*value);
    const bool fits = number.is_number_integer() && number.get<std::int64_t>() >= 0;
    if (!fits) mistakes_.add(*value, key + " is " + io::shown(number) + ", expected a whole number from 0");
    return fits ? std::optional(number.get<std::int64_t>()) : std::nullopt;
  }

  // What a document becomes: a text, a whole number, a list or a map.
  DocField field_of(const YamlValue* value, const std::string& key) {
    if (value == nullptr) return {};
    Json written = resolved(*value);
    if (written.is_number_float() || written.is_boolean()) {
      mistakes_.add(*value,
                    key + " is " + io::shown(written) + ", expected a text or a whole number; quote it");
      return {};
    }
    return {std::move(written), key, value->place};
  }
  DocField field(const std::string& key) { return field_of(given(key), key); }

  // A file of a group has nothing that a task has; in a task's file lm-eval ignores the key.
  void refuse_group() const {
    const auto *group = given("group"), *name = given("task");
    const bool is_group =
        (group != nullptr && name == nullptr) || (name != nullptr && name->kind != YamlValue::Kind::scalar);
    base::require<UsageError>(!is_group,
                              (group != nullptr ? *group : *(name != nullptr ? name : &root_)).place,
                              ": is a group of tasks; give the files of its tasks one by one.");
  }

  void refuse_others() {
    for (const auto& [key, why] : kRefused)
      if (const auto* value = given(key)) mistakes_.add(*value, "key " + io::quote(key) + " " + why);
    YamlValue others = root_;
    std::erase_if(others.entries, [](const auto& entry) {
      return std::any_of(std::begin(kRefused), std::end(kRefused),
                         [&](const auto& refused) { return entry.key == refused.key; });
    });
    require_known(others, known_keys(), mistakes_);
  }

  void read_output_type() {
    const auto* value = given("output_type");
    if (value == nullptr) return;
    const auto words = words_of(OutputType{});
    const auto found = std::find(words.begin(), words.end(), value->text);
    if (found == words.end())
      mistakes_.add(*value,
                    "there is no output_type " + io::quote(value->text) +
                        "; it is loglikelihood, multiple_choice, loglikelihood_rolling or generate_until");
    else
      task_.output_type = static_cast<OutputType>(found - words.begin());
  }

  void read_data() {
    task_.data.path = text("dataset_path").value_or("");
    if (task_.data.path.empty())
      mistakes_.add(file_.string(), "the task has no documents; add the key dataset_path");
    task_.data.name = text("dataset_name");
    task_.training_split = text("training_split");
    task_.validation_split = text("validation_split");
    task_.test_split = text("test_split");
    if (!task_.test_split && !task_.validation_split)
      mistakes_.add(file_.string(), "the task has neither test_split nor validation_split; add one");
    const auto* kwargs = given("dataset_kwargs");
    if (kwargs == nullptr) return;
    require_known(*kwargs, {"data_files", "trust_remote_code", "revision", "data_dir"}, mistakes_);
    if (const auto* files = kwargs->find("data_files")) read_files(*files);
  }

  void read_files(const YamlValue& files) {
    if (files.kind != YamlValue::Kind::map) {
      task_.data.files.emplace_back("train", names_of(files));  // as datasets calls what has no name
      return;
    }
    for (const auto& [split, value] : files.entries) task_.data.files.emplace_back(split, names_of(value));
  }

  std::vector<std::string> names_of(const YamlValue& value) {
    std::vector<std::string> names;
    if (value.kind == YamlValue::Kind::scalar) names.push_back(value.text);
    for (const auto& item : value.items) names.push_back(item.text);
    if (names.empty()) mistakes_.add(value, "data_files: expected files");
    return names;
  }

  void read_fields() {
    task_.doc_to_text = field("doc_to_text");
    task_.doc_to_target = field("doc_to_target");
    task_.doc_to_choice = field("doc_to_choice");
    task_.description = field("description");
    task_.gen_prefix = field("gen_prefix");
    if (const auto* value = root_.find("target_delimiter")) task_.target_delimiter = value->text;
    if (const auto* value = root_.find("fewshot_delimiter")) task_.fewshot_delimiter = value->text;
    for (const DocField* plain : {&task_.description, &task_.gen_prefix})
      if (plain->is_given() && !plain->written().is_string())
        mistakes_.add(*root_.find(plain->name()), plain->name() + ": expected a text");
    for (const DocField* needed : {&task_.doc_to_text, &task_.doc_to_target})
      if (!needed->is_given())
        mistakes_.add(file_.string(), std::string("the task has no ") +
                                          (needed == &task_.doc_to_text ? "doc_to_text" : "doc_to_target") +
                                          "; add it");
    if (task_.output_type == OutputType::multiple_choice && !task_.doc_to_choice.is_given())
      mistakes_.add(file_.string(), "a task of multiple_choice needs the key doc_to_choice");
  }

  void read_fewshot() {
    FewShotOptions& fewshot = task_.fewshot;
    fewshot.split = text("fewshot_split");
    fewshot.doc_to_text = task_.doc_to_text;
    fewshot.doc_to_target = task_.doc_to_target;
    fewshot.doc_to_choice = task_.doc_to_choice;
    fewshot.gen_prefix = task_.gen_prefix;
    fewshot.target_delimiter = task_.target_delimiter;
    fewshot.fewshot_delimiter = task_.fewshot_delimiter;
    task_.num_fewshot = whole_of(root_.find("num_fewshot"), "num_fewshot");
    const auto* map = given("fewshot_config");
    if (map == nullptr) return;
    require_known(*map,
                  {"sampler", "split", "samples", "fewshot_indices", "doc_to_text", "doc_to_choice",
                   "doc_to_target", "gen_prefix", "fewshot_delimiter", "target_delimiter"},
                  mistakes_);
    read_sampler(*map);
    read_overrides(*map);
  }

  void read_sampler(const YamlValue& map) {
    FewShotOptions& fewshot = task_.fewshot;
    if (const auto* sampler = map.find("sampler")) {
      if (sampler->text != "default" && sampler->text != "first_n")
        mistakes_.add(*sampler,
                      "there is no sampler " + io::quote(sampler->text) + "; it is default or first_n");
      fewshot.sampler = sampler->text == "first_n" ? Sampler::first_n : Sampler::default_;
    }
    if (map.find("split") != nullptr) fewshot.split = text_of(map.find("split"), "split");
    if (const auto* indices = map.find("fewshot_indices"); indices != nullptr && !indices->items.empty())
      mistakes_.add(*indices,
                    "lm-eval 0.4.13 reads fewshot_indices and draws without them; give the examples "
                    "as samples");
    const auto* samples = map.find("samples");
    if (samples == nullptr || samples->kind == YamlValue::Kind::null) return;
    fewshot.samples.emplace();
    for (const auto& item : samples->items) fewshot.samples->push_back(resolved(item));
    const bool objects = std::all_of(fewshot.samples->begin(), fewshot.samples->end(),
                                     [](const Json& one) { return one.is_object(); });
    if (!objects || fewshot.samples->empty()) mistakes_.add(*samples, "samples: expected a list of maps");
  }

  void read_overrides(const YamlValue& map) {
    FewShotOptions& fewshot = task_.fewshot;
    const auto override_field = [&](const char* key, DocField& field) {
      if (const auto* value = map.find(key)) field = field_of(value, std::string("fewshot_config.") + key);
    };
    override_field("doc_to_text", fewshot.doc_to_text);
    override_field("doc_to_target", fewshot.doc_to_target);
    override_field("doc_to_choice", fewshot.doc_to_choice);
    override_field("gen_prefix", fewshot.gen_prefix);
    if (const auto* value = map.find("target_delimiter")) fewshot.target_delimiter = value->text;
    if (const auto* value = map.find("fewshot_delimiter")) fewshot.fewshot_delimiter = value->text;
  }

  void read_generation() {
    GenerationOptions& generation = task_.generation;
    generation.until = {task_.fewshot_delimiter};
    const auto* map = given("generation_kwargs");
    if (map == nullptr) return;
    require_known(*map,
                  {"until", "do_sample", "temperature", "top_p", "top_k", "num_beams", "max_gen_toks",
                   "max_new_tokens", "max_tokens", "max_completion_tokens"},
                  mistakes_);
    if (const auto* until = map->find("until")) {
      generation.until.clear();
      if (until->kind == YamlValue::Kind::scalar) generation.until.push_back(until->text);
      for (const auto& item : until->items) generation.until.push_back(item.text);
    }
    for (const char* key : {"max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"})
      if (const auto number = whole_of(map->find(key), key)) {
        generation.max_tokens = *number;
        break;
      }
    require_greedy(*map);
  }

  void require_greedy(const YamlValue& map) {
    const auto number = [&](const char* key, double otherwise) {
      const auto* value = map.find(key);
      const Json read = value == nullptr ? Json() : resolved(*value);
      return read.is_number() ? read.get<double>() : otherwise;
    };
    const auto* sample = map.find("do_sample");
    const Json samples = sample == nullptr ? Json() : resolved(*sample);
    const bool greedy = samples == Json(false) || (samples.is_null() && !(number("temperature", 0) > 0));
    if (!greedy)
      mistakes_.add(map, "generation_kwargs sample; Retort judges greedy answers, so set do_sample: false");
    if (number("num_beams", 1) > 1)
      mistakes_.add(map, "num_beams is above 1, which Retort lacks; leave it out");
  }

  void read_rest() {
    if (const auto repeats = whole_of(root_.find("repeats"), "repeats"); repeats && *repeats != 1)
      mistakes_.add(*root_.find("repeats"), "repeats is not 1; a greedy answer is the same each time");
    task_.version = "Yaml";
    if (const auto* metadata = given("metadata"))
      if (const auto* version = metadata->find("version")) task_.version = resolved(*version);
  }

  const base::Path file_;
  YamlValue root_;
  Task task_;
  Mistakes mistakes_;
};

}  // namespace

bool Task::has(Metric metric) const {
  return std::any_of(metrics.begin(), metrics.end(), [&](const auto& one) { return one.metric == metric; });
}

Task read_task(const base::Path& file) {
  return TaskReader(file, read_task_map(file)).run();
}

std::vector<Task> read_tasks(std::span<const base::Path> files) {
  std::vector<Task> tasks;
  for (const auto& file : files) {
    Task task = read_task(file);
    for (const auto& other : tasks)
      base::require<UsageError>(other.name != task.name, file.string(), ": the task ", io::quote(task.name),
                                " is also that of ", other.file.string(), "; give one of them another name.");
    tasks.push_back(std::move(task));
  }
  return tasks;
}

bool set_num_fewshot(Task& task, std::int64_t number) {
  base::require<UsageError>(number >= 0, "The number of examples is ", number, ", expected 0 or more.");
  if (task.num_fewshot == 0) return false;
  task.num_fewshot = number;
  task.config["num_fewshot"] = number;
  return true;
}

}  // namespace retort::tasks
