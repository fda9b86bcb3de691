// Runs on accelerators: those of the tests, which the program knows as a device that a preloaded library
// brings, with a libnccl.so.2 of their own.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <set>
#include <span>
#include <vector>

#include "cli/tiny_project.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/safetensors.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

// Losses of a few steps in float32 by other ranks or on another device: a difference in the last bits of a
// step goes into all later ones.  Scores are of the models that such steps make.
constexpr double kLossOfSteps = 1e-4, kScores = 1e-3;
// Memory of a device, of what is planned for it.
constexpr double kPlannedOnDevice = 0.1;

class Devices : public testing::Test {
 protected:
  // RETORT_TEST_ON=cuda: on real ones, which ranks share where there are fewer.
  static bool is_real() { return std::getenv("RETORT_TEST_ON") != nullptr; }
  static void prepare() {
    if (is_real()) {
      ::setenv("RETORT_SHARE_ACCELERATORS", "1", 1);
      return;
    }
    ::setenv("LD_PRELOAD", RETORT_TEST_DEVICE, 1);
    ::setenv("RETORT_NCCL", RETORT_TEST_NCCL, 1);
    ::setenv("RETORT_PATIENCE_SECONDS", "2", 1);
  }
  static std::vector<std::string> command(const std::string& directory, int ranks) {
    const std::string device = is_real() ? std::getenv("RETORT_TEST_ON") : "privateuseone";
    return {"run",      "recipe.yaml", "--run-dir", directory, "--ranks", std::to_string(ranks),
            "--device", device,        "--dtype",   "fp32"};
  }
  Finished run_on_devices(const std::string& directory, int ranks) const {
    return run(command(directory, ranks), "", project_.path(), prepare);
  }
  base::Json result(const std::string& directory, const std::string& stage) const {
    return base::parse_json(base::read_file(project_.path(directory) / "stages" / (stage + ".json")));
  }

  io::SafetensorsFile weights(const std::string& directory, const std::string& stage) const {
    return io::SafetensorsFile::open(project_.path(directory) / "models" / stage / "model.safetensors");
  }

  // Of four float32 weights each.
  static std::size_t groups_with_other_mask(std::span<const std::byte> left,
                                            std::span<const std::byte> right) {
    const auto values = [](std::span<const std::byte> bytes) {
      std::vector<float> result(bytes.size() / sizeof(float));
      std::memcpy(result.data(), bytes.data(), bytes.size());
      return result;
    };
    const auto a = values(left), b = values(right);
    std::set<std::size_t> groups;
    for (std::size_t place = 0; place < a.size(); ++place)
      if ((a[place] == 0) != (b.at(place) == 0)) groups.insert(place / 4);
    return groups.size();
  }

  // Four micro-batches of two sequences a step.
  static std::string train_of(int steps) {
    return train_stage(steps * 512, ", batch: {sequences: 2, accumulate: 4}, shard: {student_ranks: 2}");
  }

  // What the log says that each rank may use.
  static std::string memory_of(const Finished& run) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(run.err, found, std::regex("and ([0-9.]+ [kMG]B) of memory for each")));
    return found.empty() ? "" : found[1].str();
  }

  TinyProject project_;
};

