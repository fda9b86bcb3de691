#include "retort/prune/shared_evaluator.h"

#include <algorithm>
#include <cstring>

#include "retort/comm/share.h"

namespace retort::prune {
namespace {

// Only this file reads them.
constexpr const char *kCandidate = "candidate", *kFirst = "first", *kLast = "last",
                     *kOverVocabulary = "over_vocabulary";
// Two candidates of a rank at a time hide that one takes longer than another.
constexpr std::int64_t kTasksOfRank = 2;

template <typename Value>
void append(std::string& bytes, const std::vector<Value>& values) {
  static_assert(std::is_trivially_copyable_v<Value>);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

template <typename Value>
std::vector<Value> values_of(std::string_view bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::size_t count_pieces(const base::Json& tasks) {
  std::size_t count = 0;
  for (const auto& task : tasks)
    count += task.at(kLast).get<std::size_t>() - task.at(kFirst).get<std::size_t>();
  return count;
}

}  // namespace

SharedEvaluator::SharedEvaluator(const PruneSetup& setup, const Evaluator& evaluator)
    : evaluator_(evaluator), threads_of_rank_(at::get_num_threads()) {
  if (!setup.group || setup.group->size() == 1) return;
  ranks_ = setup.group->size();
  rank_ = setup.group->rank();
  if (rank_ == 0 && setup.threads_of_leader > 0) threads_of_leader_.emplace(setup.threads_of_leader);
  requests_.emplace(*setup.group, [this](const std::string& request) { return answer(request); });
}

std::size_t SharedEvaluator::tasks_at_a_time() const {
  return ranks_ == 1 ? 1 : static_cast<std::size_t>(kTasksOfRank * ranks_);
}

std::vector<std::vector<double>> SharedEvaluator::piece_costs(const std::vector<Task>& tasks) {
  std::vector<std::vector<double>> costs;
  if (!requests_) {
    for (const auto& task : tasks)
      costs.push_back(evaluator_.piece_costs(task.candidate, task.first, task.last));
    return costs;
  }
  auto request = base::Json::array();
  for (const auto& task : tasks)
    request.push_back(
        {{kCandidate, architecture::to_json(task.candidate)}, {kFirst, task.first}, {kLast, task.last}});
  std::string bytes;
  for (const auto& answer : requests_->ask(request.dump())) bytes += answer;
  const auto all = values_of<double>(bytes);
  auto next = all.begin();
  for (const auto& task : tasks) {
    const auto end = next + static_cast<std::ptrdiff_t>(task.last - task.first);
    costs.emplace_back(next, end);
    next = end;
  }
  return costs;
}

std::vector<calibrate::DocumentSums> SharedEvaluator::document_sums(const architecture::Kept& candidate,
                                                                    KlOver over) {
  if (!requests_) return evaluator_.document_sums(candidate, over);
  const base::Json request = {{kCandidate, architecture::to_json(candidate)},
                              {kOverVocabulary, over == KlOver::vocabulary}};
  const auto answers = requests_->ask(request.dump());
  std::vector<std::vector<calibrate::DocumentSums>> by_batch(evaluator_.batches().size());
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    std::string_view rest = answers[rank];
    for (auto batch = rank; batch < by_batch.size(); batch += answers.size()) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, rest.data(), sizeof bytes);
      by_batch[batch] = values_of<calibrate::DocumentSums>(rest.substr(sizeof bytes, bytes));
      rest.remove_prefix(sizeof bytes + bytes);
    }
  }
  return evaluator_.joined(by_batch);
}

calibrate::Evaluation SharedEvaluator::evaluate(const architecture::Kept& candidate, KlOver over) {
  return evaluator_.evaluation_of(document_sums(candidate, over));
}

std::string SharedEvaluator::answer(const std::string& request) const {
  const ops::Threads threads(threads_of_rank_);
  const auto json = base::Json::parse(request);
  return json.is_array() ? own_piece_costs(json) : own_batch_sums(json);
}

std::string SharedEvaluator::own_piece_costs(const base::Json& tasks) const {
  // Of the pieces of all tasks, one task behind the other.
  const auto own = comm::share_of(count_pieces(tasks), static_cast<int>(rank_), static_cast<int>(ranks_));
  std::string bytes;
  std::size_t before = 0;  // pieces of the tasks before
  for (const auto& task : tasks) {
    const auto first = task.at(kFirst).get<std::size_t>(), last = task.at(kLast).get<std::size_t>();
    const auto begin = std::clamp(own.first, before, before + last - first) - before + first;
    const auto end = std::clamp(own.last, before, before + last - first) - before + first;
    if (begin < end)
      append(bytes, evaluator_.piece_costs(architecture::kept_from_json(task.at(kCandidate)), begin, end));
    before += last - first;
  }
  return bytes;
}

std::string SharedEvaluator::own_batch_sums(const base::Json& request) const {
  const auto over = request.at(kOverVocabulary).get<bool>() ? KlOver::vocabulary : KlOver::top_k;
  std::string bytes;
  for (const auto& documents :
       evaluator_.batch_sums(architecture::kept_from_json(request.at(kCandidate)), over,
                             static_cast<std::size_t>(rank_), static_cast<std::size_t>(ranks_))) {
    append(bytes, std::vector<std::uint64_t>{documents.size() * sizeof documents.front()});
    append(bytes, documents);
  }
  return bytes;
}

}  // namespace retort::prune
