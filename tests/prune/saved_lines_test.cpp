// What a search has measured is not lost, and not taken for something else.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "prune/models_for_tests.h"
#include "retort/prune/saved_lines.h"
#include "retort/prune/searched.h"
#include "support/faulty_files.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

using prune::SavedLines;

class Listener : public record::Observer {
 public:
  void message(record::Level level, std::string_view text) override {
    if (level == record::Level::warning) warnings += text;
  }
  std::string warnings;
};

class SavedLinesTest : public testing::Test {
 protected:
  SavedLines open(const std::string& fingerprint) { return {path_, fingerprint, listener_}; }
  void fill() {
    auto lines = open("f");
    for (int i = 0; i < 3; ++i) lines.append({{"i", i}});
  }
  test::TemporaryDirectory directory_;
  base::Path path_ = directory_ / "search.jsonl";
  Listener listener_;
};

TEST_F(SavedLinesTest, AreThereAgainWithoutTheHalfLineOfACrash) {
  fill();
  std::ofstream(path_, std::ios::app) << R"({"i": 3, "pie)";
  const auto lines = open("f");
  ASSERT_EQ(lines.earlier().size(), 3U);
  EXPECT_EQ(lines.earlier()[2].at("i"), 2);
  EXPECT_EQ(listener_.warnings, "");
}

TEST_F(SavedLinesTest, ADamagedLineCostsItselfOnlyAndIsNamed) {
  fill();
  auto text = base::read_file(path_);
  text.replace(text.find("{\"i\":1}"), 2, "##");
  base::write_file_atomically(path_, text);
  EXPECT_EQ(open("f").earlier().size(), 2U);
  EXPECT_NE(listener_.warnings.find("line 3 is damaged"), std::string::npos) << listener_.warnings;
}

TEST_F(SavedLinesTest, OfSomethingElseAreReplacedWithAWarning) {
  fill();
  EXPECT_TRUE(open("g").earlier().empty());
  EXPECT_NE(listener_.warnings.find("another model"), std::string::npos) << listener_.warnings;
}

TEST_F(SavedLinesTest, AreWholeAndNoneIsLostWhicheverCallFails) {
  const auto root = directory_ / "disk";
  path_ = root / "search.jsonl";
  std::size_t appended = 0;
  const int faults = test::for_each_fault(
      root,
      [&] {
        std::filesystem::remove_all(root);
        fill();
        appended = 3;
      },
      [&] {
        auto lines = open("f");
        for (int i = 3; i < 5; ++i) {
          lines.append({{"i", i}});
          ++appended;
        }
      },
      [&] {
        const auto lines = open("f");
        ASSERT_EQ(lines.earlier().size(), appended);
        for (std::size_t i = 0; i < appended; ++i) EXPECT_EQ(lines.earlier()[i].at("i"), i);
        EXPECT_EQ(listener_.warnings, "");
      });
  EXPECT_GT(faults, 14);
}

TEST_F(SavedLinesTest, OfTheRunBeforeOutliveAPowerLoss) {
  const auto root = directory_ / "disk";
  path_ = root / "search.jsonl";
  test::for_each_power_loss(
      root, [&] { fill(); },
      [&] {
        open("f").append({{"i", 3}});
      },
      [&](bool) {
        const auto lines = open("f");
        ASSERT_GE(lines.earlier().size(), 3U);
        for (std::size_t i = 0; i < lines.earlier().size(); ++i) EXPECT_EQ(lines.earlier()[i].at("i"), i);
        EXPECT_EQ(listener_.warnings, "");
      });
}

std::size_t lines_of(const base::Path& path) {
  const auto text = base::read_file(path);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The same search again measures nothing; one with another seed begins with the same probes; of another model
// nothing is known.
TEST(SavedSearch, ServesWhereCandidatesAgree) {
  const test::TemporaryDirectory directory;
  const auto path = directory / "search.jsonl";
  Listener listener;
  auto input = test::tiny_model(test::tiny_config(4));
  const auto domains = test::random_domains(40, 3, 64);
  prune::PruneOptions options;
  options.units = prune::Units::per_layer;
  options.target.parameters_fraction = 0.8;
  options.width_multiple = 4;
  options.compensate = false;
  options.search = {.method = prune::SearchMethod::tabu, .budget_tokens = 20'000, .tolerance = 0.15};
  const auto run = [&] {
    return prune::prune_searched(input, domains, options, {path}, listener).report.at("searched_objective");
  };
  const auto f = run();
  const auto lines = lines_of(path);
  EXPECT_EQ(run(), f);
  EXPECT_EQ(lines_of(path), lines);

  options.seed = 5;
  const auto other = run();
  const auto both = lines_of(path);
  EXPECT_GT(both, lines);
  const auto fresh = directory / "fresh.jsonl";
  EXPECT_EQ(prune::prune_searched(input, domains, options, {fresh}, listener).report.at("searched_objective"),
            other);
  EXPECT_LT(both, lines + lines_of(fresh) - 1) << "probes are common";
  EXPECT_EQ(listener.warnings, "");

  input.tensor("model.norm.weight").mul_(1.001);
  (void)run();
  EXPECT_NE(listener.warnings.find("another model"), std::string::npos) << listener.warnings;
}

}  // namespace
}  // namespace retort
