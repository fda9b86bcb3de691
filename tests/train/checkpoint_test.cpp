// Damaged, foreign and half-written checkpoints: never loaded, never a crash, and the one before is used.
#include "retort/train/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/shard/groups.h"
#include "support/faulty_files.h"
#include "support/message_of.h"
#include "support/own_disk.h"
#include "support/ranks.h"
#include "train/training.h"

namespace retort::train {
namespace {

using base::Path;
using test::message_of;
using test::Witness;

// Parameters and moments whose values are a function of a seed.
struct State {
  explicit State(std::uint64_t seed)
      : parameters(shard::resident_parameters(
            model::random_weights(
                test::config_of(
                    {.blocks = 1, .hidden = 8, .heads = 2, .kv_heads = 1, .width = 8, .vocab = 16}),
                seed, at::kFloat, at::kCPU),
            shard::Use::trained, at::kBFloat16)),
        optimizer(parameters->layout(), ranges(*parameters), {}, at::kCPU) {
    const auto generator = at::detail::createCPUGenerator(seed);  // ranks are threads
    for (auto& unit : optimizer.units()) {
      unit.m.normal_(0, 1, generator);
      unit.v.uniform_(0, 1, generator);
    }
  }
  static std::vector<optim::UnitRange> ranges(const shard::Parameters& parameters) {
    std::vector<optim::UnitRange> list;
    for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit)
      list.push_back(parameters.range(unit));
    return list;
  }
  std::string hash() {
    base::Hasher hasher;
    const auto add = [&](const at::Tensor& values) {
      hasher.update(values.const_data_ptr(), values.nbytes());
    };
    for (std::int64_t unit = 0; unit < parameters->layout().num_units(); ++unit) {
      for (const auto& values : {parameters->master(unit), parameters->compute_copy(unit)}) add(values);
      add(optimizer.units()[static_cast<std::size_t>(unit)].m);
      add(optimizer.units()[static_cast<std::size_t>(unit)].v);
    }
    return hasher.hex();
  }

  std::unique_ptr<shard::Parameters> parameters;
  optim::AdamW optimizer;
  std::unique_ptr<comm::Group> group = comm::single_group();
};

// The same of a rank, which has a part of both.
struct RankState {
  RankState(std::uint64_t seed, comm::Group& world)
      : world_(world),
        whole_(seed),
        groups_(shard::make_groups(world, 0)),
        parameters(shard::sharded_parameters(
            model::source_of(model::random_weights(whole_.parameters->config(), seed, at::kFloat, at::kCPU)),
            shard::Use::trained, at::kBFloat16, at::kCPU, groups_)),
        optimizer(parameters->layout(), State::ranges(*parameters), {}, at::kCPU) {
    for (std::size_t unit = 0; unit < optimizer.units().size(); ++unit) {
      auto& own = optimizer.units()[unit];
      const auto& all = whole_.optimizer.units()[unit];
      own.m.copy_(all.m.narrow(0, own.range.begin, own.range.count));
      own.v.copy_(all.v.narrow(0, own.range.begin, own.range.count));
    }
  }
  TrainedState trained() { return {*parameters, optimizer, world_}; }

  // Of all ranks' parts.
  std::string hash() {
    base::Hasher hasher;
    for (std::int64_t unit = 0; unit < parameters->layout().num_units(); ++unit) {
      const auto& moments = optimizer.units()[static_cast<std::size_t>(unit)];
      for (const auto& values : {parameters->master(unit), moments.m, moments.v})
        hasher.update(values.const_data_ptr(), values.nbytes());
    }
    std::string all;
    for (const auto& text : world_.all_texts(hasher.hex())) all += text;
    return all;
  }

 private:
  comm::Group& world_;
  State whole_;
  shard::Groups groups_;

 public:
  std::unique_ptr<shard::Parameters> parameters;
  optim::AdamW optimizer;
};

Progress progress_at(std::int64_t step) {
  return {.step = step,
          .tokens = step * 1000,
          .seconds = 0.1 * static_cast<double>(step),
          .cursor = {{"seed", 7}, {"sources", {{{"file", 1}, {"record", step}}}}}};
}

void save(const CheckpointPlace& place, std::int64_t step) {
  State state(static_cast<std::uint64_t>(step));
  CheckpointWriter writer(place, {*state.parameters, state.optimizer, *state.group});
  writer.begin(progress_at(step));
  writer.finish();
  writer.remove_earlier();
}

void save_on_two_ranks(const CheckpointPlace& place, std::int64_t step) {
  test::on_ranks(2, [&](comm::Group& world) {
    RankState state(static_cast<std::uint64_t>(step), world);
    CheckpointWriter writer(place, state.trained());
    writer.begin(progress_at(step));
    writer.finish();
    writer.remove_earlier();
  });
}

Path step_path(const CheckpointPlace& place, std::int64_t step) {
  return place.directory / ("step-000000" + std::to_string(step));
}

std::set<std::string> names_in(const Path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename());
  return names;
}

