// Runs that are stopped or killed and go on: they end with the same bits as a run that nothing disturbed.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <random>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 120;

const std::string& undisturbed_weights() {
  static const std::string weights = [] {
    const TinyProject project;
    project.write_recipe({train_stage(kSteps * 128, ", checkpoint_every_steps: 7")});
    const Finished finished = project.run_recipe();
    return finished.code == 0 ? weights_of(project.path("run"), "born") : finished.err;
  }();
  return weights;
}

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    project_.write_recipe({train_stage(kSteps * 128, ", checkpoint_every_steps: 7")});
    ASSERT_GT(undisturbed_weights().size(), 100'000U) << undisturbed_weights();
  }

  /// Starts the run, and does something to it once the metrics have reached a step.
  template <typename Action>
  Finished disturb_at(int step, Action action) {
    Running running({"run", "recipe.yaml", "--run-dir", "run"}, "", project_.path());
    EXPECT_TRUE(wait_until(running, [&] { return last_step() >= step; })) << running.err();
    action(running);
    return running.wait();
  }
  int last_step() const {
    const auto lines = metrics_of(run_path());
    return lines.empty() ? -1 : lines.back().at("step").get<int>();
  }
  fs::path run_path(const fs::path& name = {}) const { return project_.path("run") / name; }

  void expect_to_end_undisturbed() {
    const Finished finished = project_.run_recipe();
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_SAYS(finished.err, "going on after step");
    EXPECT_TRUE(weights_of(run_path(), "born") == undisturbed_weights());
    int step = 0;
    for (const auto& line : metrics_of(run_path())) EXPECT_EQ(line.at("step"), step++);
    EXPECT_EQ(step, kSteps + 1);
    for (const auto& [name, content] : files_below(run_path()))
      EXPECT_EQ(name.find("unfinished"), std::string::npos) << name;
  }

  TinyProject project_;
};

TEST_F(Resume, StopsSavedOnASignalAndGoesOnWithTheSameBits) {
  int step = 10;
  for (const int number : {SIGTERM, SIGINT}) {
    const Finished stopped = disturb_at(step, [&](Running& running) { running.signal(number); });
    EXPECT_EQ(stopped.code, 85) << stopped.err;
    EXPECT_SAYS(stopped.err, "finishing the step and saving");
    EXPECT_SAYS(stopped.err,
                "stopped in stage born, what was done is saved; the same command again goes on from here");
    EXPECT_FALSE(fs::exists(run_path("models/born")));
    char saved[32];
    std::snprintf(saved, sizeof saved, "step-%08d", last_step());
    EXPECT_TRUE(fs::exists(run_path("checkpoints/born") / saved)) << saved;
    step = last_step() + 10;
  }
  expect_to_end_undisturbed();
}

TEST_F(Resume, StopsSavedWhereAFileAsksForItAndRemovesItAtTheNextStart) {
  const auto ask = run_path("stop");
  const Finished stopped = disturb_at(10, [&](Running&) { std::ofstream{ask}; });
  EXPECT_EQ(stopped.code, 85) << stopped.err;
  EXPECT_SAYS(stopped.err, "stopped in stage born, what was done is saved");
  EXPECT_TRUE(fs::exists(ask));
  expect_to_end_undisturbed();
  EXPECT_FALSE(fs::exists(ask));
}

TEST_F(Resume, GoesOnAfterBeingKilledAtRandomMoments) {
  std::mt19937 random(20240607);
  for (const int after : {15, 45, 80}) {
    const int step = after + static_cast<int>(random() % 25);
    const auto pause = static_cast<useconds_t>(random() % 20'000);
    const Finished killed = disturb_at(step, [&](Running& running) {
      ::usleep(pause);
      running.signal(SIGKILL);
    });
    ASSERT_EQ(killed.code, 128 + SIGKILL) << "not killed at step " << step << "\n" << killed.err;
  }
  expect_to_end_undisturbed();
}

TEST_F(Resume, PassesOverADamagedCheckpointForTheOneBefore) {
  disturb_at(30, [](Running& running) { running.signal(SIGKILL); });
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(run_path("checkpoints/born")))
    if (entry.path().filename().string().starts_with("step-")) newest = std::max(newest, entry.path());
  fs::resize_file(newest / "state.safetensors", fs::file_size(newest / "state.safetensors") - 4);
  expect_to_end_undisturbed();
}

