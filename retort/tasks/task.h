#pragma once
// An evaluation task as a YAML file says it, in the keys of lm-evaluation-harness 0.4.13: where its documents
// lie, how each becomes a question with its answers, and by which metrics the answers are judged.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/words.h"
#include "retort/tasks/doc_field.h"
#include "retort/tasks/filters.h"

namespace retort::tasks {

enum class OutputType { loglikelihood, multiple_choice, loglikelihood_rolling, generate_until };
constexpr auto words_of(OutputType) {
  return base::words<OutputType::generate_until>("loglikelihood", "multiple_choice", "loglikelihood_rolling",
                                                 "generate_until");
}

enum class Metric {
  acc,
  acc_norm,
  acc_bytes,
  acc_mutual_info,
  exact_match,
  perplexity,
  word_perplexity,
  byte_perplexity,
  bits_per_byte,
  f1,
  mcc,
  brier_score
};
constexpr auto words_of(Metric) {
  return base::words<Metric::brier_score>("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match",
                                          "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte",
                                          "f1", "mcc", "brier_score");
}

/// How the values of all documents become one.
enum class Aggregation {
  mean,
  nanmean,
  median,
  perplexity,
  weighted_perplexity,
  bits_per_byte,
  f1,
  matthews_corrcoef,
  brier_score
};
constexpr auto words_of(Aggregation) {
  return base::words<Aggregation::brier_score>("mean", "nanmean", "median", "perplexity",
                                               "weighted_perplexity", "bits_per_byte", "f1",
                                               "matthews_corrcoef", "brier_score");
}

/// What exact_match leaves out of an answer and of its target before it compares them.
struct ExactMatchOptions {
  bool ignore_case = false, ignore_punctuation = false, ignore_numbers = false;
  std::vector<chat::PythonRegex> regexes_to_ignore;
};

struct MetricOptions {
  Metric metric = Metric::acc;
  Aggregation aggregation = Aggregation::mean;
  bool higher_is_better = true;
  ExactMatchOptions exact_match;
};

/// Greedy generation.
struct GenerationOptions {
  std::vector<std::string> until;  ///< the answer ends before the first of them
  std::int64_t max_tokens = 256;
};

enum class Sampler { default_, first_n };

struct FewShotOptions {
  Sampler sampler = Sampler::default_;
  std::optional<std::string> split;
  std::optional<std::vector<base::Json>> samples;  ///< examples that the file itself gives
  std::vector<std::int64_t> indices;               ///< of the split; empty: all
  DocField doc_to_text, doc_to_target, doc_to_choice, gen_prefix;
  std::string target_delimiter, fewshot_delimiter;
};

/// Where the documents lie.
struct DataSource {
  std::string path;                 ///< "json", "parquet", or a data set's name on the Hugging Face Hub
  std::optional<std::string> name;  ///< its configuration
  /// Split and its files or globs, relative to `directory`; empty for a data set of the Hub.
  std::vector<std::pair<std::string, std::vector<std::string>>> files;
  base::Path directory;  ///< of the task file
};

struct Task {
  std::string name, alias;
  base::Path file;
  OutputType output_type = OutputType::generate_until;
  DataSource data;
  std::optional<std::string> training_split, validation_split, test_split;
  DocField doc_to_text, doc_to_target, doc_to_choice, description, gen_prefix;
  std::string target_delimiter = " ", fewshot_delimiter = "\n\n";
  FewShotOptions fewshot;
  std::optional<std::int64_t> num_fewshot;  ///< as the file says; absent counts as 0
  std::vector<MetricOptions> metrics;
  GenerationOptions generation;
  std::vector<FilterChain> filters;
  base::Json version;  ///< of its metadata, or "Yaml"
  base::Json config;   ///< an object: the file's keys and lm-eval's defaults, as its results have them

  /// The split whose documents are judged: the test split, else the validation split.
  const std::string& evaluated_split() const { return test_split ? *test_split : *validation_split; }
  std::int64_t shots() const { return num_fewshot.value_or(0); }
  bool has(Metric metric) const;
};

/// Reads a task file and those that it includes.  Throws UsageError with file and line for what is no task,
/// for a Python function, and for a key that does not exist, naming the nearest; StorageError for a file that
/// cannot be read.
Task read_task(const base::Path& file);

/// Reads several; throws UsageError for two of one name, too.
std::vector<Task> read_tasks(std::span<const base::Path> files);

/// Takes the number of examples from the command line.  A task whose file says 0 keeps it, as in lm-eval;
/// false then.  Throws UsageError for a negative number.
bool set_num_fewshot(Task& task, std::int64_t number);

}  // namespace retort::tasks