void overwrite(const Path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

class CheckpointTest : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  CheckpointPlace place_{directory_ / "checkpoints", {{"stage", "distil"}, {"units", {128, 256}}}, 2};

  // What is loaded is exactly what was saved at `step`.
  void expect_loads(std::int64_t step, std::size_t warnings) const {
    State state(99);
    Witness witness;
    const auto progress =
        load_checkpoint(place_, {*state.parameters, state.optimizer, *state.group}, witness);
    ASSERT_TRUE(progress.has_value());
    const auto expected = progress_at(step);
    EXPECT_EQ(progress->step, expected.step);
    EXPECT_EQ(progress->tokens, expected.tokens);
    EXPECT_EQ(progress->seconds, expected.seconds);
    EXPECT_EQ(progress->cursor, expected.cursor);
    EXPECT_EQ(state.hash(), State(static_cast<std::uint64_t>(step)).hash());
    EXPECT_EQ(witness.warnings.size(), warnings);
    for (const auto& warning : witness.warnings) EXPECT_SAYS(warning, "step-00000020");
  }

  // With step 20 damaged by `damage`, step 10 is loaded and the observer told.
  void expect_falls_back(const std::function<void(const Path&)>& damage) const {
    save(place_, 20);
    damage(step_path(place_, 20));
    expect_loads(10, 1);
  }
};

TEST_F(CheckpointTest, GivesBackWhatWasSaved) {
  save(place_, 10);
  expect_loads(10, 0);
  save(place_, 20);
  expect_loads(20, 0);
}

TEST_F(CheckpointTest, CountsOnlyOnceItWasFinished) {
  save(place_, 10);
  {
    State state(20);
    CheckpointWriter writer(place_, {*state.parameters, state.optimizer, *state.group});
    writer.begin(progress_at(20));
    EXPECT_TRUE(writer.pending());
    EXPECT_FALSE(std::filesystem::exists(step_path(place_, 20)));
    writer.finish();
    EXPECT_FALSE(writer.pending());
    expect_loads(20, 0);
    writer.begin(progress_at(30));  // what ends in between takes nothing with it
  }
  expect_loads(20, 0);
  EXPECT_EQ(names_in(place_.directory), (std::set<std::string>{"step-00000010", "step-00000020"}));
}

TEST_F(CheckpointTest, NoneIsNoError) {
  State state(99);
  Witness witness;
  EXPECT_FALSE(
      load_checkpoint(place_, {*state.parameters, state.optimizer, *state.group}, witness).has_value());
  EXPECT_TRUE(witness.warnings.empty());
}

TEST_F(CheckpointTest, FallsBackFromATruncatedFile) {
  save(place_, 10);
  for (const auto* name : {"state.safetensors", "manifest.json"}) {
    save(place_, 20);
    const auto content = base::read_file(step_path(place_, 20) / name);
    std::set<std::size_t> lengths = {0, 1, 7, 8, 9, content.size() - 2};  // the last byte may be a newline
    for (std::size_t i = 1; i < 40; ++i) lengths.insert(content.size() * i / 40);
    for (const auto length : lengths) {
      SCOPED_TRACE(testing::Message() << name << " cut to " << length << " of " << content.size());
      expect_falls_back(
          [&](const Path& path) { overwrite(path / name, std::string_view(content).substr(0, length)); });
    }
  }
}

TEST_F(CheckpointTest, FallsBackFromAFlippedBitOfTheState) {
  save(place_, 10);
  save(place_, 20);
  const auto path = step_path(place_, 20) / "state.safetensors";
  const auto content = base::read_file(path);
  for (std::size_t i = 0; i < 97; ++i) {
    const auto at = (content.size() - 1) * i / 96;
    SCOPED_TRACE(testing::Message() << "byte " << at);
    auto damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << i % 8));
    overwrite(path, damaged);
    expect_loads(10, 1);
  }
}

