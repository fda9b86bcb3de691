#include "retort/eval/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/eval/stopwatch.h"
#include "retort/io/model_directory.h"

namespace retort::eval {
namespace {

HeadScorer head_of(shard::Parameters& parameters) {
  const auto unit = parameters.layout().head_unit();
  HeadScorer head(parameters.config(), parameters.layout(), parameters.acquire(unit));
  parameters.release(unit);
  return head;
}

// Windows that go through a block together.
struct Batch {
  std::vector<data::Sequence> windows;
  std::int64_t tokens = 0;
};

bool read_batch(Windows& windows, std::int64_t max_tokens, std::optional<data::Sequence>& left_over,
                Batch& batch) {
  batch = {};
  for (;;) {
    data::Sequence window;
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

struct Packed {
  at::Tensor ids_N, targets_N;
  std::vector<std::int64_t> starts;
  std::int64_t longest = 0;  ///< window
  std::int32_t largest_id = 0;
};

Packed pack(const Batch& batch, at::Device device) {
  Packed packed;
  std::vector<std::int32_t> ids, targets;
  for (const auto& window : batch.windows) {
    const auto offset = static_cast<std::int64_t>(ids.size());
    for (const auto start : window.starts) packed.starts.push_back(offset + start);
    ids.insert(ids.end(), window.ids.begin(), window.ids.end());
    targets.insert(targets.end(), window.targets.begin(), window.targets.end());
    packed.longest = std::max(packed.longest, static_cast<std::int64_t>(window.ids.size()));
  }
  packed.starts.push_back(static_cast<std::int64_t>(ids.size()));
  packed.largest_id =
      std::max(*std::max_element(ids.begin(), ids.end()), *std::max_element(targets.begin(), targets.end()));
  packed.ids_N = model::index_tensor(ids, device);
  packed.targets_N = model::index_tensor(targets, device);
  return packed;
}

at::Tensor hidden_of(const Subject& subject, const Packed& packed) {
  const auto& config = subject.parameters.config();
  return forward_hidden(subject.parameters, packed.ids_N,
                        model::make_token_layout(config, packed.starts, packed.ids_N.device()));
}

void report_windows(const Batch& batch, const at::Tensor& nll_N, const WindowCallback& on_window) {
  const auto nll = nll_N.to(at::kCPU).contiguous();
  const float* row = nll.const_data_ptr<float>();
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

Subject::Subject(std::string subject_name, shard::Parameters& subject_parameters)
    : name(std::move(subject_name)), parameters(subject_parameters), head(head_of(subject_parameters)) {}

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

void check_comparable(const Subject& model, const Subject* teacher, std::int64_t context) {
  for (const auto* subject : {&model, teacher}) {
    if (!subject) continue;
    const auto limit = subject->parameters.config().max_position_embeddings;
    base::require<base::UsageError>(context <= limit, "evaluation: the context is ", context, " tokens, but ",
                                    subject->name, " was made for at most ", limit, "; lower the context.");
  }
  if (!teacher) return;
  base::require<base::ModelError>(model.head.vocab_size() == teacher->head.vocab_size(),
                                  "evaluation: ", model.name, " has a vocabulary of ",
                                  model.head.vocab_size(), " tokens, its teacher ", teacher->name, " one of ",
                                  teacher->head.vocab_size(), "; compare models with the same tokenizer.");
}

SourceScores evaluate_source(const Subject& model, const Subject* teacher, const std::string& name,
                             Windows& windows, const BatchSettings& settings,
                             const WindowCallback& on_window) {
  SourceScores scores{
      .name = name, .bytes = 0, .inputs = 0, .seconds = 0, .has_teacher = teacher != nullptr, .sums = {}};
  const auto device = model.head.device();
  std::optional<data::Sequence> left_over;
  for (Batch batch; read_batch(windows, settings.tokens, left_over, batch);) {
    const auto packed = pack(batch, device);
    check_comparable(model, teacher, packed.longest);
    base::require<base::ModelError>(packed.largest_id < model.head.vocab_size(), "evaluation: source '", name,
                                    "' holds token ", packed.largest_id, ", but ", model.name, " knows only ",
                                    model.head.vocab_size(),
                                    " tokens; use the tokenizer that belongs to the model.");
    const Stopwatch watch(device);
    const auto hidden_ND = hidden_of(model, packed);
    scores.seconds += watch.seconds();
    const auto teacher_ND = !teacher            ? at::Tensor()
                            : teacher == &model ? hidden_ND
                                                : hidden_of(*teacher, packed);
    at::Tensor nll_N;
    const auto sums = score_hidden(model.head, hidden_ND, teacher ? &teacher->head : nullptr, teacher_ND,
                                   packed.targets_N, settings.head_rows, on_window ? &nll_N : nullptr);
    base::require<base::ValidationError>(
        std::isfinite(sums.nll) && std::isfinite(sums.kl), "evaluation: source '", name, "', windows ",
        batch.windows.front().number, " to ", batch.windows.back().number, ": the loss of ", model.name,
        " is not finite; the model is damaged.");
    scores.sums.add(sums);
    scores.inputs += batch.tokens;
    if (on_window) report_windows(batch, nll_N, on_window);
  }
  scores.seconds += scores.sums.head_seconds;
  scores.bytes = windows.bytes();
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
                     .generation = {}};
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
