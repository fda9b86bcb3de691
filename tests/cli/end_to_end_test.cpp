// A recipe with every kind of stage, from random weights to scores, on a model so small that it takes a
// second.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

const std::string kPacking = "packing: {sequence_length: 64}, batch: {sequences: 2}";

std::vector<std::string> every_kind() {
  return {train_stage(2048, ", evaluate_every_steps: 4, checkpoint_every_steps: 3"),
          "{name: tuned, kind: finetune, from: born, data: [text], tokens: 512, " + kPacking +
              ", evaluate_every_steps: 0}",
          "{name: pruned, kind: prune, units: uniform, from: tuned, data: [text], target: {parameters: 95%}, "
          "calibration_tokens: 256, "
          "sequence_length: 64, width_multiple: 16}",
          "{name: sparse, kind: sparsify, from: pruned, data: [text], calibration_tokens: 2k, "
          "sequence_length: 64}",
          "{name: student, kind: distill, from: sparse, teacher: tuned, data: [text], tokens: 512, " +
              kPacking + ", evaluate_every_steps: 2, evaluate_tokens: 512, optim: {lr: 1.0e-3}, " +
              "loss: [{kind: cross_entropy, weight: 0.25}, {kind: kl_divergence}, {kind: squarehead}]}",
          "{name: scores, kind: evaluate, models: [tuned, student], data: [text], context: 64, prompt: the "
          "package, "
          "max_new_tokens: 5}"};
}

class EndToEnd : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    project_ = new TinyProject;
    project_->write_recipe(every_kind());
    finished_ = new Finished(project_->run_recipe());
  }
  static void TearDownTestSuite() {
    delete finished_;
    delete project_;
  }
  void SetUp() override { ASSERT_EQ(finished_->code, 0) << finished_->err; }

  static fs::path run_path(const fs::path& name = {}) { return project_->path("run") / name; }

  static inline TinyProject* project_ = nullptr;
  static inline Finished* finished_ = nullptr;
};

TEST_F(EndToEnd, LeavesASelfContainedRunDirectory) {
  for (const char* file : {"recipe.json", "recipe.yaml", "provenance.json", "metrics.jsonl", "report.html"})
    EXPECT_TRUE(fs::is_regular_file(run_path(file))) << file;
  for (const char* stage : {"born", "tuned", "pruned", "sparse", "student"}) {
    EXPECT_TRUE(fs::is_regular_file(run_path("stages") / (std::string(stage) + ".json"))) << stage;
    for (const char* file : {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                             "generation_config.json", "retort.json"})
      EXPECT_TRUE(fs::is_regular_file(run_path("models") / stage / file)) << stage << file;
  }
  for (const auto& [name, content] : files_below(run_path()))
    EXPECT_EQ(name.find("unfinished"), std::string::npos) << name;
}

TEST_F(EndToEnd, TakesTheLearningRateOfTheWidthWhereTheRecipeGivesNone) {
  EXPECT_SAYS(finished_->err, "tuned: learning rate 0.00375, by the width of the model");
  EXPECT_EQ(finished_->err.find("born: learning rate"), std::string::npos);
  EXPECT_EQ(base::Json::parse(base::read_file(run_path("stages/tuned.json"))).at("lr"), 0.12 / 32);
  const TinyProject project;
  project.write_recipe(
      {"{name: born, kind: train, config: config.json, tokenizer: models/europa-5m, data: [text], tokens: "
       "128, "
       "packing: {sequence_length: 64}, batch: {sequences: 2}, evaluate_every_steps: 0}"});
  const auto random = project.run_recipe();
  ASSERT_EQ(random.code, 0) << random.err;
  EXPECT_SAYS(random.err, "born: learning rate 0.0375, by the width of the model");
}

TEST_F(EndToEnd, PrintsResultsOnStandardOutputAndProgressOnStandardError) {
  EXPECT_SAYS(finished_->out, "student ");
  EXPECT_SAYS(finished_->out, "perplexity");
  EXPECT_SAYS(finished_->out, "report: run/report.html");
  EXPECT_EQ(finished_->out.find("stage born"), std::string::npos);
  EXPECT_SAYS(finished_->err, "stage born (train)");
  EXPECT_SAYS(finished_->err, "memory plan");
  EXPECT_SAYS(finished_->err, "16/16  loss ");
  EXPECT_EQ(finished_->err.find('\r'), std::string::npos) << "a live line where there is no terminal";
}