TEST_F(CheckpointTest, FallsBackFromAnyFlippedBitOfTheManifest) {
  save(place_, 10);
  save(place_, 20);
  const auto path = step_path(place_, 20) / "manifest.json";
  const auto content = base::read_file(path);
  for (std::size_t at = 0; at < content.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(testing::Message() << "bit " << bit << " of byte " << at);
      auto damaged = content;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      overwrite(path, damaged);
      expect_loads(10, 1);
      if (HasFailure()) return;
    }
}

TEST_F(CheckpointTest, FallsBackFromAMissingFile) {
  save(place_, 10);
  expect_falls_back([](const Path& path) { std::filesystem::remove(path / "state.safetensors"); });
  expect_falls_back([](const Path& path) { std::filesystem::remove(path / "manifest.json"); });
  expect_falls_back(
      [](const Path& path) { std::filesystem::remove_all(path), std::filesystem::create_directory(path); });
}

TEST_F(CheckpointTest, FallsBackFromAManifestThatIsSomethingElse) {
  save(place_, 10);
  for (const auto* text :
       {"null", "[]", "3", "{}", R"({"format":1,"files":3})", R"({"format":2,"files":{}})"})
    expect_falls_back([&](const Path& path) { overwrite(path / "manifest.json", text); });
}

TEST_F(CheckpointTest, RefusesOneOfAnotherStageAndNamesTheDifference) {
  save(place_, 10);
  place_.identity["stage"] = "finetune";
  State state(99);
  Witness witness;
  const auto message = message_of<base::UsageError>([&] {
    (void)load_checkpoint(place_, {*state.parameters, state.optimizer, *state.group}, witness);
  });
  EXPECT_SAYS(message, "step-00000010");
  EXPECT_SAYS(message, "stage differs");
  EXPECT_EQ(state.hash(), State(99).hash());
}

TEST_F(CheckpointTest, LeftoversOfAnUnfinishedWriteAreNeverLoadedAndGo) {
  save(place_, 10);
  save(place_, 20);
  std::filesystem::rename(step_path(place_, 20), place_.directory / ".step-00000020.unfinished-4711");
  std::filesystem::copy(step_path(place_, 10), place_.directory / ".step-00000010.unfinished-4711-old");
  expect_loads(10, 0);
  EXPECT_EQ(names_in(place_.directory), std::set<std::string>{"step-00000010"});
}

TEST_F(CheckpointTest, KeepsAsManyAsAsked) {
  place_.keep = 3;
  for (const std::int64_t step : {10, 20, 30, 40, 50}) save(place_, step);
  EXPECT_EQ(names_in(place_.directory),
            (std::set<std::string>{"step-00000030", "step-00000040", "step-00000050"}));
}

TEST_F(CheckpointTest, CountsThoughAnEarlierOneCannotBeRemoved) {
  place_.keep = 1;
  save(place_, 10);
  const test::OwnDisk disk{step_path(place_, 10), "size=1m"};  // what is mounted stays
  RETORT_ON_OWN_DISK_OR_SKIP(disk, [&] {
    const auto message = message_of<base::StorageError>([&] { save(place_, 20); });
    EXPECT_SAYS(message, "step-00000010");
    expect_loads(20, 0);
  });
}

TEST_F(CheckpointTest, ADamagedNewerOneNeverCostsASoundOne) {
  place_.keep = 1;
  save(place_, 10);
  std::filesystem::copy(step_path(place_, 10), step_path(place_, 20));
  overwrite(step_path(place_, 20) / "manifest.json", "{");
  expect_loads(10, 1);
  save(place_, 15);  // went on from 10
  expect_loads(15, 0);
  EXPECT_EQ(names_in(place_.directory), std::set<std::string>{"step-00000015"});
}

// A copy that the user keeps is neither loaded nor counted nor removed.
TEST_F(CheckpointTest, ACopyBesideThemIsNone) {
  place_.keep = 1;
  save(place_, 10);
  const auto copy_as = [&](const char* name) {
    std::filesystem::copy(step_path(place_, 10), place_.directory / name,
                          std::filesystem::copy_options::recursive);
  };
  for (const auto* name : {"step-00000010-copy", "step-00000099.bak", "step-best", "step-"}) copy_as(name);
  expect_loads(10, 0);
  save(place_, 20);
  EXPECT_EQ(names_in(place_.directory), (std::set<std::string>{"step-", "step-00000010-copy", "step-00000020",
                                                               "step-00000099.bak", "step-best"}));
}

