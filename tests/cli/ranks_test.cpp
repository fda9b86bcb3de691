// Runs of several ranks: they give the result of one, go on on any number, and end together.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <limits>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <regex>
#include <thread>

#include "cli/tiny_project.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/machine.h"
#include "retort/comm/flight.h"
#include "support/message_of.h"
#include "support/own_disk.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

// Three micro-batches of two sequences a step: two ranks have three sequences each, four have one or two.
constexpr const char* kMore = ", batch: {sequences: 2, accumulate: 3}, checkpoint_every_steps: 5";

std::string train_of(int steps) {
  return train_stage(steps * 384, kMore);
}

std::string distil() {
  return "{name: student, kind: distill, from: born, teacher: born, data: [text], tokens: 3k, packing: "
         "{sequence_length: 64}, batch: {sequences: 2, accumulate: 3}, evaluate_tokens: 256, optim: {lr: "
         "1.0e-2}}";
}

std::vector<std::string> command_in(const std::string& directory, int student_ranks) {
  std::vector<std::string> command{"run", "recipe.yaml", "--run-dir", directory};
  if (student_ranks > 0)
    command.insert(command.end(), {"--set", base::join("stages.born.shard.student_ranks=", student_ranks)});
  return command;
}

// What a launcher of MPI needs in a directory of a small machine, whoever the user is.
void enter_mpi(const fs::path& directory) {
  fs::current_path(directory);
  for (const auto* variable :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
    ::setenv(variable, "1", 1);
  ::setenv("OMPI_MCA_btl", "self,vader", 1);
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
}

// Becomes a launcher of MPI that starts the program as so many ranks.
void become(const char* launcher, int ranks, const std::vector<std::string>& command) {
  std::vector<std::string> all{launcher, "-n", std::to_string(ranks), ::getenv("RETORT_PROGRAM")};
  all.insert(all.end(), command.begin(), command.end());
  std::vector<char*> arguments;
  for (auto& argument : all) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  ::execv(launcher, arguments.data());
}

constexpr const char* kKilled = "was ended by signal 9 \\(Killed\\)";

// Says in one sentence which rank it was and on which machine, what became of it, in which step and phase,
// and its last call with its number.
void expect_names(const std::string& said, int rank, const std::string& what) {
  const std::regex whole(base::join("error: rank ", rank, " on ", base::host_name(), " \\(process [0-9]+\\) ",
                                    what,
                                    ".*in step [0-9]+, [a-z]+, [a-z_]+; its last call was [a-z_]+ of [0-9]+ "
                                    "[a-z0-9]+, number [0-9]+ of '[a-z]+'"));
  EXPECT_TRUE(std::regex_search(said, whole)) << said;
  EXPECT_EQ(said.find("error:"), said.rfind("error:")) << said;
}

class Ranks : public testing::Test {
 protected:
  Finished run_in(const std::string& directory, int ranks, int student_ranks = 0) const {
    auto command = command_in(directory, student_ranks);
    if (ranks > 1) command.insert(command.end(), {"--ranks", std::to_string(ranks)});
    return project_.run(command);
  }
  /// By a launcher of MPI, as ranks that share the memory of this machine.
  Finished run_by(const char* launcher, const std::string& directory, int ranks, int student_ranks) const {
    Running running({}, "", {}, [&] {
      enter_mpi(project_.path());
      become(launcher, ranks, command_in(directory, student_ranks));
    });
    return running.wait();
  }
  /// The losses of a run are those of the run `one`.
  void expect_result_of_one(const std::string& directory) const {
    const auto one = metrics_of(project_.path("one")), many = metrics_of(project_.path(directory));
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t line = 0; line < one.size(); ++line) {
      EXPECT_EQ(many[line].at("step"), one[line].at("step"));
      EXPECT_EQ(many[line].value("tokens", 0), one[line].value("tokens", 0));
      if (!one[line].contains("loss")) continue;
      // Steps of AdamW in float32, each of sums in another order.
      const double expected = one[line].at("loss");
      EXPECT_NEAR(many[line].at("loss").get<double>(), expected, 1e-4 * expected)
          << directory << " line " << line;
    }
  }
  /// Ranks that see each other's weights gather them where they lie.
  void expect_common_memory(const std::string& directory) const {
    const auto result = base::parse_json(base::read_file(project_.path(directory) / "stages/born.json"));
    int gathered = 0;
    for (const auto& call : result.at("collectives")) {
      if (call.at("group") != "student shard" || call.at("operation") != "all_gather") continue;
      ++gathered;
      EXPECT_EQ(call.at("moved_bytes"), 0) << call;
    }
    EXPECT_GT(gathered, 0) << directory;
  }
  int last_step(const std::string& directory) const {
    const auto lines = metrics_of(project_.path(directory));
    return lines.empty() ? -1 : lines.back().at("step").get<int>();
  }
  /// A copy of what is in `run` goes on to the loss of `whole`.
  void expect_goes_on(const std::string& run, const std::string& directory, int ranks,
                      int student_ranks = 0) {
    fs::copy(project_.path(run), project_.path(directory), fs::copy_options::recursive);
    const auto finished = run_in(directory, ranks, student_ranks);
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_SAYS(finished.err, "going on after step");
    const auto lines = metrics_of(project_.path(directory)), expected = metrics_of(project_.path("whole"));
    ASSERT_EQ(lines.size(), expected.size());
    const double loss = expected.back().at("loss");
    EXPECT_NEAR(lines.back().at("loss").get<double>(), loss, 1e-3 * loss) << directory;
    // Of the steps that this start made, what ranks exchanged is counted.
    const auto result = base::parse_json(base::read_file(project_.path(directory) / "stages/born.json"));
    EXPECT_EQ(result.contains("collectives_steps"), ranks > 1);
    EXPECT_LT(result.value("collectives_steps", 0), lines.back().at("step").get<int>());
  }
  /// Starts a run of three ranks and does something to the process of the last one at a step.
  template <typename Action>
  Finished disturb(int step, Action action) {
    Running running({"run", "recipe.yaml", "--run-dir", "run", "--ranks", "3"}, "", project_.path(),
                    [] { ::setenv("RETORT_PATIENCE_SECONDS", "1", 1); });
    EXPECT_TRUE(wait_until(running, [&] { return last_step("run") >= step; })) << running.err();
    const auto ranks = children_of(running.pid());
    EXPECT_EQ(ranks.size(), 3U);
    if (ranks.size() == 3) action(running, ranks.back());
    return running.wait();
  }
  template <typename Action>
  Finished disturb_phase(const std::string& phase, Action action);
  /// Three ranks, each a machine of its own, of which one gets a signal in training.
  Finished signal_a_machine(int signal);

  TinyProject project_;
};