TEST_F(EndToEnd, WritesAnObjectPerStep) {
  std::map<std::string, std::vector<base::Json>> lines;
  for (const auto& line : metrics_of(run_path())) lines[line.at("stage")].push_back(line);
  ASSERT_EQ(lines.at("born").size(), 1 + 16U);  // with the held-out loss before the first step
  ASSERT_EQ(lines.at("tuned").size(), 4U);
  ASSERT_EQ(lines.at("student").size(), 1 + 4U);
  for (const auto& [stage, of_stage] : lines)
    for (const auto& line : of_stage) {
      if (line.at("step") == 0) continue;
      EXPECT_EQ(line.at("tokens"), line.at("step").get<int>() * 128);
      for (const char* key : {"loss", "gradient_norm", "lr", "tokens_per_second"})
        EXPECT_GT(line.at(key).get<double>(), 0) << stage << key;
      std::set<std::string> parts;
      for (const auto& [part, value] : line.at("parts").items()) parts.insert(part);
      EXPECT_EQ(parts, stage == "student"
                           ? (std::set<std::string>{"cross_entropy", "kl_divergence", "squarehead"})
                           : (std::set<std::string>{"cross_entropy"}));
    }
  std::set<int> measured;
  for (const auto& line : lines.at("born"))
    if (line.contains("held_out")) measured.insert(line.at("step").get<int>());
  EXPECT_EQ(measured, (std::set<int>{0, 4, 8, 12, 16}));
  EXPECT_LT(lines.at("born").back().at("loss").get<double>(),
            lines.at("born").at(1).at("loss").get<double>() - 0.5);
}

// A line per model and document, whose sums are the scores of the model.
void expect_documents_add_up(const base::Json& scores, const std::string& lines) {
  std::map<std::string, std::array<double, 3>> sums;  // tokens, nll, kl by model
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const auto document = base::parse_json(line);
    auto& sum = sums[document.at("model")];
    int part = 0;
    for (const char* key : {"tokens", "nll", "kl"}) sum[part++] += document.at(key).get<double>();
  }
  for (const auto& model : scores.at("models")) {
    const auto& [tokens, nll, kl] = sums.at(model.at("name"));
    const auto& source = model.at("sources").at(0);
    EXPECT_EQ(tokens, source.at("tokens").get<double>());
    EXPECT_NEAR(nll / tokens, source.at("nll").get<double>(), 1e-9);
    EXPECT_NEAR(kl / tokens, source.at("kl").get<double>(), 1e-9);
  }
}

TEST_F(EndToEnd, KeepsWhatEachStageFound) {
  const auto scores = base::parse_json(base::read_file(run_path("stages/scores.json")));
  ASSERT_EQ(scores.at("models").size(), 2U);
  EXPECT_EQ(scores.at("models")[0].at("mean").at("kl"), 0.0);
  EXPECT_GT(scores.at("models")[1].at("mean").at("kl").get<double>(), 0.0);
  expect_documents_add_up(scores, base::read_file(run_path("stages/scores.documents.jsonl")));
  EXPECT_EQ(
      scores.at("models")[1].at("generations").at(0).at("text").get<std::string>().rfind("the package", 0),
      0U);
  const auto born = base::parse_json(base::read_file(run_path("stages/born.json")));
  EXPECT_EQ(born.at("steps"), 16);
  EXPECT_GT(born.at("memory_planned_bytes").get<double>(), 0);
  for (const auto& file : std::filesystem::directory_iterator(run_path("stages"))) {
    if (file.path().extension() != ".json") continue;
    const auto result = base::parse_json(base::read_file(file.path()));
    EXPECT_GT(result.at("seconds").get<double>(), 0) << file.path();
    EXPECT_GT(result.at("peak_tensor_bytes").get<double>(), 0) << file.path();
    EXPECT_GT(result.at("process_peak_bytes").get<double>(), result.at("peak_tensor_bytes").get<double>());
  }
}