TEST_F(CheckpointTest, AFileBesideThemIsNone) {
  place_.keep = 1;
  save(place_, 10);
  overwrite(place_.directory / "step-00000020.tar", "an archive");
  std::filesystem::create_symlink("nowhere", step_path(place_, 30));
  expect_loads(10, 0);
  save(place_, 20);
  expect_loads(20, 0);
  EXPECT_EQ(names_in(place_.directory),
            (std::set<std::string>{"step-00000020", "step-00000020.tar", "step-00000030"}));
}

// A disk that fails for a while costs no checkpoint: the sound one is neither passed over nor removed.
TEST_F(CheckpointTest, OneThatCannotBeReadEndsTheStage) {
  save(place_, 10);
  save(place_, 20);
  const auto state_file = step_path(place_, 20) / "state.safetensors";
  std::filesystem::rename(state_file, directory_ / "state");
  std::filesystem::create_symlink("/proc/self/mem", state_file);
  State state(99);
  Witness witness;
  const auto load = [&] {
    (void)load_checkpoint(place_, {*state.parameters, state.optimizer, *state.group}, witness);
  };
  EXPECT_SAYS(message_of<base::StorageError>(load), "state.safetensors: cannot be read: Input/output error");
  EXPECT_TRUE(witness.warnings.empty());
  std::filesystem::rename(directory_ / "state", state_file);
  expect_loads(20, 0);
}

TEST_F(CheckpointTest, AllDamagedEndTheStage) {
  for (const std::int64_t step : {10, 20}) {
    save(place_, step);
    overwrite(step_path(place_, step) / "manifest.json", "{");
  }
  State state(99);
  Witness witness;
  const auto message = message_of<base::ModelError>([&] {
    (void)load_checkpoint(place_, {*state.parameters, state.optimizer, *state.group}, witness);
  });
  EXPECT_SAYS(message, "checkpoints: all checkpoints (2) are damaged");
  EXPECT_EQ(names_in(place_.directory), (std::set<std::string>{"step-00000010", "step-00000020"}));
}

TEST_F(CheckpointTest, TheOldOrTheNewLoadsWhicheverCallFails) {
  const auto faults = test::for_each_fault(
      place_.directory,
      [&] {
        std::filesystem::remove_all(place_.directory);
        save(place_, 10);
      },
      [&] { save(place_, 20); },
      [&] {
        const bool replaced = std::filesystem::exists(step_path(place_, 20));
        expect_loads(replaced ? 20 : 10, 0);
        EXPECT_TRUE(std::filesystem::exists(step_path(place_, 10))) << "the one before is kept";
        EXPECT_EQ(names_in(place_.directory).size(), replaced ? 2U : 1U) << "nothing half-written stays";
      });
  EXPECT_GT(faults, 20);
}

TEST_F(CheckpointTest, TheOldOrTheNewLoadsWheneverThePowerGoes) {
  test::for_each_power_loss(
      directory_ / "disk",
      [&] {
        save({directory_ / "disk/born", place_.identity, 1}, 10);
      },
      [&] {
        save({directory_ / "disk/born", place_.identity, 1}, 20);
      },
      [&](bool done) {
        place_.directory = directory_ / "disk/born";
        expect_loads(std::filesystem::exists(step_path(place_, 20)) ? 20 : 10, 0);
        EXPECT_TRUE(!done || std::filesystem::exists(step_path(place_, 20)));
      });
}

TEST_F(CheckpointTest, TheFirstOneIsThereOnceItWasSaved) {
  test::for_each_power_loss(
      directory_ / "disk", [] {},
      [&] {
        save({directory_ / "disk/checkpoints/born", place_.identity, 1}, 10);
      },
      [&](bool done) {
        place_.directory = directory_ / "disk/checkpoints/born";
        if (done) expect_loads(10, 0);
      });
}

TEST_F(CheckpointTest, AFullDiskLeavesTheEarlierOneAndNothingHalfWritten) {
  save(place_, 10);
  const auto bytes = std::filesystem::file_size(step_path(place_, 10) / "state.safetensors");
  std::filesystem::remove_all(place_.directory);
  std::filesystem::create_directory(place_.directory);
  const test::OwnDisk disk{place_.directory, "size=" + std::to_string(2 * bytes)};
  RETORT_ON_OWN_DISK_OR_SKIP(disk, [&] {
    save(place_, 10);
    const auto message = message_of<base::StorageError>([&] { save(place_, 20); });
    EXPECT_SAYS(message, "No space left on device");
    EXPECT_EQ(names_in(place_.directory), std::set<std::string>{"step-00000010"});
    expect_loads(10, 0);
  });
}

