#pragma once
// Small problems whose best state is known by going through all of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/random.h"
#include "retort/search/journal.h"
#include "support/outside_data.h"

namespace retort::test {

using search::Journal;
using search::Space;
using search::State;

/// f = sum of additions + sum over pairs of interactions, by level; and what may be removed.
struct Problem {
  Space space;
  std::vector<std::vector<double>> additions;  ///< [unit][level]
  std::vector<std::vector<double>> pairs;      ///< [i][j], i < j, times the share of levels of both

  double objective(const State& state) const {
    double sum = 0;
    const auto share = [&](std::size_t unit) {
      return static_cast<double>(state[unit]) / static_cast<double>(space.highest(unit));
    };
    for (std::size_t i = 0; i < state.size(); ++i) {
      sum += additions[i][static_cast<std::size_t>(state[i])];
      for (std::size_t j = i + 1; j < state.size(); ++j) sum += pairs[i][j] * share(i) * share(j);
    }
    return sum;
  }
  Journal::Evaluate evaluate() const {
    return [this](std::span<const search::Task> tasks, const Journal::Tell& tell) {
      for (std::size_t i = 0; i < tasks.size(); ++i)
        tell(i, std::vector<double>(tasks[i].last - tasks[i].first, objective(tasks[i].state)));
    };
  }
  Journal journal(double budget = 0) const { return {space, evaluate(), {.budget = budget}}; }
};

/// Calls `visit` with every feasible state.
inline void for_all_feasible(const Space& space, const std::function<void(const State&)>& visit) {
  State state = space.whole();
  for (;;) {
    if (space.feasible(state)) visit(state);
    std::size_t unit = 0;
    while (unit < state.size() && state[unit] == space.highest(unit)) state[unit++] = 0;
    if (unit == state.size()) return;
    ++state[unit];
  }
}

inline double least_objective(const Problem& problem) {
  double least = std::numeric_limits<double>::infinity();
  for_all_feasible(problem.space,
                   [&](const State& state) { least = std::min(least, problem.objective(state)); });
  return least;
}

/// `name` of golden_tabu.json: n units of one size, k of them are removed.
inline Problem golden_problem(const std::string& name, base::Json& golden) {
  golden = base::Json::parse(base::read_file(source() / "tests" / "search" / "golden_tabu.json")).at(name);
  Problem problem;
  problem.space.least_removed = problem.space.most_removed = golden.at("k").get<std::int64_t>();
  for (std::int64_t i = 0; i < golden.at("n").get<std::int64_t>(); ++i) {
    problem.space.units.push_back({.name = "unit " + std::to_string(i), .removed = {0, 1}});
    problem.additions.push_back({0, golden.at("a")[static_cast<std::size_t>(i)].get<double>()});
  }
  problem.pairs = golden.at("Q").get<std::vector<std::vector<double>>>();
  return problem;
}

/// Attention and MLP of `blocks` blocks, the MLP in four widths; sizes do not divide each other.
inline Problem random_problem(std::uint64_t seed, std::int64_t blocks, double interaction) {
  base::Random random(seed, 1);
  Problem problem;
  std::int64_t all = 0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    problem.space.units.push_back({.name = "attention " + std::to_string(block), .removed = {0, 70}});
    problem.space.units.push_back({.name = "mlp " + std::to_string(block), .removed = {0, 30, 60, 90, 130}});
    all += 200;
  }
  problem.space.least_removed = all * 38 / 100;
  problem.space.most_removed = all * 42 / 100;
  const auto units = problem.space.units.size();
  problem.pairs.assign(units, std::vector<double>(units, 0));
  for (std::size_t i = 0; i < units; ++i) {
    const double scale = random.next_double() + 0.1;
    auto& additions = problem.additions.emplace_back();
    for (const auto removed : problem.space.units[i].removed)
      additions.push_back(scale * static_cast<double>(removed * removed) / 1e4);
    for (std::size_t j = i + 1; j < units; ++j) problem.pairs[i][j] = interaction * random.next_normal();
  }
  return problem;
}

}  // namespace retort::test