TEST_F(Devices, OfSeveralRanksGiveTheResultOfTheProcessor) {
  project_.write_recipe(
      {train_of(6),
       "{name: student, kind: distill, from: born, teacher: born, data: [text], tokens: 2048, packing: "
       "{sequence_length: 64}, batch: {sequences: 2, accumulate: 4}, evaluate_tokens: 256, optim: {lr: "
       "1.0e-2}}",
       "{name: scores, kind: evaluate, models: [born, student], data: [text], context: 64, tokens: 512, "
       "prompt: [Once], max_new_tokens: 4}"});
  const auto one = project_.run({"run", "recipe.yaml", "--run-dir", "one", "--dtype", "fp32", "--set",
                                 "stages.born.shard.student_ranks=1"});
  ASSERT_EQ(one.code, 0) << one.err;
  const auto four = run_on_devices("four", 4);  // two shard groups of two
  ASSERT_EQ(four.code, 0) << four.err;
  EXPECT_EQ(four.err.find("test device:"), std::string::npos) << four.err;
  const auto expected = metrics_of(project_.path("one")), found = metrics_of(project_.path("four"));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t line = 0; line < found.size(); ++line)
    if (expected[line].contains("loss")) {
      const double loss = expected[line].at("loss");
      EXPECT_NEAR(found[line].at("loss").get<double>(), loss, kLossOfSteps * loss) << line;
    }
  for (std::size_t model = 0; model < 2; ++model) {
    const auto nll = [&](const std::string& run) {
      return result(run, "scores").at("models").at(model).at("sources").at(0).at("nll").get<double>();
    };
    EXPECT_NEAR(nll("four"), nll("one"), kScores * nll("one"));
  }
  // Nobody holds a whole model, so all make its tokens together: those of a device that holds it.
  project_.write_recipe(
      {"{name: scores, kind: evaluate, models: [four/models/born, four/models/student], data: "
       "[text], context: 64, tokens: 512, prompt: [Once], max_new_tokens: 4}"});
  const auto whole = run_on_devices("whole", 1);
  ASSERT_EQ(whole.code, 0) << whole.err;
  for (const int model : {0, 1})
    EXPECT_EQ(result("four", "scores").at("models").at(model).at("generations"),
              result("whole", "scores").at("models").at(model).at("generations"));
  // Memory of a device is planned, and measured by its allocator.
  for (const auto* stage : {"born", "student", "scores"}) {
    const double planned = result("four", stage).at("memory_planned_bytes");
    EXPECT_NEAR(result("four", stage).at("peak_tensor_bytes").get<double>(), planned,
                kPlannedOnDevice * planned)
        << stage;
  }
}

// Every kind of stage that makes or measures a model, by two ranks, on memory that only the kernels of their
// devices may touch.
TEST_F(Devices, TakeEveryKindOfStage) {
  project_.write_recipe({train_stage(4 * 512)});
  ASSERT_EQ(project_.run({"run", "recipe.yaml", "--run-dir", "made", "--dtype", "fp32"}).code, 0);
  const std::string text = "data: [text], calibration_tokens: 2k, sequence_length: 64";
  const std::string from = "from: made/models/born, " + text;
  const std::string smaller = "kind: prune, target: {parameters: 92%}, " + from;
  project_.write_recipe(
      {"{name: seen, kind: profile, " + from + "}",
       "{name: narrow, " + smaller +
           ", units: per_layer, search: {method: additive, budget_tokens: 40k}, width_multiple: 4, profile: "
           "seen}",
       "{name: alike, " + smaller + ", units: uniform, width_multiple: 16}",
       "{name: shallow, " + smaller + ", units: blocks, search: {method: influence, tolerance: 0.5}}",
       "{name: sparse, kind: sparsify, from: narrow, permute: false, " + text + "}",
       "{name: swept, kind: sparsify, from: narrow, method: sparse_gpt, share: 50%, permute: false, " + text +
           "}",
       "{name: permuted, kind: sparsify, from: narrow, " + text + "}",
       "{name: scores, kind: evaluate, models: [made/models/born, narrow, sparse, swept, permuted], teacher: "
       "made/models/born, data: [text], context: 64, tokens: 512, prompt: [\"a\"], max_new_tokens: 4}"});
  const auto processor = project_.run({"run", "recipe.yaml", "--run-dir", "processor", "--dtype", "fp32"});
  ASSERT_EQ(processor.code, 0) << processor.err;
  const auto device = run_on_devices("device", 2);
  ASSERT_EQ(device.code, 0) << device.err;
  EXPECT_EQ(device.err.find("test device:"), std::string::npos) << device.err;
  for (const auto* stage : {"narrow", "alike", "shallow"})
    EXPECT_EQ(result("device", stage).at("kept"), result("processor", stage).at("kept")) << stage;
  // Which weights go is decided: where two are alike to the last digits, all that follow may differ.  ALPS
  // decides otherwise for two groups in 4,000 here, also between one and two ranks of a processor.  Up to the
  // first layer with another mask the errors are equal.  A sweep decides column by column: on one kind of
  // processor one layer in eleven differs, by 2 %.
  for (const auto& [stage, may_differ] : {std::pair{"sparse", 0.0}, std::pair{"swept", 0.25}}) {
    const auto found = result("device", stage).at("layers"),
               expected = result("processor", stage).at("layers");
    ASSERT_EQ(found.size(), expected.size());
    const auto on_device = weights("device", stage), on_processor = weights("processor", stage);
    std::size_t different = 0, other_groups = 0, groups = 0;
    std::string distances;
    for (std::size_t layer = 0; layer < found.size(); ++layer) {
      const std::string name = expected.at(layer).at("name");
      const double error = expected.at(layer).at("relative_error");
      const double distance = std::abs(found.at(layer).at("relative_error").get<double>() - error) / error;
      const auto others = groups_with_other_mask(on_device.bytes(name), on_processor.bytes(name));
      other_groups += others;
      const bool decided_alike = other_groups == 0 || may_differ > 0;
      different += decided_alike && distance > 1e-3 ? 1 : 0;
      groups += on_device.bytes(name).size() / (4 * sizeof(float));
      distances += " " + std::to_string(distance);
      EXPECT_LE(distance, 0.05) << stage << layer;
    }
    EXPECT_LE(static_cast<double>(different), may_differ * static_cast<double>(found.size()))
        << stage << distances;
    EXPECT_LE(other_groups, stage == std::string("sparse") ? groups / 200 : groups) << stage;
  }
  // Which order of channels is found depends on last digits; what the model is worth does not.
  for (std::size_t model = 0; model < 5; ++model) {
    const auto nll = [&](const std::string& run) {
      return result(run, "scores").at("models").at(model).at("sources").at(0).at("nll").get<double>();
    };
    EXPECT_NEAR(nll("device"), nll("processor"), 1e-3 * nll("processor"));
  }
}

