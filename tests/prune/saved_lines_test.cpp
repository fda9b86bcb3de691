#include "retort/prune/saved_lines.h"

#include <gtest/gtest.h>

#include <fstream>

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

}  // namespace
}  // namespace retort