TEST_F(Ranks, GiveTheResultOfOneAndTheSameBitsAgain) {
  project_.write_recipe({train_of(12), distil()});
  for (const auto& [directory, ranks] :
       {std::pair{"one", 1}, std::pair{"two", 2}, std::pair{"four", 4}, std::pair{"again", 4}}) {
    const auto finished = run_in(directory, ranks);
    ASSERT_EQ(finished.code, 0) << finished.err;
  }
  for (const auto* directory : {"two", "four"}) expect_result_of_one(directory);
  for (const auto* stage : {"born", "student"})
    EXPECT_TRUE(weights_of(project_.path("four"), stage) == weights_of(project_.path("again"), stage))
        << stage;
}

// What two ranks and four measure decides as what one does, and a sparse student keeps its zeros.
TEST_F(Ranks, PruneAndMeasureAsOneDoes) {
  project_.write_recipe(
      {train_of(12),
       "{name: seen, kind: profile, from: born, data: [text], calibration_tokens: 8k, sequence_length: 64}",
       "{name: narrow, kind: prune, from: born, profile: seen, data: [text], target: {parameters: 92%}, "
       "units: per_layer, search: {method: additive}, width_multiple: 4, calibration_tokens: 4k, "
       "sequence_length: 64}",
       "{name: alike, kind: prune, from: born, data: [text], target: {parameters: 92%}, units: uniform, "
       "width_multiple: 16, calibration_tokens: 4k, sequence_length: 64}",
       "{name: sparse, kind: sparsify, from: born, data: [text], share: 60%, calibration_tokens: 8k, "
       "sequence_length: 64}",
       "{name: healed, kind: distill, from: sparse, teacher: born, data: [text], tokens: 2k, packing: "
       "{sequence_length: 64}, batch: {sequences: 2, accumulate: 3}, evaluate_tokens: 256, optim: {lr: "
       "1.0e-3}}",
       "{name: scores, kind: evaluate, models: [born, narrow, alike, healed], data: [text], context: 64, "
       "tokens: 2k, "
       "prompt: [\"a\"], max_new_tokens: 4}"});
  // The trained model is one: its last digits depend on the ranks.
  const auto one = run_in("one", 1);
  ASSERT_EQ(one.code, 0) << one.err;
  for (const int ranks : {2, 4}) {
    const auto directory = "run" + std::to_string(ranks);
    fs::copy(project_.path("one"), project_.path(directory), fs::copy_options::recursive);
    for (const auto* stage : {"seen", "narrow", "alike", "sparse", "healed", "scores"}) {
      fs::remove_all(project_.path(directory) / "models" / stage);
      fs::remove_all(project_.path(directory) / "checkpoints" / stage);
      fs::remove_all(project_.path(directory) / "stages" / stage);
      fs::remove(project_.path(directory) / "stages" / (std::string(stage) + ".json"));
    }
    const auto finished = run_in(directory, ranks);
    ASSERT_EQ(finished.code, 0) << finished.err;
    const auto result = [&](const std::string& run, const std::string& stage) {
      return base::parse_json(base::read_file(project_.path(run) / "stages" / (stage + ".json")));
    };
    for (const auto* stage : {"seen", "narrow", "alike", "sparse", "healed", "scores"}) {
      EXPECT_FALSE(result("one", stage).contains("collectives")) << stage;
      const auto calls = result(directory, stage).at("collectives");
      EXPECT_FALSE(calls.empty()) << stage;
      for (const auto& call : calls) EXPECT_EQ(call.at("ranks"), ranks) << stage;
    }
    for (const auto* stage : {"narrow", "alike"}) {
      const auto expected = result("one", stage), found = result(directory, stage);
      EXPECT_EQ(found.at("kept"), expected.at("kept")) << stage;
      EXPECT_NEAR(found.at("objective").get<double>(), expected.at("objective").get<double>(), 1e-5) << stage;
    }
    EXPECT_TRUE(weights_of(project_.path(directory), "sparse") == weights_of(project_.path("one"), "sparse"));
    const auto expected = result("one", "scores"), found = result(directory, "scores");
    for (std::size_t model = 0; model < 3; ++model) {
      const auto nll = [&](const base::Json& of) {
        return of.at("models").at(model).at("sources").at(0).at("nll").get<double>();
      };
      EXPECT_NEAR(nll(found), nll(expected), 1e-5);
    }
    const auto healed = found.at("models").at(3), healed_by_one = expected.at("models").at(3);
    EXPECT_EQ(healed.at("nonzero_parameters"), healed_by_one.at("nonzero_parameters"));
    EXPECT_LT(healed.at("nonzero_parameters"), healed.at("parameters"));
    // Steps of AdamW in float32, each of sums in another order.
    EXPECT_NEAR(healed.at("sources").at(0).at("nll").get<double>(),
                healed_by_one.at("sources").at(0).at("nll").get<double>(), 1e-3);
    EXPECT_EQ(found.at("models").at(0).at("generations"), expected.at("models").at(0).at("generations"));
  }
}

