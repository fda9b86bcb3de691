// What a search has measured is not lost, and not taken for something else.
#include <gtest/gtest.h>

#include <algorithm>

#include "retort/prune/searched.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

class Listener : public record::Observer {
 public:
  void message(record::Level level, std::string_view text) override {
    if (level == record::Level::warning) warnings += text;
  }
  std::string warnings;
};

std::size_t lines_of(const base::Path& path) {
  const auto text = base::read_file(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The same search again measures nothing; one with a larger budget measures the rest; one with another seed
// begins with the same probes; of another model nothing is known.
TEST(SavedSearch, ServesWhereCandidatesAgree) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "search.jsonl";
  Listener listener;
  auto input = test::tiny_model(test::tiny_config(4));
  const auto sources = test::random_domains(40, 3, 64);
  prune::PruneOptions options;
  options.units = prune::Units::per_layer;
  options.target.parameters_fraction = 0.8;
  options.width_multiple = 4;
  options.compensate = false;
  options.search = {.method = prune::SearchMethod::tabu, .budget_tokens = 20'000, .tolerance = 0.15};
  const auto objective_of = [&](const base::Path& file) {
    const auto result = prune::prune_searched({input, sources, options, listener, {file}});
    return std::get<prune::SearchCourse>(result.report.course).finalists.front().searched_objective;
  };
  const auto run = [&] { return objective_of(path); };
  const auto once = run();
  const auto lines = lines_of(path);
  EXPECT_EQ(run(), once);
  EXPECT_EQ(lines_of(path), lines);

  options.search.budget_tokens *= 2;
  const auto longer = run();
  const auto rest = lines_of(path) - lines;
  EXPECT_GT(rest, 0U);
  EXPECT_EQ(objective_of(directory / "longer.jsonl"), longer) << "as without what was measured";
  EXPECT_EQ(lines_of(directory / "longer.jsonl"), lines + rest);
  options.search.budget_tokens /= 2;
  const auto before = lines_of(path);

  options.seed = 5;
  const auto other = run();
  const auto both = lines_of(path);
  EXPECT_GT(both, before);
  const auto fresh = directory / "fresh.jsonl";
  EXPECT_EQ(objective_of(fresh), other);
  EXPECT_LT(both, before + lines_of(fresh) - 1) << "probes are common";
  EXPECT_EQ(listener.warnings, "");

  input.tensor("model.norm.weight").mul_(1.001);
  (void)run();
  EXPECT_NE(listener.warnings.find("another model"), std::string::npos) << listener.warnings;
}

}  // namespace
}  // namespace retort