TEST_F(EndToEnd, ModelsAreReadAgainByTheOtherCommands) {
  std::map<std::string, base::Json> infos;
  for (const char* stage : {"born", "tuned", "pruned", "sparse", "student"}) {
    const std::string model = "run/models/" + std::string(stage);
    const Finished info = project_->run({"info", model, "--json"});
    ASSERT_EQ(info.code, 0) << info.err;
    infos[stage] = base::Json::parse(info.out);
    const Finished eval = project_->run({"eval", model, "--text", "text.txt", "--context", "64", "--json"});
    ASSERT_EQ(eval.code, 0) << eval.err;
    EXPECT_GT(base::Json::parse(eval.out).at("models")[0].at("mean").at("perplexity").get<double>(), 1);
    const Finished text =
        project_->run({"generate", model, "--prompt", "the", "--max-new-tokens", "4", "--json"});
    ASSERT_EQ(text.code, 0) << text.err;
    EXPECT_EQ(base::Json::parse(text.out).at("ids").size(), 1 + 1 + 4U);
  }
  EXPECT_LE(infos.at("pruned").at("parameters").get<double>(),
            0.95 * infos.at("tuned").at("parameters").get<double>());
  EXPECT_EQ(infos.at("pruned").at("sparsity").at("matrices_2_of_4"), 0);
  EXPECT_GT(infos.at("sparse").at("sparsity").at("matrices_2_of_4").get<int>(), 0);
  EXPECT_EQ(infos.at("student").at("sparsity").at("matrices_2_of_4"),
            infos.at("sparse").at("sparsity").at("matrices_2_of_4"));
}

TEST_F(EndToEnd, StartedAgainDoesNothing) {
  auto before = files_below(run_path());
  const Finished again = project_->run_recipe();

  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, finished_->out);
  auto after = files_below(run_path());
  for (const char* file : {"provenance.json", "report.html"}) {  // they tell of each start
    before.erase(file);
    after.erase(file);
  }
  EXPECT_TRUE(before == after);
}