// As in a container: what ranks share does not lie there.
TEST_F(Ranks, TrainWhereSharedMemoryIsSmall) {
  project_.write_recipe({train_of(3)});
  RETORT_ON_OWN_DISK_OR_SKIP((OwnDisk{"/dev/shm", "size=64k"}), [&] {
    const auto finished = run_in("run", 3);
    EXPECT_EQ(finished.code, 0) << finished.err;
    expect_common_memory("run");
  });
}

TEST_F(Ranks, GoOnOnAnyNumberAndLayout) {
  project_.write_recipe({train_of(36)});
  for (const auto& [directory, ranks] : {std::pair{"whole", 1}, std::pair{"three", 3}}) {
    const auto whole = run_in(directory, ranks);
    ASSERT_EQ(whole.code, 0) << whole.err;
  }
  const auto stopped = disturb(10, [](Running& running, pid_t) { running.signal(SIGUSR1); });
  EXPECT_EQ(stopped.code, 85) << stopped.err;
  expect_goes_on("run", "two", 2);
  expect_goes_on("run", "two_by_two", 4, 2);
  expect_goes_on("run", "alone", 1);
  expect_goes_on("run", "as_before", 3);
  EXPECT_TRUE(weights_of(project_.path("as_before"), "born") == weights_of(project_.path("three"), "born"));

  Running one({"run", "recipe.yaml", "--run-dir", "one"}, "", project_.path());
  EXPECT_TRUE(wait_until(one, [&] { return last_step("one") >= 10; })) << one.err();
  one.signal(SIGUSR1);
  EXPECT_EQ(one.wait().code, 85);
  expect_goes_on("one", "one_by_two", 2);
}

TEST_F(Ranks, OneThatIsKilledEndsAllAndIsNamed) {
  project_.write_recipe({train_of(400)});
  std::string name;
  const auto killed = disturb(12, [&](Running&, pid_t rank) {
    std::ifstream("/proc/" + std::to_string(rank) + "/comm") >> name;
    ::kill(rank, SIGKILL);
  });
  EXPECT_EQ(name, fs::path(::getenv("RETORT_PROGRAM")).filename().string()) << "as ps and top show it";
  EXPECT_EQ(killed.code, 75) << killed.err;
  expect_names(killed.err, 2, kKilled);
  EXPECT_SAYS(killed.err, "start the same command again to go on from what is kept");
  const auto told = project_.run({"autopsy", "run"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_SAYS(told.out, "was killed in step");
  EXPECT_SAYS(told.out, "rank 2 on");
  // The next start says it too, and goes on.
  const auto next = disturb(20, [](Running& running, pid_t) { running.signal(SIGTERM); });
  EXPECT_EQ(next.code, 85) << next.err;
  EXPECT_SAYS(next.err, "the run before ended early: rank 2 on");
  EXPECT_SAYS(next.err, "going on after step");
}

char state_of(pid_t process) {
  std::string stat;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), stat);
  return stat.at(stat.rfind(')') + 2);
}

// As a system does that lacks memory.  Which of them came first nobody can tell.
TEST_F(Ranks, TwoThatAreKilledAtOnceAreBothNamed) {
  project_.write_recipe({train_of(400)});
  std::vector<pid_t> killed;
  const auto ended = disturb(12, [&](Running& running, pid_t) {
    const auto ranks = children_of(running.pid());
    killed = {ranks.back(), ranks[1]};
    ::kill(running.pid(), SIGSTOP);  // till both have ended, which takes long on a busy machine
    for (const auto rank : killed) ::kill(rank, SIGKILL);
    for (const auto rank : killed)
      while (state_of(rank) != 'Z') std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(running.pid(), SIGCONT);
  });
  EXPECT_EQ(ended.code, 75) << ended.err;
  expect_names(ended.err, 1, kKilled);
  ASSERT_EQ(killed.size(), 2U);
  EXPECT_SAYS(ended.err, base::join("; at the same time rank 2 (process ", killed[0],
                                    ") by signal 9 (Killed); start the same command again"));
  EXPECT_SAYS(project_.run({"autopsy", "run"}).out,
              base::join("; at the same time rank 2 on ", base::host_name(), " (process ", killed[0], ")."));
}

TEST_F(Ranks, OneThatIsStoppedEndsAllAndIsNamed) {
  project_.write_recipe({train_of(400)});
  const auto ended = disturb(12, [](Running& running, pid_t rank) {
    ::kill(rank, SIGSTOP);
    EXPECT_TRUE(wait_until(running, [&] { return running.err().find("error:") != std::string::npos; }))
        << running.err();
    ::kill(rank, SIGCONT);  // hears that all have gone
  });
  EXPECT_EQ(ended.code, 75) << ended.err;
  expect_names(ended.err, 2, "is stopped while others waited for it in '[a-z]+' for [0-9]+ s; it was");
}

