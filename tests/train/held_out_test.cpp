// What is held out for evaluation never reaches training: the documents are followed through the encoder.
#include <mutex>
#include <set>

#include "retort/data/windows.h"
#include "retort/train/batches.h"
#include "train/training.h"

namespace retort {
namespace {

using test::Training;
using test::Witness;

// Which texts were asked for, and by whom.
class Record {
 public:
  data::Encode encoder() {
    return [this](std::string_view text) {
      const std::lock_guard lock(mutex_);
      texts_.emplace(text);
      return test::encode_bytes(text);
    };
  }
  const std::set<std::string>& texts() const { return texts_; }

 private:
  std::mutex mutex_;
  std::set<std::string> texts_;
};

class HeldOutTest : public test::TrainingTest {
 protected:
  void expect_disjoint(const data::HeldOut& rule) {
    const auto documents = test::made_up_documents(60);
    auto twice = documents;  // a copy of a held-out text is held out as well, where texts decide
    if (rule.every == 0) twice.insert(twice.end(), documents.begin(), documents.begin() + 30);
    test::Given given;
    given.options = test::small_options(120);  // several times through the source
    given.options.evaluate_every_steps = 10;
    given.distill = false;
    given.sources = {source("one", twice)};
    given.sources.front().held_out = rule;
    Record training_record, held_out_record;
    given.encode = training_record.encoder();

    data::WindowReader reader(given.sources.front(), data::Split::held_out, {.context = 32},
                              held_out_record.encoder(), test::kSpecial);
    std::vector<data::Sequence> windows;
    for (data::Sequence window; reader.next(window);) windows.push_back(window);
    Training training(given, place("run-" + std::to_string(rule.every) + std::to_string(rule.paths.size())));
    Witness witness;
    const auto outcome = training.run(witness, {{"one", train::make_micro_batches(windows, 2, at::kCPU)}});

    std::set<std::string> both, either = training_record.texts();
    for (const auto& text : held_out_record.texts())
      if (!either.insert(text).second) both.insert(text);
    EXPECT_TRUE(both.empty()) << *both.begin();
    EXPECT_EQ(either, std::set<std::string>(documents.begin(), documents.end()));
    EXPECT_GT(held_out_record.texts().size(), 3U);
    EXPECT_GT(training_record.texts().size(), 3U);
    EXPECT_GT(outcome.result.final.held_out.at(0).second, 0);
  }
};

TEST_F(HeldOutTest, AFractionIsNeverTrainedOn) {
  expect_disjoint({.fraction = 0.3, .paths = {}});
}
TEST_F(HeldOutTest, EveryFourthIsNeverTrainedOn) {
  expect_disjoint({.fraction = 0, .every = 4, .paths = {}});
}

TEST_F(HeldOutTest, TheTextsOfAFileAreNeverTrainedOn) {
  const auto documents = test::made_up_documents(60);
  const auto apart =
      source("apart", {documents[3], documents[17], documents[29], documents[31], documents[50]});
  expect_disjoint({.fraction = 0, .paths = apart.paths});
}

}  // namespace
}  // namespace retort