TEST_F(Resume, RefusesACheckpointsStageThatStartsFromSomethingElse) {
  copy_model(project_, "start");
  project_.write_recipe(
      {"{name: born, kind: finetune, from: ./start, data: [text], tokens: 20000, packing: {sequence_length: "
       "64}, "
       "batch: {sequences: 2}, checkpoint_every_steps: 3}"});
  disturb_at(10, [](Running& running) { running.signal(SIGKILL); });
  std::fstream weights(project_.path("start/model.safetensors"),
                       std::ios::in | std::ios::out | std::ios::binary);
  weights.seekp(-4, std::ios::end);
  weights.write("\0\0\x80\x3f", 4);
  weights.close();
  const Finished finished = project_.run_recipe();
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_SAYS(finished.err, "'./start/model.safetensors' has changed since stage 'born' read it");
}

// Under the same size, at the beginning and in the middle of a text that is longer than what is sampled.
TEST_F(Resume, RefusesTextThatChanged) {
  const auto text = base::read_file(project_.path("text.txt"));
  disturb_at(10, [](Running& running) { running.signal(SIGKILL); });
  ASSERT_TRUE(fs::exists(run_path("checkpoints/born")));
  for (const std::size_t at : {std::size_t{5}, text.size() / 2 + 777, text.size() - 9}) {
    auto changed = text;
    changed[at] ^= 1;
    project_.write("text.txt", changed);
    for (const auto* more : {"--dry-run", "-q"}) {
      const Finished refused = project_.run_recipe({more});
      EXPECT_EQ(refused.code, 2) << refused.err;
      EXPECT_SAYS(refused.err, "'text.txt' has changed since stage 'born' read it");
    }
  }
  project_.write("text.txt", text);
  expect_to_end_undisturbed();
}

