#include "retort/eval/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/bench/stopwatch.h"
#include "retort/io/model_directory.h"
#include "retort/model/packed_text.h"

namespace retort::eval {
namespace {

// Windows that go through a block together.
struct Batch {
  std::vector<Window> windows;
  std::int64_t tokens = 0;
};

bool read_batch(Windows& windows, std::int64_t max_tokens, std::optional<Window>& left_over, Batch& batch) {
  batch = {};
  for (;;) {
    Window window;
    if (left_over)
      window = std::move(*left_over);
    else if (!windows.next(window))
      break;
    left_over.reset();
    const auto length = static_cast<std::int64_t>(window.ids.size());
    if (batch.tokens > 0 && batch.tokens + length > max_tokens) {
      left_over = std::move(window);
      break;
    }
    batch.tokens += length;
    batch.windows.push_back(std::move(window));
  }
  return batch.tokens > 0;
}

std::int64_t longest_window(const Batch& batch) {
  std::int64_t longest = 0;
  for (const auto& window : batch.windows) longest = std::max(longest, std::ssize(window.ids));
  return longest;
}

std::int32_t largest_id(const Batch& batch) {
  std::int32_t largest = 0;
  for (const auto& window : batch.windows)
    largest = std::max({largest, *std::max_element(window.ids.begin(), window.ids.end()),
                        *std::max_element(window.targets.begin(), window.targets.end())});
  return largest;
}

at::Tensor hidden_of(const Subject& subject, const model::PackedText& packed) {
  const auto& config = subject.parameters.config();
  return forward_hidden(subject.parameters, packed.ids_N,
                        model::make_token_layout(config, packed.starts, packed.ids_N.device()));
}

RowScores on_cpu(const RowScores& rows) {
  const auto moved = [](const at::Tensor& x) { return x.defined() ? x.to(at::kCPU, at::kFloat) : x; };
  return {moved(rows.nll_N), moved(rows.kl_N), moved(rows.teacher_nll_N)};
}

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

// Names the documents and counts their bytes, once all windows are read.
void describe_documents(const Windows& windows, SourceScores& scores) {
  scores.documents.resize(windows.documents().size());
  for (std::size_t i = 0; i < scores.documents.size(); ++i) {
    scores.documents[i].document = windows.documents()[i];
    scores.bytes += windows.documents()[i].bytes;
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
    const auto limit = subject->parameters.config().max_position_embeddings;
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
                             Windows& windows, const BatchSettings& settings,
                             const WindowCallback& on_window) {
  SourceScores scores{.name = name,
                      .bytes = 0,
                      .inputs = 0,
                      .seconds = 0,
                      .has_teacher = teacher != nullptr,
                      .sums = {},
                      .documents = {}};
  const auto device = model.head.device();
  std::optional<Window> left_over;
  for (Batch batch; read_batch(windows, settings.tokens, left_over, batch);) {
    const auto packed = model::packed_text(batch.windows, device);
    check_comparable(model, teacher, longest_window(batch));
    base::require<base::ModelError>(largest_id(batch) < model.head.vocab_size(), "evaluation: source '", name,
                                    "' holds token ", largest_id(batch), ", but ", model.name, " knows only ",
                                    model.head.vocab_size(),
                                    " tokens; use the tokenizer that belongs to the model.");
    const bench::Stopwatch watch(device);
    const auto hidden_ND = hidden_of(model, packed);
    scores.seconds += watch.seconds();
    const auto teacher_ND = !teacher            ? at::Tensor()
                            : teacher == &model ? hidden_ND
                                                : hidden_of(*teacher, packed);
    RowScores rows;
    const auto sums = score_hidden(model.head, hidden_ND, teacher ? &teacher->head : nullptr, teacher_ND,
                                   packed.targets_N, settings.head_rows, &rows);
    base::require<base::ValidationError>(
        std::isfinite(sums.nll) && std::isfinite(sums.kl), "evaluation: source '", name, "', windows ",
        batch.windows.front().number, " to ", batch.windows.back().number, ": the loss of ", model.name,
        " is not finite; the model is damaged.");
    scores.sums.add(sums);
    scores.inputs += batch.tokens;
    rows = on_cpu(rows);
    add_documents(batch, rows, scores.documents);
    if (on_window) report_windows(batch, rows.nll_N, on_window);
  }
  scores.seconds += scores.sums.head_seconds;
  describe_documents(windows, scores);
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
                     .sources = {},
                     .generations = {}};
  for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit) {
    // Padding is zero and does not count.
    scores.nonzero_parameters += at::count_nonzero(parameters.acquire(unit)).item<std::int64_t>();
    parameters.release(unit);
  }
  if (!directory.empty())
    for (const auto& file : io::ModelDirectory::open(directory).weight_files())
      scores.file_bytes += static_cast<std::int64_t>(std::filesystem::file_size(file));
  return scores;
}

}  // namespace retort::eval