// While steps may still take twenty times the patience; a step is half a second of work.
TEST_F(Ranks, OneThatIsStoppedInTheFirstStepsIsNamedSoon) {
  project_.write_recipe({train_stage(400 * 38400, ", batch: {sequences: 2, accumulate: 300}")});
  auto begin = std::chrono::steady_clock::now();
  const auto ended = disturb(1, [&](Running& running, pid_t rank) {
    ::kill(rank, SIGSTOP);
    begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(wait_until(running, [&] { return running.err().find("error:") != std::string::npos; }))
        << running.err();
  });
  EXPECT_LE(last_step("run"), 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_EQ(ended.code, 75) << ended.err;
  expect_names(ended.err, 2, "is stopped while others waited for it");
}

// A parent may ignore the end of its children, and hand that on.
TEST_F(Ranks, EndWhereTheEndOfChildrenIsIgnored) {
  project_.write_recipe({train_of(4)});
  Running running({"run", "recipe.yaml", "--run-dir", "run", "--ranks", "2"}, "", project_.path(),
                  [] { ::signal(SIGCHLD, SIG_IGN); });
  const auto ended = running.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// As schedulers do to make room for another job; ranks wake one after the other.
TEST_F(Ranks, OfAJobThatIsSuspendedGoOn) {
  project_.write_recipe({train_of(60)});
  Running running({"run", "recipe.yaml", "--run-dir", "run", "--ranks", "3"}, "", project_.path(),
                  [] { ::setenv("RETORT_PATIENCE_SECONDS", "2", 1); });
  ASSERT_TRUE(wait_until(running, [&] { return last_step("run") >= 12; })) << running.err();
  const auto ranks = children_of(running.pid());
  ASSERT_EQ(ranks.size(), 3U);
  for (const auto rank : ranks) ::kill(rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(4));
  for (const auto rank : ranks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::kill(rank, SIGCONT);
  }
  const auto ended = running.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// Nobody wakes it, and it is the one that speaks for all.
TEST_F(Ranks, TheFirstThatIsStoppedIsNamedAndEnded) {
  project_.write_recipe({train_of(400)});
  const auto ended =
      disturb(12, [](Running& running, pid_t) { ::kill(children_of(running.pid()).front(), SIGSTOP); });
  EXPECT_EQ(ended.code, 75) << ended.err;
  expect_names(ended.err, 0, "is stopped while others waited for it");
}

// A checkpoint is written by a thread, for which its limit leaves no room.
// A process may have so many bytes more of `resource` than now, where `field` counts it in /proc.
void limit_memory(pid_t process, const std::string& field, __rlimit_resource resource, rlim_t more_bytes) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  std::string word;
  while (file >> word && word != field + ":") continue;
  rlim_t kilobytes = 0;
  ASSERT_TRUE(file >> kilobytes) << field;
  const rlim_t most = kilobytes * 1024 + more_bytes;
  const rlimit limit{most, most};
  EXPECT_EQ(::prlimit(process, resource, &limit, nullptr), 0);
}

TEST_F(Ranks, OneThatFailsByItselfEndsAllAndIsNamed) {
  project_.write_recipe(
      {train_stage(400 * 384, ", batch: {sequences: 2, accumulate: 3}, checkpoint_every_steps: 100")});
  const auto ended =
      disturb(12, [](Running&, pid_t rank) { limit_memory(rank, "VmSize", RLIMIT_AS, 1 << 20); });
  EXPECT_EQ(ended.code, 75) << ended.err;
  expect_names(ended.err, 2, "");
  EXPECT_SAYS(ended.err, "the system starts no more threads (Resource temporarily unavailable)");
  EXPECT_SAYS(project_.run({"autopsy", "run"}).out, ") failed in step ");
}

// The second stage's model has 19 million parameters, the first's hardly any.
constexpr const char* kWideConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 2048,
 "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 4096,
 "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true,
 "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 0})";

// Threads find room for their stacks, and the wide model none: all end, and what was finished stays.
TEST_F(Ranks, OneWithoutMemoryEndsAllAndLosesNothing) {
  project_.write("wide.json", kWideConfig);
  project_.write_recipe(
      {train_of(60),
       "{name: wide, kind: train, config: wide.json, tokenizer: models/europa-5m, data: [text], tokens: 128, "
       "packing: {sequence_length: 32}, evaluate_tokens: 64}"});
  const auto ended =
      disturb(12, [](Running&, pid_t rank) { limit_memory(rank, "VmData", RLIMIT_DATA, 32 << 20); });
  // 6 where the ranks were agreeing on something and so failed together, else 75: it depends on where memory
  // ends.
  EXPECT_TRUE(ended.code == 6 || ended.code == 75) << ended.code << ": " << ended.err;
  const auto sentence = ended.err.substr(std::min(ended.err.find("retort: error: "), ended.err.size()));
  EXPECT_SAYS(sentence, base::join("rank 2 on ", base::host_name()));
  EXPECT_SAYS(sentence, "stage 'wide': ");
  EXPECT_SAYS(sentence, "out of memory; use shorter sequences or smaller micro-batches");
  EXPECT_EQ(std::ranges::count(sentence, '\n'), 1) << sentence;
  const auto born = weights_of(project_.path("run"), "born");
  EXPECT_FALSE(fs::exists(project_.path("run/models/wide")));
  const auto next = run_in("run", 3);
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_SAYS(next.err, "stage born: finished before");
  EXPECT_TRUE(weights_of(project_.path("run"), "born") == born && !born.empty());
}

// Stops a process while its record says that it is in a phase; false: the phase did not come.
bool stop_in_phase(const std::function<comm::FlightRecord()>& record, pid_t process,
                   const std::string& phase) {
  const auto is_there = [&] { return record().phase.ends_with(phase); };
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    if (!is_there()) continue;
    ::kill(process, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (is_there()) return true;
    ::kill(process, SIGCONT);  // it had gone on before the signal came
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

// Does something to the last of three ranks in a phase of a step; it stands still there.
template <typename Action>
Finished Ranks::disturb_phase(const std::string& phase, Action action) {
  project_.write_recipe(
      {train_of(5),
       "{name: student, kind: distill, from: born, teacher: born, data: [text], tokens: 400k, packing: "
       "{sequence_length: 64}, batch: {sequences: 2, accumulate: 3}, loss: [{kind: kl_divergence}, {kind: "
       "squarehead}], checkpoint_every_steps: 1000, evaluate_tokens: 256, optim: {lr: 1.0e-3}}"});
  const auto ended = disturb(12, [&](Running& running, pid_t rank) {
    const auto record = [&] {
      const auto all = comm::read_flights(project_.path("run") / "flights");
      return all.size() == 3 ? all.back() : comm::FlightRecord{};
    };
    ASSERT_TRUE(stop_in_phase(record, rank, phase)) << running.err();
    action(running, rank);
  });
  fs::remove_all(project_.path("run"));
  return ended;
}

constexpr const char* kPhases[] = {"teacher_forward", "head", "backward", "update"};

TEST_F(Ranks, OneThatIsStoppedInAnyPhaseIsNamed) {
  for (const auto* phase : kPhases) {
    SCOPED_TRACE(phase);
    const auto ended = disturb_phase(phase, [&](Running& running, pid_t rank) {
      EXPECT_TRUE(wait_until(running, [&] { return running.err().find("error:") != std::string::npos; }))
          << running.err();
      ::kill(rank, SIGCONT);
    });
    EXPECT_EQ(ended.code, 75) << ended.err;
    expect_names(ended.err, 2, "is stopped while others waited for it");
    EXPECT_SAYS(ended.err, ", " + std::string(phase) + "; its last call");
  }
}

TEST_F(Ranks, OneThatIsKilledInAnyPhaseIsNamed) {
  for (const auto* phase : kPhases) {
    SCOPED_TRACE(phase);
    const auto ended = disturb_phase(phase, [](Running&, pid_t rank) { ::kill(rank, SIGKILL); });
    EXPECT_EQ(ended.code, 75) << ended.err;
    expect_names(ended.err, 2, kKilled);
    EXPECT_SAYS(ended.err, ", " + std::string(phase) + "; its last call");
  }
}

// A rank has three sequences of a step, so its micro-batches differ.
void expect_memory_as_planned(const fs::path& run) {
  const auto result = base::parse_json(base::read_file(run / "stages/student.json"));
  const auto planned = result.at("memory_planned_bytes").get<double>();
  const auto peak = result.at("peak_tensor_bytes").get<double>();
  EXPECT_GT(planned, 0.95 * peak);
  EXPECT_LT(planned, 1.05 * peak);
}

std::string europa_distilled(const char* more) {
  const auto model = base::join(::getenv("RETORT_SOURCE"), "/models/europa-5m");
  return base::join("{name: student, kind: distill, from: ", model, ", teacher: ", model,
                    ", data: [text], tokens: 3k, packing: {sequence_length: 64}, batch: "
                    "{sequences: 2, accumulate: 3}, evaluate_tokens: 256",
                    more, "}");
}

// What they have in common counts once, each its share.
TEST_F(Ranks, OfOneMachineTakeTheMemoryThatIsPlanned) {
  project_.write_recipe({europa_distilled("")});
  for (const char* dtype : {"fp32", "bf16"}) {
    const auto ended =
        project_.run({"run", "recipe.yaml", "--run-dir", dtype, "--ranks", "2", "--dtype", dtype});
    ASSERT_EQ(ended.code, 0) << ended.err;
    expect_memory_as_planned(project_.path(dtype));
  }
}

#ifdef RETORT_MPIRUN
// The process of a rank among those that mpirun started; -1: none.
pid_t process_of_rank(pid_t mpirun, int rank) {
  const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const auto process : children_of(mpirun)) {
    std::ifstream variables("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
    for (std::string variable; std::getline(variables, variable, '\0');)
      if (variable == wanted) return process;
  }
  return -1;
}

void enter_machines(const fs::path& directory, const char* of_machine = "1") {
  enter_mpi(directory);
  ::setenv("RETORT_PATIENCE_SECONDS", "2", 1);
  ::setenv("RETORT_RANKS_PER_NODE", of_machine, 1);
}

// Starts mpirun with ranks, of which so many are taken for a machine of their own.
void start_machines(const fs::path& directory, int ranks = 3, const char* of_machine = "1") {
  enter_machines(directory, of_machine);
  become(RETORT_MPIRUN, ranks, command_in("run", 0));
}

// Two ranks, each a machine of its own with a command of its own; what stands before the program are mpirun's
// options for that rank.
Finished run_on_two_machines(const fs::path& directory, const std::vector<std::string>& first,
                             const std::vector<std::string>& second) {
  std::vector<std::string> all{RETORT_MPIRUN, "-n", "1"};
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), {":", "-n", "1"});
  all.insert(all.end(), second.begin(), second.end());
  Running running({}, "", {}, [&] {
    enter_machines(directory);
    std::vector<char*> arguments;
    for (auto& argument : all) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    ::execv(RETORT_MPIRUN, arguments.data());
  });
  return running.wait();
}

TEST_F(Ranks, OfOpenMpiGiveTheResultOfOne) {
  project_.write_recipe({train_of(12), distil()});
  const auto one = run_in("one", 1);
  ASSERT_EQ(one.code, 0) << one.err;
  for (const auto& [directory, ranks, student_ranks] :
       {std::tuple{"flat", 2, 0}, std::tuple{"two_by_two", 4, 2}}) {
    const auto finished = run_by(RETORT_MPIRUN, directory, ranks, student_ranks);
    ASSERT_EQ(finished.code, 0) << finished.err;
    expect_result_of_one(directory);
    expect_common_memory(directory);
  }
}

// The launcher wakes it at the end, when another has spoken for all.
TEST_F(Ranks, OfOpenMpiTheFirstThatIsStoppedIsNamedByTheNext) {
  project_.write_recipe({train_of(400)});
  Running running({}, "", {}, [directory = project_.path()] {
    enter_mpi(directory);
    ::setenv("RETORT_PATIENCE_SECONDS", "2", 1);
    become(RETORT_MPIRUN, 3, command_in("run", 0));
  });
  ASSERT_TRUE(wait_until(running, [&] { return last_step("run") >= 12; })) << running.err();
  const auto first = process_of_rank(running.pid(), 0);
  ASSERT_GT(first, 0);
  ::kill(first, SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  const auto ended = running.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::seconds(12));  // patience, and no grace of 10 s
  EXPECT_EQ(ended.code, 75) << ended.err;
  expect_names(ended.err, 0, "is stopped while others waited for it");
  EXPECT_SAYS(project_.run({"autopsy", "run"}).out, "rank 0 on ");
}

Finished Ranks::signal_a_machine(int signal) {
  project_.write_recipe({train_of(400)});
  Running running({}, "", {}, [directory = project_.path()] { start_machines(directory); });
  EXPECT_TRUE(wait_until(running, [&] { return last_step("run") >= 12; })) << running.err();
  const auto rank = process_of_rank(running.pid(), 1);
  EXPECT_GT(rank, 0);
  if (rank > 0) ::kill(rank, signal);
  return running.wait();  // mpirun ends all that are left
}

// Where the ranks share no memory, the call of MPI that waits for it does not return.
TEST_F(Ranks, OneOfAnotherMachineThatIsStoppedEndsAllAndIsNamed) {
  const auto ended = signal_a_machine(SIGSTOP);
  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_SAYS(ended.err, "rank 1 on ");
  EXPECT_SAYS(ended.err, "hangs or was stopped in step");
  // By its step, or by its record: both are due within the same seconds.
  EXPECT_TRUE(ended.err.find("Others waited for it in") != std::string::npos ||
              ended.err.find("Nothing was heard of it for") != std::string::npos)
      << ended.err;
}

// They hold units of each other's parts, which their plan counts.
TEST_F(Ranks, OfTwoMachinesTakeTheMemoryThatIsPlanned) {
  project_.write_recipe({europa_distilled(", shard: {student_ranks: 2, teacher_ranks: 2}")});
  Running running({}, "", {}, [directory = project_.path()] { start_machines(directory, 2); });
  const auto ended = running.wait();
  ASSERT_EQ(ended.code, 0) << ended.err;
  expect_memory_as_planned(project_.path("run"));
}

// The program of both is the same small one; what differs is the library that it loads.
TEST_F(Ranks, OfMachinesWithOtherLibrariesAreRefused) {
  project_.write_recipe({train_of(4)});
  const fs::path own = ::getenv("RETORT_PROGRAM");
  const auto copy = project_.path("copy");
  fs::create_directory(copy);
  fs::create_directory(copy / "cli");
  fs::copy_file(own, copy / "cli" / own.filename());
  fs::copy(own.parent_path().parent_path() / "retort", copy / "retort");
  std::ofstream(copy / "retort" / RETORT_LIBRARY, std::ios::app) << 'x';
  const auto refused =
      run_on_two_machines(project_.path(), {own, "run", "recipe.yaml", "--run-dir", "run"},
                          {copy / "cli" / own.filename(), "run", "recipe.yaml", "--run-dir", "run"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err, RETORT_LIBRARY ": rank 1 on ");
  EXPECT_SAYS(refused.err, "give all machines the same.");
}

TEST_F(Ranks, OfMachinesWithOtherRecipesAreRefused) {
  project_.write_recipe({train_of(8)});
  fs::rename(project_.path("recipe.yaml"), project_.path("other.yaml"));
  project_.write_recipe({train_of(4)});
  const std::string program = ::getenv("RETORT_PROGRAM");
  const auto refused =
      run_on_two_machines(project_.path(), {program, "run", "recipe.yaml", "--run-dir", "run"},
                          {program, "run", "other.yaml", "--run-dir", "run"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err,
              "rank 1: the recipe is another one than on rank 0; use the same on every machine.");
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

// The launcher ends the first as soon as it has the code of the second.
TEST_F(Ranks, OfWhichTheFirstEndsSlowlySayTheirMistake) {
  project_.write_recipe({train_of(4)});
  const std::string program = ::getenv("RETORT_PROGRAM");
  const auto refused =
      run_on_two_machines(project_.path(),
                          {"-x", "LD_PRELOAD=" RETORT_SLOW_FINALIZE, program, "run", "recipe.yaml", "--stage",
                           "none", "--run-dir", "run"},
                          {program, "run", "recipe.yaml", "--stage", "none", "--run-dir", "run"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err, "retort: error: ");
  EXPECT_SAYS(refused.err, "none");
}

// As where a checkpoint was copied to each machine, and one has another of the same shape.
TEST_F(Ranks, OfMachinesWithOtherWeightsAreRefused) {
  project_.write_recipe({train_of(4)});
  ASSERT_EQ(run_in("made", 1).code, 0);
  const auto model = [&](const char* machine) { return project_.path(machine) / "model"; };
  for (const char* machine : {"one", "two"}) {
    fs::create_directory(project_.path(machine));
    fs::copy(project_.path("made") / "models/born", model(machine));
    fs::copy_file(project_.path("text.txt"), project_.path(machine) / "text.txt");
  }
  project_.write_recipe({finetune_stage("./model")});
  for (const char* machine : {"one", "two"})
    fs::copy_file(project_.path("recipe.yaml"), project_.path(machine) / "recipe.yaml");
  {
    std::fstream weights(model("two") / "model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
    weights.seekp(-1, std::ios::end);
    weights.put('x');
  }
  const std::string program = ::getenv("RETORT_PROGRAM");
  const std::string run = project_.path("run");
  const auto refused =
      run_on_two_machines(project_.path(), {"-wdir", "one", program, "run", "recipe.yaml", "--run-dir", run},
                          {"-wdir", "two", program, "run", "recipe.yaml", "--run-dir", run});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err, "model.safetensors: rank 1 on ");
  EXPECT_FALSE(fs::exists(run));
}

// A directory of the same name is there too, from a run before.
TEST_F(Ranks, OfMachinesThatShareNoRunDirectoryAreRefused) {
  project_.write_recipe({train_of(4)});
  for (const char* machine : {"one", "two"}) {
    fs::create_directories(project_.path(machine) / "run");
    for (const char* entry : {"recipe.yaml", "text.txt", "config.json", "models"})
      fs::copy(project_.path(entry), project_.path(machine) / entry, fs::copy_options::recursive);
  }
  const std::string program = ::getenv("RETORT_PROGRAM");
  const auto refused = run_on_two_machines(
      project_.path(), {"-wdir", "one", program, "run", "recipe.yaml", "--run-dir", "run"},
      {"-wdir", "two", program, "run", "recipe.yaml", "--run-dir", "run"});
  EXPECT_EQ(refused.code, 7) << refused.err;
  EXPECT_SAYS(refused.err, "is not the one that rank 0 has opened; use a directory that all machines share.");
  for (const char* machine : {"one", "two"})
    for (const auto& [name, content] : files_below(project_.path(machine) / "run"))
      ADD_FAILURE() << machine << ": " << name;
}

// As where a file system shows late on one machine what another has written: nothing is passed over for it.
TEST_F(Ranks, OfWhichOneSeesNoCheckpointBeginNothingAnew) {
  if (!on_own_disk({.place = project_.path(), .options = "", .flags = 0}, [] {}))
    GTEST_SKIP() << "needs privileges: mounting a disk takes root with CAP_SYS_ADMIN";
  project_.write_recipe({train_of(400)});
  {
    Running running({}, "", {}, [directory = project_.path()] { start_machines(directory, 2); });
    ASSERT_TRUE(wait_until(running, [&] { return last_step("run") >= 12; })) << running.err();
    std::ofstream(project_.path("run") / "stop");
    ASSERT_EQ(running.wait().code, 85);
  }
  const auto before = files_below(project_.path("run") / "checkpoints");
  ASSERT_FALSE(before.empty());
  const std::string program = ::getenv("RETORT_PROGRAM");
  const auto ended = run_on_two_machines(
      project_.path(), {program, "run", "recipe.yaml", "--run-dir", "run"},
      {"unshare", "-m", "sh", "-c",
       base::join("for made in run/checkpoints/born/step-*; do mount -t tmpfs none $made; done; exec '",
                  program, "' run recipe.yaml --run-dir run")});
  EXPECT_EQ(ended.code, 7) << ended.err;
  EXPECT_SAYS(ended.err,
              "does not see it, rank 0 does; start again when all machines see the same directory.");
  EXPECT_EQ(files_below(project_.path("run") / "checkpoints"), before);
}

TEST_F(Ranks, OfMachinesOfUnequalSizeAreRefused) {
  project_.write_recipe({train_of(4)});
  Running running({}, "", {}, [directory = project_.path()] { start_machines(directory, 3, "2"); });
  const auto refused = running.wait();
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_EQ(refused.err.find("error:"), refused.err.rfind("error:")) << refused.err;
  EXPECT_SAYS(refused.err, "expected as many ranks on every machine, found 1 on one and 2 on another");
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

// The students of a select stage are those of one rank.
TEST_F(Ranks, OfTwoMachinesDistilContendersOneAfterTheOther) {
  project_.write_recipe(
      {train_of(12),
       "{name: narrow, kind: prune, from: born, data: [text], target: {parameters: 92%}, units: uniform, "
       "width_multiple: 16, calibration_tokens: 4k, sequence_length: 64}",
       "{name: chosen, kind: select, models: [born, narrow], teacher: born, data: [text], tokens: 30k, "
       "packing: "
       "{sequence_length: 64}, batch: {sequences: 2, accumulate: 3}, evaluate_tokens: 1k, optim: {lr: "
       "1.0e-2}}"});
  const auto one = run_in("one", 1);
  ASSERT_EQ(one.code, 0) << one.err;
  fs::copy(project_.path("one"), project_.path("run"), fs::copy_options::recursive);
  for (const std::string stage : {"chosen", "chosen.1", "chosen.2"}) {
    for (const auto* part : {"models", "checkpoints", "stages"})
      fs::remove_all(project_.path("run") / part / stage);
    fs::remove(project_.path("run/stages") / (stage + ".json"));
  }
  Running running({}, "", {}, [directory = project_.path()] { start_machines(directory, 2); });
  const auto finished = running.wait();
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto result = [&](const char* run) {
    return base::parse_json(base::read_file(project_.path(run) / "stages/chosen.json"));
  };
  const auto expected = result("one"), found = result("run");
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < 2; ++i) {
    const double nll = expected.at("models")[i].at("nll"), of_two = found.at("models")[i].at("nll");
    EXPECT_NEAR(of_two, nll, 1e-3 * nll) << i;
    least = std::min(least, of_two);
  }
  for (const auto& model : found.at("models"))
    EXPECT_EQ(model.at("name") == found.at("chosen"), model.at("nll") == least);
}

TEST_F(Ranks, OneOfAnotherMachineThatIsKilledEndsAllAndIsNamed) {
  const auto ended = signal_a_machine(SIGKILL);
  EXPECT_EQ(ended.code, 137) << ended.err;
  const auto told = project_.run({"autopsy", "run"}).out;
  EXPECT_SAYS(told, "rank 1 on ");
  EXPECT_SAYS(told, "was killed in step");
}

TEST_F(Ranks, WhoseLauncherSaysAnotherNumberThanMpiAreRefused) {
  project_.write_recipe({train_of(4)});
  const auto refused = run({"run", "recipe.yaml", "--run-dir", "run"}, "", project_.path(), [] {
    enter_machines(".");
    ::setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  });
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_SAYS(refused.err, "the launcher started 4 ranks, but MPI knows 1");
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

// An empty file is found before the library, and no library either.
TEST_F(Ranks, WithoutTheirMpiAreToldWhatToInstall) {
  project_.write_recipe({train_of(4)});
  project_.write("libmpi.so.40", "");
  const auto refused =
      run({"run", "recipe.yaml", "--run-dir", "run"}, "", project_.path(), [directory = project_.path()] {
        ::setenv("LD_LIBRARY_PATH", directory.c_str(), 1);
        ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
      });
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_SAYS(refused.err, "ranks of Open MPI: ");
  EXPECT_SAYS(refused.err, "libmpi.so.40");
  EXPECT_SAYS(refused.err, "install libopenmpi3");
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

// What a scheduler sends before its limit, and what Ctrl-C makes of mpirun: the checkpoint is the only one.
TEST_F(Ranks, ASignalToMpirunStopsAllRanksAtACheckpoint) {
  for (const int signal : {SIGUSR1, SIGINT}) {
    project_.write_recipe(
        {train_stage(150 * 384, ", batch: {sequences: 2, accumulate: 3}, checkpoint_every_steps: 100000")});
    Running running({}, "", {}, [directory = project_.path()] { start_machines(directory); });
    ASSERT_TRUE(wait_until(running, [&] { return last_step("run") >= 12; })) << running.err();
    running.signal(signal);
    const auto ended = running.wait();
    EXPECT_TRUE(signal == SIGUSR1 ? ended.code == 85 : ended.code != 0) << ended.code << ended.err;
    const auto next = run_in("run", 1);
    EXPECT_EQ(next.code, 0) << next.err;
    EXPECT_SAYS(next.err, "going on after step");
    fs::remove_all(project_.path("run"));
  }
}

// Nobody knows how long others may wait where no steps are made.
TEST_F(Ranks, OneOfAnotherMachineThatIsStoppedInASearchIsNamed) {
  project_.write_recipe(
      {train_of(4),
       "{name: narrow, kind: prune, from: born, data: [text], target: {parameters: 90%}, units: per_layer, "
       "search: {method: tabu, budget_tokens: 400M}, width_multiple: 4, "
       "calibration_tokens: 4k, sequence_length: 64}"});
  Running running({}, "", {}, [directory = project_.path()] { start_machines(directory); });
  ASSERT_TRUE(wait_until(running, [&] { return running.err().find("tokens searched") != std::string::npos; }))
      << running.err();
  const auto rank = process_of_rank(running.pid(), 1);
  ASSERT_GT(rank, 0);
  ::kill(rank, SIGSTOP);
  const auto ended = running.wait();
  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_SAYS(ended.err, "rank 1 on ");
  EXPECT_SAYS(ended.err, "hangs or was stopped in stage narrow");
  EXPECT_SAYS(ended.err, "Nothing was heard of it for");
}
#endif

#ifdef RETORT_MPIRUN_MPICH
TEST_F(Ranks, OfMpichGiveTheResultOfOne) {
  project_.write_recipe({train_of(12)});
  const auto one = run_in("one", 1);
  ASSERT_EQ(one.code, 0) << one.err;
  const auto finished = run_by(RETORT_MPIRUN_MPICH, "flat", 2, 0);
  ASSERT_EQ(finished.code, 0) << finished.err;
  expect_result_of_one("flat");
  expect_common_memory("flat");
}
#endif

TEST_F(Ranks, SayAMistakeOnce) {
  project_.write_recipe({train_of(4)});
  project_.write("text.txt", "");
  const auto refused = run_in("run", 3);
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_EQ(refused.err.find("error:"), refused.err.rfind("error:")) << refused.err;
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

// One copy between all of them, though the recipe does not know how many there are.
TEST_F(Ranks, OfOneLayoutMayBeAnyNumber) {
  auto stage = train_of(4);
  stage.insert(stage.size() - 1, ", shard: {student_ranks: all}");
  project_.write_recipe({stage});
  for (const int ranks : {1, 2, 3}) {
    const auto directory = std::to_string(ranks);
    const auto finished = run_in(directory, ranks);
    ASSERT_EQ(finished.code, 0) << finished.err;
    if (ranks == 1) continue;
    const auto result = base::parse_json(base::read_file(project_.path(directory) / "stages/born.json"));
    for (const auto& call : result.at("collectives")) {
      if (call.at("group") != "student shard") continue;
      EXPECT_EQ(call.at("ranks"), ranks);
    }
  }
  stage.replace(stage.find("ranks: all"), 10, "ranks: each");
  project_.write_recipe({stage});
  EXPECT_SAYS(run_in("mistaken", 2).err, "a whole number such as 512 or 60k, or machine, or all");
}

TEST_F(Ranks, OfALayoutThatDoesNotDivideThemAreRefused) {
  auto stage = train_of(4);
  stage.insert(stage.size() - 1, ", shard: {student_ranks: 2}");
  project_.write_recipe({stage});
  const auto refused = run_in("run", 3);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err, "shard groups of 2 ranks do not divide 3 ranks");
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

TEST_F(Ranks, OfOtherLaunchersAreToldTheCommandToUse) {
  project_.write_recipe({train_of(4)});
  const auto refused =
      run({"run", "recipe.yaml"}, "", project_.path(), [] { ::setenv("TORCHELASTIC_RUN_ID", "x", 1); });
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err, "use mpirun -n N retort run RECIPE");
  const auto tasks =
      run({"run", "recipe.yaml"}, "", project_.path(), [] { ::setenv("SLURM_STEP_NUM_TASKS", "4", 1); });
  EXPECT_EQ(tasks.code, 2) << tasks.err;
  EXPECT_SAYS(tasks.err, "srun --mpi=pmix");
}

TEST_F(Ranks, AutopsyOfARunOfOneSaysWhatItNeeds) {
  const auto refused = project_.run({"autopsy", "run"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_SAYS(refused.err, "expected what ranks left there, found nothing");
}

}  // namespace
}  // namespace retort::test
