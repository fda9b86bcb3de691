#include "retort/eval/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "retort/architecture/counts.h"
#include "retort/architecture/longest_context.h"
#include "retort/base/error.h"
#include "retort/eval/batch_scorer.h"
#include "retort/io/model_directory.h"
#include "retort/shard/acquired_unit.h"

namespace retort::eval {
namespace {

void add_documents(const Batch& batch, const RowScores& rows, std::vector<DocumentScores>& documents) {
  const auto data = [](const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; };
  const float *nll = data(rows.nll_N), *kl = data(rows.kl_N), *teacher_nll = data(rows.teacher_nll_N);
  std::size_t row = 0;
  for (const auto& window : batch.windows)
    for (std::size_t i = 0; i < window.targets.size(); ++i, ++row) {
      if (window.targets[i] == data::kNoTarget) continue;
      const auto place = static_cast<std::size_t>(window.target_documents[i]);
      if (place >= documents.size()) documents.resize(place + 1);
      auto& document = documents[place];
      ++document.targets;
      document.nll += nll[row];
      if (!kl) continue;
      document.kl += kl[row];
      document.teacher_nll += teacher_nll[row];
    }
}

// Those that the windows came from, on every rank.
std::vector<data::TextDocument> documents_of(const Windows* windows, comm::Group* group) {
  if (!group || group->size() == 1) return windows->documents();
  std::string bytes;
  if (windows) base::put_bytes(bytes, windows->documents());
  group->share(bytes);
  std::vector<data::TextDocument> documents;
  base::ByteReader(bytes).get(documents);
  return documents;
}

// On all ranks, which have the same sums.
void require_targets(const SourceScores& scores, comm::Group* group) {
  const auto require = [&] {
    base::require<base::DataError>(scores.sums.targets > 0, "source '", scores.name, data::kNothingToPredict);
  };
  if (group)
    group->together(require);
  else
    require();
}

// Names the documents and counts their bytes, once all windows are read.
void describe_documents(const std::vector<data::TextDocument>& documents, SourceScores& scores) {
  scores.documents.resize(documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    scores.documents[i].document = documents[i];
    scores.bytes += documents[i].bytes;
  }
}

void report_windows(const Batch& batch, const at::Tensor& nll_N, const WindowCallback& on_window) {
  const float* row = nll_N.const_data_ptr<float>();
  for (const auto& window : batch.windows) {
    WindowScores scores{.ids = window.ids, .nll = {std::nullopt}};
    for (const auto target : window.targets) {
      scores.nll.push_back(target == data::kNoTarget ? std::nullopt : std::optional(*row));
      ++row;
    }
    // The last row predicts a token that is not an input.
    if (window.targets.back() == data::kNoTarget)
      scores.nll.pop_back();
    else
      scores.ids.push_back(window.targets.back());
    on_window(scores);
  }
}

void append_number(std::string& text, float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text.append(digits, end);
}

double ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : 0;
}

}  // namespace

Subject::Subject(std::string subject_name, shard::Parameters& subject_parameters, std::int64_t num_tokens)
    : name(std::move(subject_name)), parameters(subject_parameters), head(subject_parameters, num_tokens) {}

std::string to_json_line(const WindowScores& scores) {
  std::string line = "{\"ids\": [";
  for (std::size_t i = 0; i < scores.ids.size(); ++i) line += (i ? ", " : "") + std::to_string(scores.ids[i]);
  line += "], \"nll\": [";
  for (std::size_t i = 0; i < scores.nll.size(); ++i) {
    if (i) line += ", ";
    if (scores.nll[i])
      append_number(line, *scores.nll[i]);
    else
      line += "null";
  }
  return line + "]}";
}

double SourceScores::nll() const {
  return ratio(sums.nll, static_cast<double>(sums.targets));
}
double SourceScores::teacher_nll() const {
  return ratio(sums.teacher_nll, static_cast<double>(sums.targets));
}
double SourceScores::bits_per_byte() const {
  return ratio(sums.nll / std::numbers::ln2, static_cast<double>(bytes));
}
double SourceScores::kl() const {
  return ratio(sums.kl, static_cast<double>(sums.targets));
}
double SourceScores::top1() const {
  return ratio(static_cast<double>(sums.top1_correct), static_cast<double>(sums.targets));
}
double SourceScores::top1_agreement() const {
  return ratio(static_cast<double>(sums.top1_agreement), static_cast<double>(sums.targets));
}

std::vector<RatioTerm> SourceScores::nll_differences() const {
  std::vector<RatioTerm> terms;
  for (const auto& document : documents)
    terms.push_back({document.nll - document.teacher_nll, static_cast<double>(document.targets)});
  return terms;
}

void check_comparable(const Subject& model, const Subject* teacher, std::int64_t context) {
  for (const auto* subject : {&model, teacher}) {
    if (!subject) continue;
    const auto limit = architecture::longest_context(subject->parameters.config());
    base::require<base::UsageError>(context <= limit, "evaluation: the context is ", context, " tokens, but ",
                                    subject->name, " was made for at most ", limit, "; lower the context.");
  }
  if (!teacher) return;
  base::require<base::ModelError>(model.head.num_tokens() == teacher->head.num_tokens(),
                                  "evaluation: ", model.name, " has a vocabulary of ",
                                  model.head.num_tokens(), " tokens, its teacher ", teacher->name, " one of ",
                                  teacher->head.num_tokens(), "; compare models with the same tokenizer.");
}

SourceScores evaluate_source(const Subject& model, const Subject* teacher, const std::string& name,
                             Windows* windows, const BatchSettings& settings,
                             const WindowCallback& on_window) {
  SourceScores scores{.name = name,
                      .bytes = 0,
                      .inputs = 0,
                      .seconds = 0,
                      .has_teacher = teacher != nullptr,
                      .sums = {},
                      .documents = {}};
  BatchScorer scorer(model, teacher, name, windows, settings);
  for (std::vector<ScoredBatch> round; scorer.next_round(round);) {
    double slowest = 0;
    for (const auto& [batch, sums, rows, seconds] : round) {
      scores.sums.add(sums);
      scores.inputs += batch.tokens;
      slowest = std::max(slowest, seconds + sums.head_seconds);
      add_documents(batch, rows, scores.documents);
      if (on_window) report_windows(batch, rows.nll_N, on_window);
    }
    scores.seconds += slowest;
  }
  require_targets(scores, settings.group);
  describe_documents(documents_of(windows, settings.group), scores);
  return scores;
}

double ModelScores::tokens_per_second() const {
  double tokens = 0, seconds = 0;
  for (const auto& source : sources) {
    tokens += static_cast<double>(source.inputs);
    seconds += source.seconds;
  }
  return ratio(tokens, seconds);
}

ModelScores describe_model(const Subject& model, const base::Path& directory) {
  auto& parameters = model.parameters;
  ModelScores scores{.name = model.name,
                     .parameters = architecture::num_parameters(parameters.config()),
                     .nonzero_parameters = 0,
                     .file_bytes = 0,
                     .dequantised_from = {},
                     .sources = {},
                     .generations = {}};
  for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit) {
    const shard::AcquiredUnit acquired(parameters, unit);
    // Padding is zero and does not count.
    scores.nonzero_parameters += at::count_nonzero(acquired.flat()).item<std::int64_t>();
  }
  if (directory.empty()) return scores;
  const auto files = io::ModelDirectory::open(directory);
  scores.dequantised_from = files.quantised_types();
  for (const auto& file : files.weight_files())
    scores.file_bytes += static_cast<std::int64_t>(std::filesystem::file_size(file));
  return scores;
}

}  // namespace retort::eval
