#include "retort/eval/batch_scorer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "retort/base/error.h"
#include "retort/bench/stopwatch.h"
#include "retort/data/sequence_bytes.h"

namespace retort::eval {
namespace {

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

}  // namespace

bool BatchScorer::next_round(std::vector<ScoredBatch>& round) {
  read_once(round);
  if (round.empty()) return false;
  // A rank without a batch passes the last along, where it has parts of what the others gather.
  const auto rank = static_cast<std::size_t>(group_ ? group_->rank() : 0);
  const bool has_one = rank < round.size();
  auto& own = round[std::min(rank, round.size() - 1)];
  States states;
  if (gathers_) {
    comm::agree(group_, [&] { check(own.batch); });
    states = states_of(own);
  }
  comm::agree(group_, [&] {
    if (!has_one) return;
    if (!gathers_) {
      check(own.batch);
      states = states_of(own);
    }
    score(states, own);
  });
  if (several()) exchange(round, has_one ? bytes_of(own) : "");
  return true;
}

void BatchScorer::read(std::vector<ScoredBatch>& round, std::size_t batches) {
  round.clear();
  for (ScoredBatch next;
       round.size() < batches && read_batch(*windows_, settings_.tokens, left_over_, next.batch);)
    round.push_back(std::move(next));
}

// A batch for each rank.
void BatchScorer::read_once(std::vector<ScoredBatch>& round) {
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
void BatchScorer::exchange(std::vector<ScoredBatch>& round, const std::string& own) const {
  const auto texts = group_->all_texts(own);
  for (std::size_t rank = 0; rank < round.size(); ++rank)
    read_bytes(texts[rank], teacher_ != nullptr, round[rank]);
}

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

}  // namespace retort::eval
