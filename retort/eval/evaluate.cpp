#include "retort/eval/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <type_traits>
#include <utility>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/bench/stopwatch.h"
#include "retort/data/sequence_bytes.h"
#include "retort/io/model_directory.h"
#include "retort/model/packed_text.h"
#include "retort/shard/acquired_unit.h"

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

void put_bytes(std::string& bytes, const Batch& batch) {
  base::put_bytes(bytes, batch.tokens);
  base::put_bytes(bytes, batch.windows.size());
  for (const auto& window : batch.windows) {
    data::put_bytes(bytes, window);
    base::put_bytes(bytes, window.target_documents);
  }
}

void get_bytes(base::ByteReader& reader, Batch& batch) {
  std::size_t windows = 0;
  reader.get(batch.tokens);
  reader.get(windows);
  for (std::size_t i = 0; i < windows; ++i) {
    auto& window = batch.windows.emplace_back();
    data::get_bytes(reader, window);
    reader.get(window.target_documents);
  }
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

// A batch and what came of it; rows are on the host, in float32.
struct ScoredBatch {
  Batch batch;
  ScoreSums sums;
  RowScores rows;
  double seconds = 0;  // of the model's blocks
};

// What a rank tells the others of its batch; the losses of its rows follow.
struct BatchHead {
  ScoreSums sums;
  double seconds = 0;
};
static_assert(std::is_trivially_copyable_v<BatchHead>);

std::vector<at::Tensor> columns_of(const RowScores& rows) {
  std::vector<at::Tensor> columns{rows.nll_N};
  if (rows.kl_N.defined()) columns.insert(columns.end(), {rows.kl_N, rows.teacher_nll_N});
  return columns;
}

std::string bytes_of(const ScoredBatch& scored) {
  const BatchHead head{scored.sums, scored.seconds};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  for (const auto& column_N : columns_of(scored.rows))
    bytes.append(static_cast<const char*>(column_N.const_data_ptr()), column_N.nbytes());
  return bytes;
}

void read_bytes(std::string_view bytes, bool has_teacher, ScoredBatch& scored) {
  BatchHead head;
  std::memcpy(&head, bytes.data(), sizeof head);
  scored.sums = head.sums;
  scored.seconds = head.seconds;
  bytes.remove_prefix(sizeof head);
  for (auto* column_N : {&scored.rows.nll_N, &scored.rows.kl_N, &scored.rows.teacher_nll_N}) {
    *column_N = at::empty({scored.batch.tokens}, at::kFloat);
    std::memcpy(column_N->mutable_data_ptr(), bytes.data(), column_N->nbytes());
    bytes.remove_prefix(column_N->nbytes());
    if (!has_teacher) return;
  }
}

// Takes windows through the models, a batch for each rank at a time.
class BatchScorer {
 public:
  BatchScorer(const Subject& model, const Subject* teacher, const std::string& source, Windows* windows,
              const BatchSettings& settings)
      : model_(model), teacher_(teacher), source_(source), windows_(windows), settings_(settings) {}

  // False at the end.
  bool next_round(std::vector<ScoredBatch>& round) {
    read_once(round);
    if (round.empty()) return false;
    // A rank without a batch passes the last along, where it has parts of what the others gather.
    const auto rank = static_cast<std::size_t>(group_ ? group_->rank() : 0);
    const bool has_one = rank < round.size();
    auto& own = round[std::min(rank, round.size() - 1)];
    comm::agree(group_, [&] { check(own.batch); });
    States states;
    if (has_one || gathers_) states = states_of(own);
    comm::agree(group_, [&] {
      if (has_one) score(states, own);
    });
    if (several()) exchange(round, has_one ? bytes_of(own) : "");
    return true;
  }

 private:
  // What both models make of a batch.
  struct States {
    model::PackedText packed;
    at::Tensor model_ND, teacher_ND;
  };

  bool several() const { return group_ && group_->size() > 1; }
  void read(std::vector<ScoredBatch>& round, std::size_t batches) {
    round.clear();
    for (ScoredBatch next;
         round.size() < batches && read_batch(*windows_, settings_.tokens, left_over_, next.batch);)
      round.push_back(std::move(next));
  }
  // A batch for each rank.
  void read_once(std::vector<ScoredBatch>& round) {
    std::string bytes;
    comm::agree(group_, [&] {
      if (!windows_) return;
      read(round, static_cast<std::size_t>(group_ ? group_->size() : 1));
      if (!several()) return;
      for (const auto& scored : round) put_bytes(bytes, scored.batch);
    });
    if (several()) group_->share(bytes);
    if (windows_) return;
    round.clear();
    for (base::ByteReader reader(bytes); !reader.at_end();) get_bytes(reader, round.emplace_back().batch);
  }
  // Every rank has what the others found.
  void exchange(std::vector<ScoredBatch>& round, const std::string& own) const {
    const auto texts = group_->all_texts(own);
    for (std::size_t rank = 0; rank < round.size(); ++rank)
      read_bytes(texts[rank], teacher_ != nullptr, round[rank]);
  }
  void check(const Batch& batch) const;
  States states_of(ScoredBatch& scored) const;
  at::Tensor teacher_states_of(const model::PackedText& packed, const at::Tensor& model_ND) const;
  void score(const States& states, ScoredBatch& scored) const;

  const Subject& model_;
  const Subject* teacher_;
  const std::string& source_;
  Windows* windows_;
  const BatchSettings& settings_;
  comm::Group* group_ = settings_.group;
  // Whether ranks gather weights from each other, and so pass the same units at the same time.
  bool gathers_ = !model_.parameters.resident() || (teacher_ && !teacher_->parameters.resident());
  std::optional<Window> left_over_;
};

void BatchScorer::check(const Batch& batch) const {
  check_comparable(model_, teacher_, longest_window(batch));
  base::require<base::ModelError>(largest_id(batch) < model_.head.vocab_size(), "evaluation: source '",
                                  source_, "' holds token ", largest_id(batch), ", but ", model_.name,
                                  " knows only ", model_.head.vocab_size(),
                                  " tokens; use the tokenizer that belongs to the model.");
}

// Collective where ranks gather weights.
BatchScorer::States BatchScorer::states_of(ScoredBatch& scored) const {
  const auto device = model_.head.device();
  States states{model::packed_text(scored.batch.windows, device), {}, {}};
  const bench::Stopwatch watch(device);
  states.model_ND = hidden_of(model_, states.packed);
  scored.seconds = watch.seconds();
  if (teacher_) states.teacher_ND = teacher_states_of(states.packed, states.model_ND);
  return states;
}

// `model_ND`: the model's own, which are the teacher's where the model is its own teacher.
at::Tensor BatchScorer::teacher_states_of(const model::PackedText& packed, const at::Tensor& model_ND) const {
  auto* kept = settings_.teacher_states;
  const bool same = teacher_ == &model_;
  if (kept && !same) {
    auto known_ND = kept->find(packed);
    bool all_know = known_ND.defined();
    if (several() && !teacher_->parameters.resident()) {
      const auto know = group_->all_values<char>(all_know);
      all_know = std::ranges::count(know, 0) == 0;
    }
    if (all_know) return known_ND;
  }
  const auto hidden_ND = same ? model_ND : hidden_of(*teacher_, packed);
  if (kept) kept->keep(packed, hidden_ND);
  return hidden_ND;
}

void BatchScorer::score(const States& states, ScoredBatch& scored) const {
  const auto& windows = scored.batch.windows;
  scored.sums = score_hidden(model_.head, states.model_ND, teacher_ ? &teacher_->head : nullptr,
                             states.teacher_ND, states.packed.targets_N, settings_.head_rows, &scored.rows);
  base::require<base::ValidationError>(std::isfinite(scored.sums.nll) && std::isfinite(scored.sums.kl),
                                       "evaluation: source '", source_, "', windows ", windows.front().number,
                                       " to ", windows.back().number, ": the loss of ", model_.name,
                                       " is not finite; the model is damaged.");
  scored.rows = on_cpu(scored.rows);
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