TEST_F(EndToEnd, StartedAgainNeedsNeitherTextNorConfiguration) {
  fs::rename(project_->path("text.txt"), project_->path("away.txt"));
  const Finished again = project_->run_recipe();
  fs::rename(project_->path("away.txt"), project_->path("text.txt"));
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST_F(EndToEnd, RefusesAnotherRecipeInTheSameDirectory) {
  const auto before = files_below(run_path());
  const Finished other = project_->run_recipe({"--set", "stages.tuned.optim.beta1=0.8"});

  EXPECT_EQ(other.code, 2);
  EXPECT_SAYS(other.err, "stages.tuned.optim.beta1");
  EXPECT_TRUE(files_below(run_path()) == before);
}

TEST_F(EndToEnd, InfoTellsTheFinishedStages) {
  const auto info = base::Json::parse(project_->run({"info", "run", "--json"}).out);
  EXPECT_EQ(info.at("kind"), "run");
  for (const auto& [stage, about] : info.at("stages").items()) EXPECT_EQ(about.at("finished"), true) << stage;
}

TEST(Run, GoesOnWithWhatAnEarlierVersionBeganWithFewerKeys) {
  const TinyProject project;
  project.write_recipe({train_stage(512)});
  ASSERT_EQ(project.run_recipe().code, 0);
  auto saved = base::parse_json(base::read_file(project.path("run/recipe.json")));
  saved.erase("memory_bytes");
  project.write("run/recipe.json", saved.dump());
  std::string yaml = base::read_file(project.path("run/recipe.yaml"));
  const auto line = yaml.find("memory_bytes");
  ASSERT_NE(line, std::string::npos);
  project.write("run/recipe.yaml", yaml.erase(line, yaml.find('\n', line) + 1 - line));
  const Finished again = project.run_recipe();
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_SAYS(again.err, "stage born: finished before");
  const Finished other = project.run_recipe({"--set", "memory_bytes=8G"});
  EXPECT_EQ(other.code, 2);
  EXPECT_SAYS(other.err, "memory_bytes");
}

TEST(Run, DryRunPlansAndChangesNothing) {
  const TinyProject project;
  project.write_recipe(every_kind());
  const auto before = files_below(project.path());
  const Finished dry = project.run_recipe({"--dry-run"});

  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_SAYS(dry.out, "stage born (train): memory plan");
  EXPECT_SAYS(dry.out, "\nstage born: learns from ");
  EXPECT_SAYS(dry.out, ", as if its models were not pruned.\n");
  EXPECT_SAYS(dry.out, "\nin all: about ");
  EXPECT_TRUE(files_below(project.path()) == before);
}

TEST(Run, DoesOneStageAtATime) {
  const TinyProject project;
  project.write_recipe({train_stage(256), finetune_stage("born")});
  const Finished early = project.run_recipe({"--stage", "tuned"});
  EXPECT_EQ(early.code, 2);
  EXPECT_SAYS(early.err, "stage 'born', which is not finished");
  EXPECT_FALSE(fs::exists(project.path("run")));

  EXPECT_EQ(project.run_recipe({"--stage", "born"}).code, 0);
  EXPECT_FALSE(fs::exists(project.path("run/models/tuned")));
  const auto planned = project.run_recipe({"--dry-run"}).out;
  EXPECT_SAYS(planned, "stage born (train): finished before\nstage tuned (finetune): memory plan");
  EXPECT_TRUE(project.run_recipe({"--dry-run", "--stage", "tuned"}).out.starts_with("stage tuned"));
  EXPECT_EQ(project.run_recipe({"--stage", "tuned"}).code, 0);
  EXPECT_TRUE(fs::exists(project.path("run/models/tuned")));
}

TEST(Run, SetOverridesAKeyOfAStageByItsName) {
  const TinyProject project;
  project.write_recipe({train_stage(256)});
  const Finished finished = project.run_recipe({"--set", "stages.born.optim.lr=0.002", "--set",
                                                "stages.born.optim.schedule=constant", "--set",
                                                "stages.born.optim.warmup_fraction=0"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(metrics_of(project.path("run")).back().at("lr"), 0.002);
}

TEST(Generate, BeginsWithoutTheBeginOfTextTokenWhenAsked) {
  const TinyProject project;
  copy_model(project, "m");
  const auto ids = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"generate", "m", "--prompt", "the", "--max-new-tokens", "1", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return base::Json::parse(project.run(arguments).out).at("ids");
  };
  const auto with = ids({}), without = ids({"--no-bos"});
  EXPECT_EQ(with[0], 0);
  EXPECT_EQ(with[1], without[0]);
  EXPECT_EQ(with.size(), without.size() + 1);
}

/// What libgomp says of its settings when it is loaded.
std::string thread_settings(const char* policy) {
  return run({"generate", "models/europa-5m", "--prompt", "The", "--max-new-tokens", "1"}, "", {},
             [=] {
               ::unsetenv("GOMP_SPINCOUNT");
               ::unsetenv("OMP_WAIT_POLICY");
               if (policy) ::setenv("OMP_WAIT_POLICY", policy, 1);
               ::setenv("OMP_DISPLAY_ENV", "true", 1);
             })
      .err;
}

TEST(Threads, SleepWhileTheyWaitUnlessTheEnvironmentHasAPolicy) {
  EXPECT_SAYS(thread_settings(nullptr), "OMP_WAIT_POLICY = 'PASSIVE'");
  EXPECT_SAYS(thread_settings("active"), "OMP_WAIT_POLICY = 'ACTIVE'");
}

TEST(EndToEndSearched, ShapesThatDifferByLayerGoThroughEveryStage) {
  const TinyProject project;
  const auto calibration = [](const std::string& tokens) {
    return "data: [text], calibration_tokens: " + tokens + ", sequence_length: 64";
  };
  project.write_recipe(
      {train_stage(512),
       "{name: pruned, kind: prune, from: born, target: {parameters: 97%}, units: per_layer, width_multiple: "
       "16, " +
           calibration("2k") + ", search: {method: tabu, budget_tokens: 60k, tolerance: 10%}}",
       "{name: sparse, kind: sparsify, from: pruned, method: sparse_gpt, mask: exact, polish: true, " +
           calibration("6k") + "}",
       "{name: student, kind: distill, from: sparse, teacher: born, data: [text], tokens: 512, " + kPacking +
           "}",
       "{name: scores, kind: evaluate, models: [born, pruned, student], data: [text], windows: rolling, "
       "context: 64}"});
  const Finished finished = project.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto scores = base::parse_json(base::read_file(project.path("run/stages/scores.json")));
  ASSERT_EQ(scores.at("sparsity").size(), 1U) << "what sparsity left after distillation";
  const auto& change = scores.at("sparsity")[0];
  EXPECT_EQ(change.at("before"), "pruned");
  EXPECT_EQ(change.at("model"), "student");
  const auto nll = [&](int model) { return scores.at("models")[model].at("mean").at("nll").get<double>(); };
  EXPECT_NEAR(change.at("nll").get<double>(), nll(2) - nll(1), 1e-9);
  EXPECT_NEAR(change.at("objective").get<double>(),
              change.at("nll").get<double>() + change.at("kl").get<double>(), 1e-9);
  const auto config = base::parse_json(base::read_file(project.path("run/models/student/config.json")));
  EXPECT_EQ(config.at("model_type"), "retort") << config.dump();
  const auto pruned = base::parse_json(base::read_file(project.path("run/stages/pruned.json")));
  EXPECT_EQ(pruned.at("method"), "tabu");
  EXPECT_TRUE(pruned.at("starts").contains("one_shot"));
  EXPECT_LE(pruned.at("tokens_spent").get<double>(), 60'000);
  EXPECT_SAYS(finished.out, "student ");
  EXPECT_EQ(
      project.run({"generate", "run/models/student", "--prompt", "the package", "--max-new-tokens", "5"})
          .code,
      0);
  EXPECT_EQ(project.run({"info", "run/models/student"}).code, 0);
}

// Two searches and their finalists; the one that is taken goes on as it was found, before its distillation.
TEST(EndToEndSearched, AShortDistillationChoosesAmongFinalistsAndGoesOnAfterAStop) {
  const TinyProject project;
  const auto pruned = [](const std::string& name, const std::string& method) {
    return "{name: " + name +
           ", kind: prune, from: born, target: {parameters: 97%}, units: per_layer, width_multiple: 16, "
           "data: "
           "[text], calibration_tokens: 2k, sequence_length: 64, search: {method: " +
           method + ", budget_tokens: 60k, tolerance: 10%, finalists: 2}}";
  };
  project.write_recipe(
      {train_stage(512), pruned("by_tabu", "tabu"), pruned("by_chance", "random"),
       "{name: chosen, kind: select, models: [by_tabu, by_chance], teacher: born, data: [text], "
       "tokens: 512, evaluate_tokens: 512, " +
           kPacking + "}",
       "{name: scores, kind: evaluate, models: [born, chosen], data: [text], windows: rolling, "
       "context: 64}"});
  const Finished finished = project.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.err, "a select stage chooses by");
  const auto result_of = [&](const char* stage) {
    return base::parse_json(base::read_file(project.path("run/stages") / (std::string(stage) + ".json")));
  };
  const auto chosen = result_of("chosen");
  const auto& models = chosen.at("models");
  std::size_t expected = 2;
  for (const char* stage : {"by_tabu", "by_chance"}) {
    const auto finalists = result_of(stage).at("finalists");
    EXPECT_GE(finalists.size(), 2U);
    for (const auto& finalist : finalists) EXPECT_GT(finalist.at("seconds").get<double>(), 0);
    EXPECT_GT(result_of(stage).at("cost_before").at("parameters"), finalists.at(0).at("parameters"));
    const bool kept = std::filesystem::exists(project.path("run/stages") / stage / "finalists/2/config.json");
    EXPECT_EQ(kept, finalists.at(1).at("tied").get<bool>()) << stage;
    expected += kept ? 1 : 0;
  }
  ASSERT_EQ(models.size(), expected);
  const base::Json* taken = nullptr;
  for (const auto& model : models) {
    EXPECT_GT(model.at("seconds").get<double>(), 0);
    EXPECT_GE(model.at("behind").get<double>(), 0);
    if (model.at("name") == chosen.at("chosen")) taken = &model;
  }
  ASSERT_NE(taken, nullptr);
  EXPECT_TRUE(taken->at("tied").get<bool>());
  const auto weights = [&](const std::filesystem::path& directory) {
    return base::read_file(project.path() / directory / "model.safetensors");
  };
  EXPECT_EQ(weights("run/models/chosen"), weights(taken->at("directory").get<std::string>()));
  EXPECT_NE(weights("run/models/chosen"), weights("run/models/" + taken->at("student").get<std::string>()));

  // What was distilled before a stop is not distilled again.
  std::filesystem::remove(project.path("run/stages/chosen.json"));
  std::filesystem::remove_all(project.path("run/models/chosen"));
  const auto steps = metrics_of(project.path("run")).size();
  ASSERT_EQ(project.run_recipe().code, 0);
  EXPECT_EQ(metrics_of(project.path("run")).size(), steps);
  for (std::size_t i = 0; i < models.size(); ++i)
    EXPECT_EQ(result_of("chosen").at("models")[i].at("nll"), models[i].at("nll")) << "the same students";

  // A student of another model is not taken for this one's.
  std::filesystem::remove(project.path("run/stages/chosen.json"));
  auto student = result_of("chosen.1");
  student["started_from"] = "something else";
  for (const char* key : {"output_files", "checksum"})
    student.erase(key);  // else the result is a damaged one
  project.write("run/stages/chosen.1.json", student.dump());
  ASSERT_EQ(project.run_recipe().code, 0);
  EXPECT_TRUE(result_of("chosen.1").at("started_from").is_array()) << "distilled again";
  EXPECT_EQ(result_of("chosen").at("models")[0].at("nll"), models[0].at("nll"));
}

// The second pruning takes features from the first one's; SquareHead knows only where both came from.
TEST(EndToEndSearched, WarnsWhereSquareHeadCanOnlyPool) {
  const TinyProject project;
  copy_model(project, "m");
  const auto narrower = [](const std::string& name, const std::string& from, const std::string& parameters) {
    return "{name: " + name + ", kind: prune, units: uniform, from: " + from +
           ", data: [text], target: {parameters: " + parameters +
           "}, blocks: false, heads: false, channels: false, hidden: true, width_multiple: 8, "
           "calibration_tokens: 2k, sequence_length: 64}";
  };
  const auto distilled = [](const std::string& name, const std::string& teacher,
                            const std::string& keys = "") {
    return "{name: " + name + ", kind: distill, from: twice, teacher: " + teacher +
           ", data: [text], tokens: 128, packing: {sequence_length: 64}, batch: {sequences: 1}" + keys + "}";
  };
  const std::string squarehead = ", loss: [{kind: squarehead}]";
  project.write_recipe({narrower("once", "./m", "80%"), narrower("twice", "once", "80%"),
                        distilled("of_all", "./m", squarehead), distilled("of_once", "once", squarehead),
                        distilled("by_logits", "once", ", loss: [{kind: kl_divergence}]")});
  const Finished finished = project.run_recipe();
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_SAYS(finished.err,
              "stage 'of_once': the student's 16 hidden features were kept of 32, the teacher has 24");
  for (const char* silent : {"of_all", "by_logits"})
    EXPECT_EQ(finished.err.find(std::string("stage '") + silent + "': the student's"), std::string::npos)
        << finished.err;
}

TEST(EndToEndSearched, SelectNeedsDocumentsToCompareBeforeTheRun) {
  const TinyProject project;
  project.write_recipe({train_stage(512),
                        "{name: chosen, kind: select, models: [born], teacher: born, data: [text], "
                        "tokens: 512, evaluate_tokens: 1, " +
                            kPacking + "}"});
  const Finished finished = project.run_recipe();
  EXPECT_EQ(finished.code, 3) << finished.err;
  EXPECT_SAYS(finished.err, "at least two held-out documents of 'text'");
  EXPECT_FALSE(std::filesystem::exists(project.path("run"))) << "said before the run begins";
  project.write_recipe({train_stage(512)});
  ASSERT_EQ(project.run_recipe().code, 0);
  // The models are there: the largest distillation is planned before anything begins.
  project.write_recipe(
      {"{name: chosen, kind: select, models: [run/models/born], teacher: run/models/born, data: [text], "
       "tokens: 512, " +
       kPacking + "}"});
  EXPECT_SAYS(project.run({"run", "recipe.yaml", "--dry-run", "--run-dir", "other"}).out,
              "stage chosen (select): memory plan");
}

}  // namespace
}  // namespace retort::test