TEST(Interrupt, ASecondOneQuitsAtOnce) {
  const TinyProject project;  // steps long enough that the second comes before the first one's step ends
  project.write_recipe({train_stage(1'000'000, ", evaluate_every_steps: 0")});
  Running running({"run", "recipe.yaml", "--run-dir", "run", "--set", "stages.born.batch.accumulate=512"}, "",
                  project.path());
  ASSERT_TRUE(wait_until(running, [&] { return running.err().find("memory plan") != std::string::npos; }));
  ::usleep(100'000);
  running.signal(SIGINT);
  ASSERT_TRUE(wait_until(running, [&] { return running.err().find("once more") != std::string::npos; }));
  ::usleep(600'000);
  running.signal(SIGINT);
  EXPECT_EQ(running.wait().code, 128 + SIGINT);
  EXPECT_TRUE(fs::is_empty(project.path("run/models")));
}

// What ends a job may reach a process alone and as one of its group; a scheduler warns before it ends it.
TEST(Interrupt, OneRequestThatComesTwiceSaves) {
  const TinyProject project;
  project.write_recipe({train_stage(1'000'000, ", evaluate_every_steps: 0")});
  for (const int second : {SIGINT, SIGUSR1}) {
    // Steps are long enough that the second comes before the first one's step ends.
    Running running({"run", "recipe.yaml", "--run-dir", "run", "--set", "stages.born.batch.accumulate=512"},
                    "", project.path());
    ASSERT_TRUE(wait_until(running, [&] { return running.err().find("memory plan") != std::string::npos; }));
    ::usleep(100'000);
    running.signal(SIGINT);
    ASSERT_TRUE(wait_until(running, [&] { return running.err().find("once more") != std::string::npos; }));
    running.signal(second);
    EXPECT_EQ(running.wait().code, 85) << running.err();
  }
}

TEST(Interrupt, StopsASearchAndGoesOnWithTheSameBits) {
  const TinyProject project;
  copy_model(project, "m");
  project.write_recipe(
      {"{name: pruned, kind: prune, units: uniform, from: ./m, data: [text], target: {parameters: 87%}, "
       "calibration_tokens: "
       "1500, sequence_length: 64, width_multiple: 16}"});
  ASSERT_EQ(project.run_recipe().code, 0);
  const auto expected = files_below(project.path("run/models/pruned"));
  fs::remove_all(project.path("run"));
  Running running({"run", "recipe.yaml", "--run-dir", "run"}, "", project.path());
  const auto saved = project.path("run/checkpoints/pruned/search.jsonl");
  ASSERT_TRUE(wait_until(running, [&] { return fs::exists(saved) && fs::file_size(saved) > 300; }));
  running.signal(SIGTERM);
  const Finished stopped = running.wait();
  EXPECT_EQ(stopped.code, 85) << stopped.err;
  EXPECT_SAYS(stopped.err, "the candidates measured so far are kept, the same command again goes on there");
  EXPECT_EQ(stopped.err.find("error"), std::string::npos) << stopped.err;
  const Finished finished = project.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(files_below(project.path("run/models/pruned")) == expected);
}

class SparsifyResume : public testing::TestWithParam<const char*> {};

TEST_P(SparsifyResume, GoesOnAfterTheLastFinishedBlockWithTheSameBits) {
  const TinyProject project;
  copy_model(project, "m");
  project.write_recipe(
      {std::string("{name: sparse, kind: sparsify, from: ./m, data: [text], calibration_tokens: "
                   "9000, sequence_length: 64, share: ") +
       GetParam() + "}"});
  const auto result = [&] {
    auto json = base::Json::parse(files_below(project.path("run/stages")).at("sparse.json"));
    for (const char* key : {"seconds", "peak_tensor_bytes", "process_peak_bytes", "process_planned_bytes",
                            "output_files", "checksum"})
      json.erase(key);
    for (auto& layer : json.at("layers")) layer.erase("seconds");
    return json;
  };
  ASSERT_EQ(project.run_recipe().code, 0);
  const auto expected = files_below(project.path("run/models/sparse"));
  const auto report = result();
  fs::remove_all(project.path("run"));
  const bool measures = std::string(GetParam()) != "100%";
  const auto first = std::string(measures ? "measured" : "sparse") + "-00000.safetensors";
  for (const auto& [number, file] :
       {std::pair(SIGKILL, first), std::pair(SIGTERM, std::string("sparse-00001.safetensors"))}) {
    Running running({"run", "recipe.yaml", "--run-dir", "run"}, "", project.path());
    const auto kept = project.path("run/checkpoints/sparse") / file;
    if (wait_until(running, [&] { return fs::exists(kept); })) running.signal(number);
    const Finished stopped = running.wait();
    if (stopped.code == 85) {
      EXPECT_SAYS(stopped.err, "the blocks before it are kept, the same command again goes on there");
    }
    if (number == SIGTERM) {
      EXPECT_SAYS(stopped.err, "going on after block");
    }
    EXPECT_EQ(stopped.err.find("begins it anew"), std::string::npos) << stopped.err;
  }
  const Finished finished = project.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(files_below(project.path("run/models/sparse")) == expected);
  EXPECT_EQ(result(), report);
  EXPECT_FALSE(fs::exists(project.path("run/checkpoints/sparse")));
}

INSTANTIATE_TEST_SUITE_P(AllAndAShare, SparsifyResume, testing::Values("100%", "50%"),
                         [](const auto& of) { return *of.param == '1' ? "all" : "share"; });

TEST(SecondProcess, IsRefusedInARunDirectoryAtWork) {
  const TinyProject project;
  project.write_recipe({train_stage(64'000)});
  Running first({"run", "recipe.yaml", "--run-dir", "run"}, "", project.path());
  ASSERT_TRUE(wait_until(first, [&] { return metrics_of(project.path("run")).size() > 2; })) << first.err();
  const Finished second = project.run_recipe();
  EXPECT_EQ(second.code, 7);
  EXPECT_SAYS(second.err, "retort: error: run: another process (pid " + std::to_string(first.pid()));
  EXPECT_EQ(project.run({"info", "run"}).code, 0);  // looking is allowed
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait().code, 85);
}

// Its recipe.json lacks a key that came later, has a number for what is a word now, and has the default that
// packing.bos had; another key may change all the same.
TEST(ResumeOfAnEarlierVersion, TakesKeysThatItLacksAsTheirDefaults) {
  const TinyProject project;
  const auto prune_with = [&](const char* budget) {
    project.write_recipe(
        {train_stage(256), std::string("{name: narrow, kind: prune, from: born, data: [text], "
                                       "target: {parameters: 90%}, units: per_layer, search: "
                                       "{method: tabu, budget_tokens: ") +
                               budget +
                               "}, width_multiple: 4, calibration_tokens: 4k, "
                               "sequence_length: 64}"});
  };
  prune_with("100k");
  ASSERT_EQ(project.run({"run", "recipe.yaml", "--run-dir", "run", "--stage", "born"}).code, 0);
  const auto path = project.path("run/recipe.json");
  auto recorded = base::parse_json(base::read_file(path));
  ASSERT_EQ(recorded["stages"]["born"].erase("step_profile"), 1U);
  ASSERT_EQ(std::exchange(recorded["stages"]["born"]["shard"]["student_ranks"], 0), "machine");
  ASSERT_EQ(std::exchange(recorded["stages"]["born"]["packing"]["bos"], true), "auto");
  auto yaml = base::read_file(project.path("run/recipe.yaml"));
  const auto bos = yaml.find("bos: \"auto\"");
  ASSERT_NE(bos, std::string::npos) << yaml;
  project.write("run/recipe.yaml", yaml.replace(bos, 11, "bos: true"));
  base::write_file_atomically(path, recorded.dump());
  prune_with("120k");
  const auto finished = project.run_recipe();
  EXPECT_EQ(finished.code, 0) << finished.err;
}

// Of which stages had a file of rates, as in every run before; another key may change all the same.
TEST(ResumeOfAnEarlierVersion, PassesOverAKeyThatIsReadNoMore) {
  const TinyProject project;
  project.write_recipe(
      {train_stage(256),
       "{name: narrow, kind: prune, from: born, data: [text], target: {parameters: 90%}, units: per_layer, "
       "width_multiple: 4, calibration_tokens: 4k, sequence_length: 64}",
       finetune_stage("narrow")});
  for (const char* stage : {"born", "narrow"})
    ASSERT_EQ(project.run({"run", "recipe.yaml", "--run-dir", "run", "--stage", stage}).code, 0);
  const auto path = project.path("run/recipe.json");
  auto recorded = base::parse_json(base::read_file(path));
  recorded["stages"]["narrow"]["sizing"] = "sizing.json";
  ASSERT_EQ(recorded["stages"]["born"].erase("step_profile"), 1U);
  base::write_file_atomically(path, recorded.dump());
  auto yaml = base::read_file(project.path("run/recipe.yaml"));
  const auto kind = yaml.find("kind: \"prune\"");
  ASSERT_NE(kind, std::string::npos) << yaml;
  project.write("run/recipe.yaml", yaml.insert(kind, "sizing: \"sizing.json\"\n    "));
  const auto plan = project.run_recipe({"--dry-run"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  const auto finished = project.run_recipe();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.err, "an earlier version wrote stages.narrow.sizing, which this one does not read");
  EXPECT_SAYS(finished.err, "stage narrow: finished before");
}

TEST(LaterStages, MayChangeAndFollowUntilTheyBegin) {
  const TinyProject project;
  project.write_recipe({train_stage(512), finetune_stage("born")});
  const Finished first = project.run_recipe({"--stage", "born"});
  ASSERT_EQ(first.code, 0) << first.err;
  const auto born = weights_of(project.path("run"), "born");

  project.write_recipe(
      {train_stage(512), finetune_stage("born"),
       "{name: scores, kind: evaluate, models: [born, tuned], data: [text], context: 64, tokens: 256}"});
  const Finished second = project.run_recipe({"--set", "stages.tuned.optim.lr=1.0e-4"});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_SAYS(second.out, "tuned");
  EXPECT_EQ(weights_of(project.path("run"), "born"), born);

  for (const std::vector<std::string>& dry : {std::vector<std::string>{"--dry-run"}, {}}) {
    std::vector<std::string> arguments = {"--set", "stages.tuned.optim.lr=2.0e-4"};
    arguments.insert(arguments.end(), dry.begin(), dry.end());
    const Finished third = project.run_recipe(arguments);
    EXPECT_EQ(third.code, 2);
    EXPECT_SAYS(third.err, "differs in stages.tuned.optim.lr");
  }
}

TEST(Training, SaysHowOftenItReadItsText) {
  const TinyProject project;
  project.write_recipe({train_stage(40'000, ", batch: {sequences: 16}")});
  const Finished finished = project.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.err, "born: the text of data.text is in its pass ");
}

TEST(LaterStages, ReadWhatEarlierOnesRead) {
  const TinyProject project;
  project.write_recipe({train_stage(512), finetune_stage("born")});
  const Finished first = project.run_recipe({"--stage", "born"});
  ASSERT_EQ(first.code, 0) << first.err;
  const auto text = base::read_file(project.path("text.txt"));
  project.write("text.txt", text + "one more document\n\n");
  const Finished changed = project.run_recipe();
  EXPECT_EQ(changed.code, 2);
  EXPECT_SAYS(changed.err, "'text.txt' has changed since stage 'born' read it");
  EXPECT_FALSE(fs::exists(project.path("run/checkpoints/tuned")));
  project.write("text.txt", text);
  const Finished restored = project.run_recipe();
  EXPECT_EQ(restored.code, 0) << restored.err;
}

// The text that a stage learned from may not be measured by one that is added.
TEST(LaterStages, AreSearchedForTextThatWasLearned) {
  const TinyProject project;
  project.write_recipe({train_stage(512)});
  const Finished first = project.run_recipe();
  ASSERT_EQ(first.code, 0) << first.err;
  project.write("recipe.yaml",
                base::read_file(project.path("recipe.yaml")) +
                    "  - {name: scores, kind: evaluate, models: [born], data: [copy], context: 64, "
                    "tokens: 256}\n");
  const std::string recipe = base::read_file(project.path("recipe.yaml"));
  const auto at = recipe.find("stages:");
  project.write("recipe.yaml", recipe.substr(0, at) +
                                   "  copy: {path: text.txt, separator: \"\\n\\n\", held_out: {every: 7}}\n" +
                                   recipe.substr(at));
  const Finished second = project.run_recipe();
  EXPECT_EQ(second.code, 3) << second.err;
  EXPECT_SAYS(second.err, "held-out documents of data.copy in the part to learn from");
}

}  // namespace
}  // namespace retort::test