// Two ranks read the one copy in the memory of their machine, and one of them writes it.
TEST_F(Devices, WithoutRoomForTheWeightsMakeTheSame) {
  if (is_real()) GTEST_SKIP() << "needs the device of the tests, whose memory is planned alike everywhere";
  const auto run_within = [&](const std::string& directory, std::int64_t memory_bytes) {
    auto arguments = command(directory, 2);
    arguments.insert(arguments.end(), {"--set", "memory_bytes=" + std::to_string(memory_bytes)});
    return run(arguments, "", project_.path(), prepare);
  };
  const std::string said = "the weights stay in the memory of the machine";
  for (const std::string keys : {"kind: sparsify, method: wanda, layers: [o_proj]", "kind: profile",
                                 "kind: prune, target: {parameters: 80%}, units: blocks, search: {method: "
                                 "influence, tolerance: 0.2}"}) {
    SCOPED_TRACE(keys);
    for (const auto* directory : {"refused", "within", "beyond"})
      std::filesystem::remove_all(project_.path(directory));
    project_.write_recipe({base::join("{name: made, ", keys, ", from: ", std::getenv("RETORT_SOURCE"),
                                      "/models/europa-5m, data: [text], calibration_tokens: 512, "
                                      "sequence_length: 64}")});
    const auto refused = run_within("refused", 1);
    std::smatch needs;
    ASSERT_TRUE(std::regex_search(refused.err, needs, std::regex("the plan needs ([0-9.]+) MB")))
        << refused.err;
    const auto least_bytes = static_cast<std::int64_t>(1.01e6 * std::stod(needs[1].str()));
    const auto within = run_within("within", least_bytes), beyond = run_within("beyond", 4 * least_bytes);
    ASSERT_EQ(within.code, 0) << within.err;
    ASSERT_EQ(beyond.code, 0) << beyond.err;
    EXPECT_EQ(within.err.find("test device:"), std::string::npos) << within.err;
    EXPECT_NE(within.err.find(said), std::string::npos) << within.err;
    EXPECT_EQ(beyond.err.find(said), std::string::npos) << beyond.err;
    const auto weights = [&](const char* directory) {
      auto files = files_below(project_.path(directory));
      std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
      return files;
    };
    EXPECT_GT(weights("beyond").size(), 0U);
    EXPECT_TRUE(weights("within") == weights("beyond"));
    const auto peak = [&](const std::string& run) {
      return result(run, "made").at("peak_tensor_bytes").get<std::int64_t>();
    };
    EXPECT_LE(peak("within"), least_bytes);
    EXPECT_LE(peak("within"), peak("beyond") - 15'000'000);  // of 22 MB of weights
  }
}

