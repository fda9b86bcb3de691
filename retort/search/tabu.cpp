#include "retort/search/tabu.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "retort/base/error.h"
#include "retort/base/random.h"
#include "retort/search/neighbourhood.h"
#include "retort/search/race.h"

namespace retort::search {
namespace {

struct Tenure {
  std::int64_t least, most;
};

Tenure tenure_of(const TabuOptions& options, std::size_t units) {
  const auto root =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(units))));
  const auto least = options.tenure_min > 0 ? options.tenure_min : root;
  return {least, std::max(least, options.tenure_max > 0 ? options.tenure_max : 2 * root)};
}

// Which units may not go up or down until which iteration.
class Memory {
 public:
  explicit Memory(std::size_t units) : up_until_(units, -1), down_until_(units, -1) {}

  bool forbids(const State& from, const State& to, std::int64_t iteration) const {
    for (std::size_t unit = 0; unit < from.size(); ++unit) {
      if (to[unit] > from[unit] && up_until_[unit] >= iteration) return true;
      if (to[unit] < from[unit] && down_until_[unit] >= iteration) return true;
    }
    return false;
  }
  void remember(const State& from, const State& to, std::int64_t iteration, Tenure tenure,
                base::Random& random) {
    const auto span = static_cast<std::uint64_t>(tenure.most - tenure.least + 1);
    for (std::size_t unit = 0; unit < from.size(); ++unit) {
      if (to[unit] == from[unit]) continue;
      const auto until = iteration + tenure.least + static_cast<std::int64_t>(random.next_below(span));
      (to[unit] > from[unit] ? down_until_ : up_until_)[unit] = until;
    }
  }
  void forgive() {
    std::fill(up_until_.begin(), up_until_.end(), -1);
    std::fill(down_until_.begin(), down_until_.end(), -1);
  }

 private:
  std::vector<std::int64_t> up_until_, down_until_;
};

class Tabu {
 public:
  Tabu(Journal& journal, Proxy proxy, const TabuOptions& options)
      : journal_(journal),
        proxy_(std::move(proxy)),
        options_(options),
        tenure_(tenure_of(options, journal.space().units.size())),
        memory_(journal.space().units.size()) {}

  void run(const std::vector<State>& starts) {
    const auto objectives = journal_.objectives(starts, journal_.last_rung());
    for (std::size_t i = 0; i < starts.size(); ++i) admit({starts[i], objectives[i], journal_.last_rung()});
    state_ = best_.front().state;
    for (iteration_ = 0; iteration_ < options_.iterations; ++iteration_) step();
  }

 private:
  void step() {
    base::Random random(options_.seed, base::stream_of(base::join("tabu/", iteration_)));
    if (options_.stagnation > 0 && iteration_ - improved_ >= options_.stagnation) restart();
    auto candidates = candidate_list(random);
    if (moved_to_one_of(candidates, random)) return;
    // A tabu neighbour won and is no new best: the others race without it.
    std::erase_if(candidates, [&](const State& next) { return memory_.forbids(state_, next, iteration_); });
    if (!moved_to_one_of(candidates, random)) memory_.forgive();
  }

  // To the best that is allowed, or better than all before.
  bool moved_to_one_of(const std::vector<State>& candidates, base::Random& random) {
    if (candidates.empty()) return false;
    const auto incumbent = best_.front().state;
    const auto ranked = race(journal_, candidates, {.survivors = 1, .incumbent = &incumbent});
    learn(candidates);
    for (const auto& next : ranked) {
      const bool best = next.rung == journal_.last_rung() && next.objective < best_.front().objective;
      if (!best && memory_.forbids(state_, next.state, iteration_)) continue;
      memory_.remember(state_, next.state, iteration_, tenure_, random);
      state_ = next.state;
      admit(next);
      return true;
    }
    return false;
  }

  // The allowed neighbours with the best guesses and some others; a tabu one only where its guess promises a
  // new best.
  std::vector<State> candidate_list(base::Random& random) const {
    struct Guess {
      double value;
      State state;
    };
    std::vector<Guess> guesses;
    auto around = neighbours(journal_.space(), state_, proxy_);
    const double promised = proxy_.difference(state_, best_.front().state);
    const bool all = around.size() <= static_cast<std::size_t>(options_.candidates);
    for (auto& next : around) {
      const double difference = proxy_.difference(state_, next);
      if (!all && memory_.forbids(state_, next, iteration_) && difference >= promised) continue;
      guesses.push_back({difference, std::move(next)});
    }
    std::stable_sort(guesses.begin(), guesses.end(),
                     [](const Guess& a, const Guess& b) { return a.value < b.value; });
    const auto first = std::min(guesses.size(), static_cast<std::size_t>(options_.candidates));
    for (std::size_t i = 0;
         i < static_cast<std::size_t>(options_.random_candidates) && first + i < guesses.size(); ++i)
      std::swap(guesses[first + i], guesses[first + i + random.next_below(guesses.size() - first - i)]);
    guesses.resize(std::min(guesses.size(), first + static_cast<std::size_t>(options_.random_candidates)));
    std::vector<State> states;
    for (auto& guess : guesses) states.push_back(std::move(guess.state));
    return states;
  }

  void learn(const std::vector<State>& candidates) {
    const double here = journal_.objective(state_, 0);
    const auto objectives = journal_.objectives(candidates, 0);
    std::vector<Proxy::Measured> measured;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (learned_.insert(candidates[i]).second)
        measured.push_back({state_, candidates[i], objectives[i] - here});
    if (!measured.empty()) proxy_.learn(std::move(measured));
  }

  // Keeps the best states that were evaluated at the last rung apart; the first is the best of all.
  void admit(Ranked found) {
    if (found.rung < journal_.last_rung()) return;
    for (const auto& other : best_)
      if (other.state == found.state) return;
    if (best_.empty() || found.objective < best_.front().objective) improved_ = iteration_;
    const auto place =
        std::upper_bound(best_.begin(), best_.end(), found,
                         [](const Ranked& a, const Ranked& b) { return a.objective < b.objective; });
    best_.insert(place, std::move(found));
    if (best_.size() > static_cast<std::size_t>(std::max<std::int64_t>(options_.elite, 1))) best_.pop_back();
  }

  void restart() {
    state_ = best_[restarts_++ % best_.size()].state;
    improved_ = iteration_;
    memory_.forgive();
  }

  Journal& journal_;
  Proxy proxy_;
  const TabuOptions& options_;
  Tenure tenure_;
  Memory memory_;
  State state_;
  std::vector<Ranked> best_;
  std::set<State> learned_;
  std::int64_t iteration_ = 0, improved_ = 0;
  std::size_t restarts_ = 0;
};

}  // namespace

void tabu(Journal& journal, Proxy proxy, const std::vector<State>& starts, const TabuOptions& options) {
  base::require<base::UsageError>(!starts.empty(), "search: Tabu search needs a start, found none.");
  Tabu(journal, std::move(proxy), options).run(starts);
}

}  // namespace retort::search
