#pragma once
// Evaluation tasks with a model: from their files to scores.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/data/overlap.h"
#include "retort/eval/ends.h"
#include "retort/eval/generate_texts.h"
#include "retort/eval/memory_plan.h"
#include "retort/pipeline/context.h"
#include "retort/tasks/compare.h"
#include "retort/tasks/encode.h"
#include "retort/tasks/options.h"
#include "retort/tasks/scores.h"

namespace retort::pipeline {

/// Reads the tasks and their documents, and makes their requests; in a chat as the template of `model` writes
/// them.  Throws as tasks::read_tasks, read_documents and prepare.
std::vector<tasks::PreparedTask> prepare_tasks(const tasks::TaskOptions& options, const base::Path& model);

/// Of each task its documents, questions with their answers.  Throws as prepare_tasks.
std::vector<data::MeasuredTexts> texts_of_tasks(const tasks::TaskOptions& options);

/// The files of tasks and of their documents, as a stage reads them.
std::vector<base::Path> files_of_tasks(const tasks::TaskOptions& options);

/// What a task asks of a model, as its ids: in the order of documents and requests.
struct TaskIds {
  std::vector<std::int64_t> windows;  ///< of each request that is scored: how many of `ends`
  std::vector<eval::TextEnd> ends;    ///< what is scored
  std::vector<eval::Prompt> prompts;  ///< what is gone on with
  std::int64_t cut = 0;               ///< requests whose context was too long for the model
  std::int64_t tokens = 0;            ///< of `ends` and `prompts`
  std::int64_t longest_tokens = 0;
  std::int64_t max_new_tokens = 0;  ///< behind a prompt
  std::vector<std::string> stops;   ///< what ends an answer; on rank 0 alone
};
/// `text` is that of the model in `directory`.  Throws as tasks::Encoder does.
std::vector<TaskIds> encode_tasks(const std::vector<tasks::PreparedTask>& prepared,
                                  const base::Path& directory, const ModelText& text,
                                  const architecture::Config& config);

/// Says which tasks have contexts that are longer than the model's; their beginnings are left out.
void say_what_was_cut(const std::vector<tasks::PreparedTask>& prepared, const std::vector<TaskIds>& ids,
                      const architecture::Config& config, record::Observer& observer);

/// What a rank holds while a model answers.
shard::MemoryPlan plan_tasks(const architecture::Config& config, std::int64_t item_bytes,
                             const std::vector<TaskIds>& ids, ops::Path path, eval::WeightsFrom from);

/// A model that answers.
struct Answerer {
  const eval::Subject& subject;
  const base::Path& directory;
  const ModelText& text;
  comm::Group* group = nullptr;  ///< ranks that work together; rank 0 has tasks and answers
  int threads = 0;               ///< of rank 0 while it makes texts alone; 0: those it has
};

/// Tasks with what a model made of them; empty on other ranks than rank 0.
struct AnsweredTasks {
  std::vector<tasks::PreparedTask> tasks = {};
  std::vector<std::vector<std::vector<tasks::Answer>>> answers = {};  ///< by task, document, request
  std::vector<tasks::TaskScores> scores = {};
  std::int64_t tokens = 0;  ///< of all requests
  double seconds = 0;       ///< from the loaded model to the last answer

  /// Results in lm-eval's form.
  base::Json to_json() const;
};
/// Collective over the group; `progress` as of eval::score_ends, over all tasks.
AnsweredTasks answer_tasks(std::vector<tasks::PreparedTask> prepared, std::vector<TaskIds> ids,
                           const Answerer& answerer, const eval::EndsProgress& progress);

/// A file for each task, samples_TASK.jsonl, that appears whole.  Throws StorageError.
void write_samples(const base::Path& directory, const AnsweredTasks& answered);

/// A list: each metric of accuracy of each task, of a student beside its teacher.
base::Json compare_tasks(const AnsweredTasks& student, const AnsweredTasks& teacher);

}  // namespace retort::pipeline