TEST_F(Devices, WhoseCallStandsStillEndAllRanks) {
  if (is_real()) GTEST_SKIP() << "needs the NCCL of the tests, which fails on demand";
  project_.write_recipe({train_of(6)});
  for (const auto& [kind, sentence] :
       {std::pair{"1", "NCCL says: remote process exited"}, std::pair{"2", "did not move within"}}) {
    const auto ended = run(command(std::string("failed") + kind, 2), "", project_.path(), [kind = kind] {
      prepare();
      ::setenv("RETORT_TEST_NCCL_FAIL", (std::string("1 ") + kind + " 40").c_str(), 1);
      if (*kind == '2') ::setenv("RETORT_PATIENCE_SECONDS", "0.2", 1);
    });
    EXPECT_EQ(ended.code, 75) << ended.err;
    EXPECT_SAYS(ended.err, sentence);
  }
}

TEST_F(Devices, OfARankThatIsKilledEndAllRanks) {
  project_.write_recipe({train_of(400)});
  Running running(command("run", 2), "", project_.path(), prepare);
  EXPECT_TRUE(wait_until(running, [&] { return metrics_of(project_.path("run")).size() > 2; }))
      << running.err();
  ::kill(children_of(running.pid()).at(1), SIGKILL);
  const auto ended = running.wait();
  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_SAYS(ended.err, "rank 1 on ");
}

// As a launcher binds ranks: each sees one device, its number 0.
TEST_F(Devices, OfWhichEachRankSeesOneAreTaken) {
  if (is_real()) GTEST_SKIP() << "tells the device of the tests what each rank sees";
  project_.write_recipe({train_of(2)});
  const auto run_seeing = [&](const char* directory, const char* seen, bool share) {
    return run(command(directory, 2), "", project_.path(), [=] {
      prepare();
      ::setenv("RETORT_TEST_DEVICE_SEEN", seen, 1);
      if (share) ::setenv("RETORT_SHARE_ACCELERATORS", "1", 1);
    });
  };
  const auto own = run_seeing("own", "own", false);
  EXPECT_EQ(own.code, 0) << own.err;
  const auto same = run_seeing("same", "same", false);
  EXPECT_EQ(same.code, 5) << same.err;
  EXPECT_SAYS(same.err, "expected an accelerator for each of the 2 ranks of its machine, found 1");
  const auto shared = run_seeing("shared", "same", true);
  EXPECT_EQ(shared.code, 0) << shared.err;
  const auto not_shared = run_seeing("not-shared", "own", true);
  EXPECT_EQ(not_shared.code, 0) << not_shared.err;
  EXPECT_EQ(memory_of(not_shared), memory_of(own)) << "though they might share";
  EXPECT_NE(memory_of(shared), memory_of(own));
}

TEST_F(Devices, ThatNoLibraryBringsAreRefused) {
  if (is_real()) GTEST_SKIP() << "needs the device of the tests, of which there are 8";
  project_.write_recipe({train_of(6)});
  const auto refused = project_.run({"run", "recipe.yaml", "--device", "privateuseone"});
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_SAYS(refused.err, "expected a library that brings its own device to libtorch, found none");
  const auto more = run_on_devices("run", 9);
  EXPECT_EQ(more.code, 5) << more.err;
  EXPECT_SAYS(more.err, "expected an accelerator for each of the 9 ranks of its machine, found 8");
}

}  // namespace
}  // namespace retort::test
