// What text is, what of it is counted, and what is refused because nothing of it can be.
#include <gtest/gtest.h>

#include "cli/refusal.h"
#include "retort/base/error.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/outside_data.h"

namespace retort::test {
namespace {

base::Json evaluated(const Finished& finished) {
  EXPECT_EQ(finished.code, 0) << finished.err;
  return finished.code == 0 ? base::Json::parse(finished.out).at("models")[0].at("sources")[0] : base::Json();
}

// A model whose config.json has no begin-of-text token, as Trainer of transformers saves it.
void copy_model_without_bos(const TinyProject& project, const std::filesystem::path& name) {
  copy_model(project, name);
  const auto file = project.path(name / "config.json");
  auto config = base::Json::parse(base::read_file(file));
  ASSERT_EQ(config.at("bos_token_id"), 0);
  config["bos_token_id"] = nullptr;
  project.write(name / "config.json", config.dump(2));
}

// The oracle ran the program that docs/commands.md shows.
TEST(MeasuredText, HasTheLossThatTheProgramInTheDocumentationPrints) {
  const auto folder = oracles("eval");
  const auto expected = base::Json::parse(base::read_file(folder / "snippet.json"));
  const auto found =
      evaluated(run({"eval", "models/europa-5m", "--text", (folder / "texts" / "*.txt").string(), "--context",
                     std::to_string(expected.at("context").get<int>()), "--json"}));
  const double loss = expected.at("loss");
  EXPECT_NEAR(found.at("nll").get<double>(), loss, 1e-5 * loss);
}

// A model that the oracle made of models/europa-5m, with its tokenizer.
std::string model_of_oracle(const TinyProject& project, const char* name) {
  const auto directory = project.path(name);
  std::filesystem::copy(oracles("eval") / name, directory);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy(source() / "models" / "europa-5m" / file, directory / file);
  return directory.string();
}

TEST(MeasuredText, MayBeLongerThanTheContextOfDynamicPositions) {
  const TinyProject project;
  const auto model = model_of_oracle(project, "stretched");
  const auto expected = base::Json::parse(base::read_file(oracles("eval") / "stretched.json"));
  const auto text = (oracles("eval") / "text.jsonl").string();
  for (const auto& [windows, more] :
       {std::pair("fixed", std::vector<std::string>{}), {"rolling", {"--rolling"}}}) {
    std::vector<std::string> arguments{"eval", model, "--text", text, "--context", "100", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const double loss = expected.at(windows).at("nll");
    EXPECT_NEAR(evaluated(project.run(arguments)).at("nll").get<double>(), loss, 1e-4 * loss) << windows;
  }
  const auto made = project.run({"generate", model, "--prompt", "The", "--max-new-tokens", "100", "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_GT(base::Json::parse(made.out).at("ids").size(), 64U);
}

// Every row of this head that is no token is like a frequent token, only more so.
TEST(MeasuredText, IsNeverMadeOfRowsOfAHeadWithoutAToken) {
  const TinyProject project;
  const auto model = model_of_oracle(project, "padded");
  for (const char* temperature : {"0", "1"}) {
    const auto made = project.run({"generate", model, "--prompt", "The", "--max-new-tokens", "64",
                                   "--temperature", temperature, "--json"});
    ASSERT_EQ(made.code, 0) << made.err;
    for (const int id : base::Json::parse(made.out).at("ids")) EXPECT_LT(id, 4096);
  }
  project.write_recipe(
      {"{name: scores, kind: evaluate, models: [./padded], data: [text], context: 64, "
       "tokens: 1k, prompt: The, max_new_tokens: 32}"});
  const auto finished = project.run_recipe();
  EXPECT_EQ(finished.code, 0) << finished.err;
}

TEST(MeasuredText, IsUtf8WhereverItComesFrom) {
  const TinyProject project;
  copy_model(project, "m");
  std::string latin1;
  for (int i = 0; i < 40; ++i) latin1 += "un caf\xE9 au lait\n\n";
  project.write("latin1.txt", latin1);
  project.write("utf16.txt", std::string("\xFF\xFEh\0i\0", 6));
  const char* where = "latin1.txt, byte 6: expected text in UTF-8, found the byte 0xE9; convert the file";
  expect_refusal(project, {"eval", "m", "--text", "latin1.txt", "--context", "64"}, 3, where);
  expect_refusal(project, {"tokenize", "m", "latin1.txt"}, 3, where);
  expect_refusal(project, {"eval", "m", "--text", "utf16.txt", "--context", "64"}, 3, "text in UTF-16");
  expect_refusal(project, {"eval", "m", "--text", "text.txt", "--separator", "\xE9"}, 2,
                 "separator in UTF-8");
  expect_refusal(project, {"generate", "m", "--prompt", "caf\xE9"}, 2, "prompt: expected text in UTF-8");
  const auto piped = run({"tokenize", "models/europa-5m"}, latin1);
  EXPECT_EQ(piped.code, 3);
  EXPECT_SAYS(piped.err, "byte 6: expected text in UTF-8");
  project.write_recipe({finetune_stage("./m")});
  const std::vector<std::string> run_latin1{"run",     "recipe.yaml", "--run-dir",
                                            "new/run", "--set",       "data.text.path=latin1.txt"};
  expect_refusal(project, run_latin1, 3, where);
}

TEST(MeasuredText, ThatIsNotUtf8IsSkippedAndCountedAloudWhenAsked) {
  const TinyProject project;
  copy_model(project, "m");
  project.write("text.txt", base::read_file(project.path("text.txt")) + "caf\xE9\n\nno\xEBl\n\n");
  project.write_recipe({finetune_stage("./m")});
  EXPECT_EQ(project.run_recipe().code, 3);
  const auto skipping = project.run_recipe({"--set", "data.text.skip_bad_lines=true"});
  EXPECT_EQ(skipping.code, 0) << skipping.err;
  EXPECT_SAYS(skipping.err, "tuned: 2 bad lines or documents of data.text were skipped");
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// The text of a calibration stage is read before the run, and by the stage.
TEST(MeasuredText, OfCalibrationIsSkippedAndCountedAloudOnce) {
  const TinyProject project;
  copy_model(project, "m");
  project.write("text.txt", base::read_file(project.path("text.txt")) + "caf\xE9\n\nno\xEBl\n\n");
  for (const char* kind : {"profile", "sparsify"}) {
    project.write_recipe(
        {base::join("{name: ", kind, ", kind: ", kind,
                    ", from: ./m, data: [text], calibration_tokens: 2k, sequence_length: 64}")});
    const auto skipping =
        project.run({"run", "recipe.yaml", "--run-dir", kind, "--set", "data.text.skip_bad_lines=true"});
    EXPECT_EQ(skipping.code, 0) << skipping.err;
    EXPECT_EQ(count(skipping.err, "of data.text were skipped"), 1U) << skipping.err;
  }
}

// As fine-tuning programs leave a model: a padding token that was added, and an embedding that has no row for
// it.
TEST(MeasuredText, MayBeThatOfAModelThatLacksTheRowOfASpecialToken) {
  const TinyProject project;
  copy_model(project, "m");
  copy_model(project, "padded");
  auto tokenizer = base::Json::parse(base::read_file(project.path("padded/tokenizer.json")));
  auto token = tokenizer.at("added_tokens").at(0);
  token.update({{"id", 4096}, {"content", "[PAD]"}, {"special", true}});
  tokenizer["added_tokens"].push_back(token);
  project.write("padded/tokenizer.json", tokenizer.dump());
  const auto nll_of = [&](const char* model) {
    return evaluated(project.run({"eval", model, "--text", "text.txt", "--context", "64", "--json"}))
        .at("nll");
  };
  EXPECT_EQ(nll_of("padded"), nll_of("m"));
  EXPECT_SAYS(project.run({"info", "padded"}).out,
              "the special token \"[PAD]\" (id 4096) has no row among the model's 4096");
  project.write("text.txt", base::read_file(project.path("text.txt")) + "\n\nand [PAD] in writing\n\n");
  const auto refused = project.run({"eval", "padded", "--text", "text.txt", "--context", "64"});
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_SAYS(refused.err, "found \"[PAD]\" (id 4096 of 4096 rows)");
}

TEST(MeasuredText, HasNoByteOrderMark) {
  const TinyProject project;
  copy_model(project, "m");
  project.write("marked.txt", "\xEF\xBB\xBF" + base::read_file(project.path("text.txt")));
  const auto loss_of = [&](const char* file) {
    return evaluated(project.run({"eval", "m", "--text", file, "--context", "64", "--json"}));
  };
  const auto marked = loss_of("marked.txt"), plain = loss_of("text.txt");
  EXPECT_EQ(marked.at("nll"), plain.at("nll"));
  EXPECT_EQ(marked.at("bytes"), plain.at("bytes"));
}

// Documents of one token each, and a model that has nothing to stand before them.
TEST(MeasuredText, WithNothingToPredictIsRefusedByEveryStage) {
  const TinyProject project;
  copy_model_without_bos(project, "m");
  copy_model_without_bos(project, "n");
  std::string letters;
  for (int i = 0; i < 200; ++i) letters += std::string(1, static_cast<char>('a' + i % 26)) + "\n";
  project.write("letters.txt", letters);
  project.write("letter.txt", "a");
  const std::string source = ", data: [letters], ", small = "calibration_tokens: 256, sequence_length: 32}",
                    trains =
                        source +
                        "tokens: 512, packing: {sequence_length: 32, bos: false}, batch: {sequences: 2}}";
  for (const auto& stage :
       {"{name: s, kind: train, config: config.json, tokenizer: models/europa-5m" + trains,
        "{name: s, kind: finetune, from: ./m" + trains,
        "{name: s, kind: distill, from: ./m, teacher: ./m" + trains,
        "{name: s, kind: select, models: [./m, ./n], teacher: ./m" + trains,
        "{name: s, kind: profile, from: ./m" + source + small,
        "{name: s, kind: prune, from: ./m, target: {parameters: 90%}" + source + small,
        "{name: s, kind: sparsify, from: ./m" + source + small}) {
    SCOPED_TRACE(stage);
    project.write(
        "recipe.yaml",
        "version: 1\ndata:\n  letters: {path: letters.txt, separator: \"\\n\", held_out: {every: 10}}\n"
        "stages:\n  - " +
            stage + "\n");
    expect_refusal(project, {"run", "recipe.yaml", "--run-dir", "new/run"}, 3,
                   "source 'letters': expected documents with a token to predict");
  }
  expect_refusal(project, {"eval", "m", "--text", "letter.txt", "--context", "64"}, 3,
                 "expected documents with a token to predict");
}

TEST(MeasuredText, BeginsWithTheTokenThatTheModelHasAndTheRunSaysWhich) {
  const TinyProject project;
  copy_model(project, "m");
  copy_model_without_bos(project, "q");
  const auto distill = [](const std::string& model) {
    return "{name: healed, kind: distill, from: tuned, teacher: " + model +
           ", data: [text], tokens: 256, packing: {sequence_length: 64}, batch: {sequences: 2}}";
  };
  const std::string scores =
      "{name: scores, kind: evaluate, models: [healed, tuned], data: [text], context: 64, teacher: ";
  for (const auto& [model, said, id] :
       {std::tuple("./m",
                   "stage 'tuned': documents begin with the begin-of-text token \"<|endoftext|>\" (id 0)",
                   base::Json(0)),
        {"./q", "stage 'tuned': documents begin with no begin-of-text token, because the model has none",
         base::Json(nullptr)}}) {
    project.write_recipe({finetune_stage(model), distill(model), scores + model + "}"});
    const auto directory = std::string("run") + (model + 2);
    const auto dry = project.run({"run", "recipe.yaml", "--run-dir", directory, "--dry-run"});
    EXPECT_SAYS(dry.err, said);
    const auto finished = project.run({"run", "recipe.yaml", "--run-dir", directory});
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_SAYS(finished.err, said);
    const auto json_of = [&](const std::string& file) {
      return base::Json::parse(base::read_file(project.path(directory) / file));
    };
    for (const char* stage : {"tuned", "healed"}) {
      EXPECT_EQ(json_of(base::join("stages/", stage, ".json")).at("begin_of_text"), id);
      EXPECT_EQ(json_of(base::join("models/", stage, "/retort.json")).at("provenance").at("begin_of_text"),
                id);
    }
  }
  project.write_recipe({finetune_stage("./q")});
  expect_refusal(project,
                 {"run", "recipe.yaml", "--run-dir", "new/run", "--set", "stages.tuned.packing.bos=true"}, 2,
                 "leave bos out");
}

}  // namespace
}  // namespace retort::test
