#pragma once
// Scores of a model, and its distance from a teacher, over windows of text.  Several windows go through a
// block together; a window attends only to itself.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/eval/bootstrap.h"
#include "retort/eval/held_head.h"
#include "retort/eval/score.h"
#include "retort/eval/teacher_states.h"
#include "retort/eval/windows.h"

namespace retort::eval {

/// A model that is scored, or its teacher.  The parameters outlive it; its head is read in float32.
struct Subject {
  /// `num_tokens`: as of HeadScorer.
  Subject(std::string name, shard::Parameters& parameters, std::int64_t num_tokens = 0);
  std::string name;
  shard::Parameters& parameters;
  HeldHead head;
};

struct BatchSettings {
  std::int64_t tokens = 4096;    ///< inputs that go through a block together; at least one window
  std::int64_t head_rows = 256;  ///< rows of a chunk of logits
  comm::Group* group = nullptr;  ///< its ranks take one batch after the other; null: this process all
  TeacherStates* teacher_states = nullptr;  ///< kept from one model to the next; null: none are
};

/// A window with the loss of each token, in nats; none where a token was not predicted (the first never is).
struct WindowScores {
  std::vector<std::int32_t> ids;
  std::vector<std::optional<float>> nll;
};
using WindowCallback = std::function<void(const WindowScores&)>;
/// {"ids": [...], "nll": [null, ...]} on one line, without the line's end.
std::string to_json_line(const WindowScores& scores);

/// Sums over the targets of one document, nats.
struct DocumentScores {
  data::TextDocument document;
  std::int64_t targets = 0;
  double nll = 0;
  double kl = 0, teacher_nll = 0;  ///< 0 without a teacher
};

/// Scores of one source.  Means are per target; metrics that need a teacher are absent without one.
struct SourceScores {
  std::string name;
  std::int64_t bytes = 0;   ///< UTF-8 bytes of the text whose tokens are targets
  std::int64_t inputs = 0;  ///< tokens that went through the model
  double seconds =
      0;  ///< of the model's own forward pass, head included; ranks that work together count once
  bool has_teacher = false;
  ScoreSums sums;
  std::vector<DocumentScores> documents;  ///< in the order of the source; their sums are `sums`

  double nll() const;
  double teacher_nll() const;
  double bits_per_byte() const;
  double kl() const;
  double top1() const;
  double top1_agreement() const;
  /// NLL of the model minus the teacher's, a term for each document.
  std::vector<RatioTerm> nll_differences() const;
};

/// Scores all windows of a source.  With a group it is collective: rank 0 reads the windows, which are null
/// on the others, and every rank has the scores of all, with the bits that one rank alone computes. Throws
/// ModelError (vocabularies differ, a token id outside the vocabulary), UsageError (a window longer than
/// architecture::longest_context() of a model), DataError (no token to predict), ValidationError (a loss that
/// is not finite).
SourceScores evaluate_source(const Subject& model, const Subject* teacher, const std::string& name,
                             Windows* windows, const BatchSettings& batch = {},
                             const WindowCallback& on_window = {});

/// Refuses what cannot be compared before any text is read; throws as evaluate_source.
void check_comparable(const Subject& model, const Subject* teacher, std::int64_t context);

struct GeneratedText {
  std::string prompt, text;  ///< the text begins with the prompt, but as the answer in a chat
  base::Json messages = {};  ///< of a chat; else null
};

struct ModelScores {
  std::string name;
  std::int64_t parameters = 0, nonzero_parameters = 0;
  std::int64_t file_bytes = 0;   ///< of the weight files; 0: not saved
  std::string dequantised_from;  ///< block types of its file, of which its values were made; or empty
  std::vector<SourceScores> sources;
  std::vector<GeneratedText> generations;

  double tokens_per_second() const;
};

/// Name, counts and, where `directory` is not empty, size and block types of the weight files.
ModelScores describe_model(const Subject& model, const base::Path& directory);

/// A line of JSON for each document of each source of a model, each with the line's end:
/// {"model", "source", "number", "hash", "bytes", "tokens", "nll", "teacher_nll", "kl"}, sums in nats.
std::string document_lines(const ModelScores& model);
/// Those of all models, as a file.  Throws StorageError.
void write_documents(const base::Path& file, const std::vector<ModelScores>& models);

/// An evaluation as the report reads it.  Means give every source the same weight; recovery is the teacher's
/// perplexity over the model's, and per metric the ratio that is 1 for the teacher and smaller for a worse
/// model.
base::Json to_json(std::int64_t context, Windowing windowing, const std::string& teacher,
                   const std::vector<ModelScores>& models);

}  // namespace retort::eval
