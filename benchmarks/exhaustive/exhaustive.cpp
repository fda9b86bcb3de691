// Every choice of k removed units of a small model, and what each search finds among them.
// For each k: f of all choices, the optimum, and for greedy, additive, one-shot, evolution, random and Tabu
// search what they chose, how far it is from the optimum, how many of all choices are better, and how many
// evaluations it took.  Prints JSON.

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "retort/architecture/counts.h"
#include "retort/data/windows.h"
#include "retort/model/weights.h"
#include "retort/pipeline/context.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/model_space.h"
#include "retort/prune/options.h"
#include "retort/search/additive.h"
#include "retort/search/evolution.h"
#include "retort/search/greedy.h"
#include "retort/search/tabu.h"

namespace {

using namespace retort;
using search::Journal;
using search::State;

struct Settings {
  std::string model, units = "sub_blocks";
  std::vector<std::string> texts;
  std::string separator, field = "text";
  std::vector<std::int64_t> removed;
  std::int64_t tokens = 4096, length = 512, seeds = 5, evaluations = 0;
};

std::vector<calibrate::SourceText> read_domains(const Settings& s, const architecture::Config& config) {
  const auto text = pipeline::read_model_text(s.model, config);
  const data::PackingOptions packing{.sequence_length = s.length};
  const auto sources = static_cast<std::int64_t>(s.texts.size());
  const auto count = std::max<std::int64_t>(1, s.tokens / sources / s.length);
  std::vector<calibrate::SourceText> read;
  for (const auto& path : s.texts) {
    data::SourceOptions source;
    source.name = path;
    source.paths = {path};
    source.separator = s.separator;
    source.field = s.field;
    read.push_back(
        {path, data::calibration_sequences(source, packing, text.encode(), text.special, 0, count)});
  }
  return read;
}

// The same states, each unit counting one.
search::Space counted(const search::Space& space, std::int64_t k) {
  search::Space counted{
      .units = {}, .least_removed = k, .most_removed = k, .removed_together = {}, .admits = {}};
  for (const auto& unit : space.units) counted.units.push_back({unit.name, {0, 1}});
  return counted;
}

class Experiment {
 public:
  Experiment(prune::Evaluator& evaluator, const prune::ModelSpace& space)
      : evaluator_(evaluator), model_(space) {}

  double objective(const State& state) {
    const auto known = values_.find(state);
    if (known != values_.end()) return known->second;
    return values_[state] = evaluator_.evaluate(model_.candidate(state)).mean.objective;
  }
  void all_choices(State& state, std::size_t unit, std::int64_t left, std::vector<double>& values) {
    if (left == 0) {
      values.push_back(objective(state));
      return;
    }
    for (; unit + static_cast<std::size_t>(left) <= state.size(); ++unit) {
      state[unit] = 1;
      all_choices(state, unit + 1, left - 1, values);
      state[unit] = 0;
    }
  }
  base::Json run(std::int64_t k, const Settings& s) {
    const auto space = counted(model_.space(), k);
    State state = space.whole();
    std::vector<double> values;
    all_choices(state, 0, k, values);
    std::sort(values.begin(), values.end());
    base::Json json = {{"removed", k},
                       {"choices", values.size()},
                       {"optimum", values.front()},
                       {"median", values[values.size() / 2]}};
    const auto budget =
        static_cast<double>(s.evaluations > 0 ? s.evaluations : 4 * (std::ssize(space.units) + k));
    const auto measure = [&](const std::string& name, std::uint64_t seed, auto method) {
      Journal journal(space,
                      [this](std::span<const search::Task> tasks, const Journal::Tell& tell) {
                        for (std::size_t i = 0; i < tasks.size(); ++i) tell(i, {objective(tasks[i].state)});
                      },
                      {.budget = budget});
      search::run_search([&] { method(journal, seed); });
      const double found = journal.best() ? journal.best()->objective : values.back();
      json["methods"][name].push_back(
          {{"objective", found},
           {"better_choices", std::lower_bound(values.begin(), values.end(), found) - values.begin()},
           {"evaluations", journal.entries().size()}});
    };
    measure("one_shot", 0, [](Journal& journal, std::uint64_t) {
      journal.objective(search::one_shot(journal.space(), search::Proxy::probed(journal.space(), journal, 1)),
                        0);
    });
    measure("additive", 0, [](Journal& journal, std::uint64_t) {
      journal.objective(
          search::least_additive(journal.space(), search::Proxy::probed(journal.space(), journal, 1)), 0);
    });
    measure("greedy", 0, [](Journal& journal, std::uint64_t) { search::greedy(journal); });
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(s.seeds); ++seed) {
      measure("random", seed,
              [](Journal& journal, std::uint64_t n) { search::random_search(journal, n, 100000); });
      measure("evolution", seed, [](Journal& journal, std::uint64_t n) {
        search::evolution(journal, {}, {.seed = n, .offspring = 8, .starts = 8});
      });
      measure("tabu", seed, [](Journal& journal, std::uint64_t n) {
        auto proxy = search::Proxy::probed(journal.space(), journal, 1);
        const auto start = search::one_shot(journal.space(), proxy);
        search::tabu(journal, std::move(proxy), {start},
                     {.seed = n, .candidates = 6, .random_candidates = 2});
      });
    }
    return json;
  }

 private:
  prune::Evaluator& evaluator_;
  const prune::ModelSpace& model_;
  std::map<State, double> values_;
};

base::Json run(const Settings& s) {
  const auto weights = model::load_weights(s.model, at::kFloat, at::kCPU);
  const auto sources = read_domains(s, weights.config);
  prune::Evaluator evaluator(weights, sources, {});
  prune::PruneOptions options;
  options.units = s.units == "blocks" ? prune::Units::blocks : prune::Units::sub_blocks;
  const prune::ModelSpace space(weights.config, options, architecture::num_parameters(weights.config), {});
  Experiment experiment(evaluator, space);
  base::Json json = {{"model", s.model},
                     {"units", s.units},
                     {"tokens", evaluator.tokens()},
                     {"results", base::Json::array()}};
  for (const auto k : s.removed) json["results"].push_back(experiment.run(k, s));
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("All choices of removed units, and what searches find among them");
  app.add_option("MODEL", s.model)->required();
  app.add_option("--text", s.texts, "a domain each")->required();
  app.add_option("--units", s.units, "blocks or sub_blocks")->check(CLI::IsMember({"blocks", "sub_blocks"}));
  app.add_option("--removed", s.removed, "numbers of units")->required();
  app.add_option("--tokens", s.tokens);
  app.add_option("--length", s.length);
  app.add_option("--separator", s.separator);
  app.add_option("--seeds", s.seeds);
  app.add_option("--evaluations", s.evaluations, "budget of a search; 0: four times units + removed");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << run(s).dump(1) << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "exhaustive: " << error.what() << std::endl;
    return 1;
  }
}
