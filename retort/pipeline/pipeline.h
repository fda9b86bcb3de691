#pragma once
// Runs what a recipe says, stage after stage, in one run directory; started again, it goes on where it
// stopped.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/publish/options.h"
#include "retort/recipe/recipe.h"
#include "retort/record/observer.h"
#include "retort/tasks/options.h"

namespace retort::pipeline {

/// Bytes that this process may still take; empty: what the machine has.
using AvailableMemory = std::function<std::int64_t()>;

struct RunRequest {
  base::Path run_directory;
  std::string only_stage;            ///< empty: all stages that are not finished
  bool dry_run = false;              ///< check everything, print the plan, change nothing
  std::vector<std::string> command;  ///< for the provenance
  AvailableMemory available_memory;  ///< asked once, before any model is loaded
  comm::Group* group = nullptr;      ///< of the ranks that run it together; null: this process alone
};

struct RunOutcome {
  bool finished = false;  ///< false: stopped on request, state saved
  std::string stage;      ///< the last one that was worked on
  std::string summary;    ///< for people: tables of what was evaluated; of a dry run its plans
  base::Path report;      ///< the HTML page, empty in a dry run
};

/// Throws every error type of Retort; what is finished stays finished.  Collective: every rank calls it with
/// the same recipe and request, and rank 0 alone writes, tells the observer and has a summary.
RunOutcome run(recipe::Recipe recipe, const RunRequest& request, record::Observer& observer);

/// Where and how a single model runs.
struct ModelRequest {
  std::string model;  ///< directory
  std::string device = "cpu";
  std::string dtype = "auto";
  AvailableMemory available_memory = {};
};

/// Tokens of a window that `retort eval` takes without being asked: perplexities gain little from more, and
/// models of today are made for contexts whose activations no workstation holds.
inline constexpr std::int64_t kEvalContext = 4096;

struct EvalRequest {
  ModelRequest model;
  std::string teacher;             ///< directory; empty: none
  std::vector<std::string> texts;  ///< files
  std::string field = "text", separator;
  bool chat = false;         ///< the files have conversations, of which answers are measured
  std::int64_t context = 0;  ///< 0: what the models were made for, at most kEvalContext
  bool rolling = false;      ///< documents on their own instead of windows over the joined text
  bool bos = true;
  base::Path per_token;     ///< a line per window; empty: none
  base::Path per_document;  ///< a line per document; empty: none
};
/// The result of `retort eval`: an evaluation with one model, as JSON.
base::Json evaluate(const EvalRequest& request, record::Observer& observer);

struct TasksRequest {
  ModelRequest model;
  std::string teacher;  ///< directory; empty: none
  tasks::TaskOptions tasks;
  base::Path samples;  ///< directory for a line per document of each task; empty: none
};
/// A model's scores on evaluation tasks, in lm-eval's form, beside the teacher's: docs/formats/tasks.md.
/// Throws UsageError and DataError for tasks and documents, MemoryError before a model is loaded.
base::Json evaluate_tasks(const TasksRequest& request, record::Observer& observer);

/// How tokens are drawn; what is not said is as generation_config.json of the model has it, else greedy.
struct SamplingRequest {
  std::optional<double> temperature = {}, top_p = {}, min_p = {}, repetition_penalty = {};
  std::optional<std::int64_t> top_k = {};
  std::uint64_t seed = 0;
};

/// How texts are made.
struct TextRequest {
  SamplingRequest sampling = {};
  std::int64_t max_new_tokens = 64;
  std::int64_t texts_at_once = 16;
  std::vector<std::string> stop = {};  ///< texts that end an answer, which does not hold them
  bool bos = true;                     ///< begin-of-text token before a prompt
};

struct GenerateRequest {
  ModelRequest model;
  TextRequest text;
  std::string prompt;
};
/// {"ids": prompt and answer, "prompt_tokens": how many of them are the prompt's, "prompt", "text": prompt
/// and answer, "answer"}
base::Json generate(const GenerateRequest& request, record::Observer& observer);

struct GenerateFileRequest {
  ModelRequest model;
  TextRequest text;
  base::Path prompts, out;
};
/// Writes a line for each prompt, in their order; goes on where an earlier call with the same request ended:
/// docs/formats/answers.md.  {"texts", "made", "new_tokens", "seconds", "sampling"}
base::Json generate_file(const GenerateFileRequest& request, record::Observer& observer);

struct CorpusRequest {
  ModelRequest model;        ///< that writes; `text` names none
  data::GeneratedText text;  ///< docs/commands.md, generate
  base::Path out;
};
/// Writes texts by a model for others to learn from, a JSON object a line; goes on where an earlier call with
/// the same request ended, with the same bytes: docs/formats/corpus.md.  {"texts", "tokens", "rows",
/// "dropped", "new_tokens", "seconds"}.  Throws StoppedError when the observer asks to stop.
base::Json generate_corpus(const CorpusRequest& request, record::Observer& observer);

/// Seconds that `retort bench` takes without being asked, about.
inline constexpr double kBenchSeconds = 120;

struct BenchRequest {
  ModelRequest model;  ///< empty: a shape that stands for models of some hundred million; dtype `auto`: all
  std::int64_t tokens = 0;  ///< that go through an operation together; 0: as the time allows, at most 2,048
  double seconds = kBenchSeconds;  ///< that the measurement may take, about
};
/// Rates of the model's products: docs/formats/rates.md.  Throws MemoryError where the operands do not fit.
base::Json bench_gemm(const BenchRequest& request, record::Observer& observer);
/// Rates of the operations between the products, in the same format.
base::Json bench_kernels(const BenchRequest& request, record::Observer& observer);

struct BenchGenerationRequest {
  std::vector<std::string> models;  ///< directories
  std::vector<std::string> shapes;  ///< config.json files or directories, for random weights
  std::string baseline;             ///< one of both; empty: the first
  std::string device = "cpu", dtype = "auto";
  AvailableMemory available_memory = {};
  base::Path prompts;                               ///< as of GenerateFileRequest; empty: random ids
  std::vector<std::int64_t> prompt_tokens = {128};  ///< of random prompts, one length after the other
  std::vector<std::int64_t> batches = {1, 16, 64};  ///< texts at once
  std::int64_t texts = 0;                           ///< random prompts of a run; 0: as many as a batch holds
  std::int64_t new_tokens = 128, runs = 10, warmup = 1;
  bool free_length = false;  ///< texts end where the model ends them
  bool bos = true;
};
/// Times of texts that each model makes of the same prompts, and their ratios to the baseline's:
/// docs/formats/rates.md.  Throws UsageError for prompts that do not fit, MemoryError before a model is
/// loaded.
base::Json bench_generation(const BenchGenerationRequest& request, record::Observer& observer);

struct ExportRequest {
  ModelRequest model;  ///< and where it is compared; always in float32
  publish::ExportOptions options;
  base::Path out;             ///< a directory that is new or empty
  std::string measured = {};  ///< tables of text for its card; empty: those of the run that it lies in
};
/// Writes the model in the form that a program loads, with a card and a certificate of how far it answers as
/// the model does; returns the certificate: docs/formats/certificate.md.  Writes all or nothing.  Throws
/// UsageError, ModelError for what the form cannot say, ValidationError where what was written answers
/// otherwise.
base::Json export_model(const ExportRequest& request, record::Observer& observer);

/// Which models of a recipe export_model() will write, before anything has run: {"program", "models":
/// [{"stage", "is_written", "as" and "seen", what the program did with such models, or "reason"}]}.  Throws
/// UsageError for options that contradict each other, ModelError for models that cannot be read.
base::Json foresee(const recipe::Recipe& recipe, const publish::ExportOptions& options);

struct VerifyRequest {
  ModelRequest model;  ///< a directory that export_model() wrote
};
/// Checks files, ids and answers against the certificate, and logits against the model that it was made from
/// where that is still there; returns the certificate with what was found.  Throws ValidationError for the
/// first that is another one.
base::Json verify(const VerifyRequest& request, record::Observer& observer);

}  // namespace retort::pipeline