// Step 10 or 20, as it was saved; returns which.
std::int64_t one_of_both(const CheckpointPlace& place) {
  std::int64_t step = 0;
  test::on_ranks(2, [&](comm::Group& world) {
    RankState state(99, world);
    Witness witness;
    const auto progress = load_checkpoint(place, state.trained(), witness);
    ASSERT_TRUE(progress && (progress->step == 10 || progress->step == 20));
    EXPECT_EQ(state.hash(), RankState(static_cast<std::uint64_t>(progress->step), world).hash());
    if (world.rank() == 0) step = progress->step;
  });
  return step;
}

TEST_F(CheckpointTest, OfTwoRanksIsTheOldOrTheNewWheneverThePowerGoes) {
  const CheckpointPlace place{directory_ / "disk/born", place_.identity, 1};
  test::for_each_power_loss(
      directory_ / "disk", [&] { save_on_two_ranks(place, 10); }, [&] { save_on_two_ranks(place, 20); },
      [&](bool done) {
        const auto step = one_of_both(place);
        EXPECT_TRUE(!done || step == 20);
      });
}

// Each of two ranks writes its part: where one cannot, both throw, and the checkpoint before is whole.
TEST_F(CheckpointTest, OfTwoRanksSurvivesADiskThatFailsAtAnyCall) {
  const int faults = test::for_each_fault(
      directory_.path(),
      [&] {
        std::filesystem::remove_all(place_.directory);
        save_on_two_ranks(place_, 10);
      },
      [&] { save_on_two_ranks(place_, 20); }, [&] { (void)one_of_both(place_); });
  EXPECT_GT(faults, 20);
}

// One rank cannot read its share of the files; the other throws the same.
TEST_F(CheckpointTest, OfTwoRanksThatCannotBeReadEndsTheStage) {
  for (const std::int64_t step : {10, 20}) save_on_two_ranks(place_, step);
  const auto part = step_path(place_, 20) / "state-00001.safetensors";
  std::filesystem::rename(part, directory_ / "part");
  std::filesystem::create_symlink("/proc/self/mem", part);
  test::on_ranks(2, [&](comm::Group& world) {
    RankState state(99, world);
    Witness witness;
    const auto load = [&] { (void)load_checkpoint(place_, state.trained(), witness); };
    EXPECT_SAYS(message_of<base::StorageError>(load), "state-00001.safetensors: cannot be read");
    EXPECT_TRUE(witness.warnings.empty());
  });
}

// A part that is torn, or of another checkpoint, is found by its sum on every rank.
TEST_F(CheckpointTest, OfTwoRanksIsPassedOverWhereAPartIsTornOrForeign) {
  const auto part = [&](std::int64_t step) { return step_path(place_, step) / "state-00001.safetensors"; };
  const auto load_step = [&] {
    std::int64_t step = 0;
    test::on_ranks(2, [&](comm::Group& world) {
      RankState state(99, world);
      Witness witness;
      const auto progress = load_checkpoint(place_, state.trained(), witness);
      EXPECT_FALSE(world.failed_together());
      if (world.rank() == 0) step = progress ? progress->step : 0;
      EXPECT_EQ(witness.warnings.size(), 1U);
    });
    return step;
  };
  const std::function<void()> damages[] = {
      [&] { std::filesystem::resize_file(part(20), std::filesystem::file_size(part(20)) - 1); },
      [&] {
        std::filesystem::copy_file(part(10), part(20), std::filesystem::copy_options::overwrite_existing);
      },
      [&] { std::filesystem::remove(part(20)); }};
  for (const auto& damage : damages) {
    std::filesystem::remove_all(place_.directory);
    for (const std::int64_t step : {10, 20}) save_on_two_ranks(place_, step);
    ASSERT_TRUE(std::filesystem::exists(part(20))) << *names_in(step_path(place_, 20)).begin();
    damage();
    EXPECT_EQ(load_step(), 10);
  }
}

// Weights and both moments, from each part what a rank has of it.
TEST_F(CheckpointTest, OfTwoRanksIsTheSameForAnyNumberOfThem) {
  save_on_two_ranks(place_, 10);
  expect_loads(10, 0);
  for (const int ranks : {3, 4})
    test::on_ranks(ranks, [&](comm::Group& world) {
      RankState state(99, world);
      Witness witness;
      ASSERT_TRUE(load_checkpoint(place_, state.trained(), witness).has_value());
      EXPECT_EQ(state.hash(), RankState(10, world).hash());
    });
}

}  // namespace
}  // namespace retort::train
