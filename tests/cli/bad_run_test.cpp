// Runs that cannot succeed: wrong recipes, text that is not what it claims, too little memory, disks that are
// full or may not be written.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>
#include <tuple>

#include "cli/refusal.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/own_disk.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;

class BadRun : public testing::Test {
 protected:
  void SetUp() override { copy_model(project_, "m"); }

  void expect_run_refused(const std::vector<std::string>& more, int code, const std::string& culprit) {
    SCOPED_TRACE(culprit);
    std::vector<std::string> arguments{"run", "recipe.yaml", "--run-dir", "new/run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refusal(project_, arguments, code, culprit);
  }

  OwnDisk disk(const std::string& options, unsigned long flags = 0) {
    fs::create_directories(project_.path("disk"));
    return {project_.path("disk"), options, flags};
  }

  TinyProject project_;
};

struct BadText {
  const char* file;
  std::string content;
  const char* culprit;
  const char* in_a_run;
};

TEST_F(BadRun, EvaluationOnWhatAnotherSourceTeaches) {
  const auto write_recipe = [&](const std::string& stage) {
    project_.write("recipe.yaml",
                   "version: 1\ndata:\n"
                   "  text: {path: text.txt, separator: \"\\n\\n\", held_out: {every: 10}}\n"
                   "  copy: {path: text.txt, separator: \"\\n\\n\", held_out: {every: 15}}\n"
                   "stages:\n  - " +
                       finetune_stage("./m") + "\n  - " + stage + "\n");
  };
  // 14, 44, ... 194; 29, 59, ... are held out of both.
  const char* found = "found 7 held-out documents of data.copy";
  write_recipe(
      "{name: chosen, kind: select, models: [./m, tuned], teacher: ./m, data: [copy], tokens: 1k, "
      "packing: {sequence_length: 64}}");
  expect_run_refused({}, 3, found);
  write_recipe("{name: scores, kind: evaluate, models: [./m, tuned], data: [copy], context: 64}");
  expect_run_refused({}, 3, found);
  const auto seen = project_.run(
      {"run", "recipe.yaml", "--run-dir", "new/run", "--dry-run", "--set", "stages.scores.seen=true"});
  EXPECT_EQ(seen.code, 0) << seen.err;
}

TEST_F(BadRun, TextThatIsNotWhatItClaims) {
  const BadText cases[] = {
      {"bad.jsonl", "{\"text\": \"one two\"}\n{\"text\": \"three\n", "bad.jsonl, line 2, byte 35",
       "bad.jsonl, line 2, byte 35"},
      {"array.jsonl", "{\"text\": \"one two\"}\n[1]\n", "array.jsonl, line 2", "array.jsonl, line 2"},
      {"field.jsonl", "{\"body\": \"one two\"}\n", "expected the key \"text\", found \"body\"",
       "expected the key \"text\", found \"body\""},
      {"bad.txt.zst", "(\xb5/\xfd rubbish that is no frame", "bad.txt.zst: corrupt zstd",
       "bad.txt.zst: corrupt zstd"},
      {"noise.txt.zst", "no zstd at all", "noise.txt.zst: expected zstd data",
       "noise.txt.zst: expected zstd data"},
      {"cut.txt.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03K", 11), "cut.txt.gz", "cut.txt.gz"},
      {"empty.txt", "", "expected documents with text, found none", "expected held-out documents with text"},
  };
  project_.write_recipe({finetune_stage("./m")});
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.file);
    project_.write(bad.file, bad.content);
    expect_refusal(project_, {"eval", "m", "--text", bad.file, "--context", "64", "--per-token", "out.jsonl"},
                   3, bad.culprit);
    expect_run_refused({"--set", std::string("data.text.path=") + bad.file}, 3, bad.in_a_run);
  }
  expect_refusal(project_, {"eval", "m", "--text", "none.txt"}, 3, "'none.txt'");
  expect_refusal(project_, {"tokenize", "m", "none.txt"}, 3, "none.txt");
  expect_run_refused({"--set", "data.text.path=none.txt"}, 3, "'none.txt'");
  expect_run_refused({"--set", "data.text.path=m"}, 3, "found the directory 'm'");
}

TEST_F(BadRun, FilesThatAreNoTextAreNamedBeforeTheFirstStage) {
  project_.write("table.arrow", "ARROW1" + std::string(300, '\x15'));
  project_.write("list.json", "[\n  {\"text\": \"one\"}\n]\n");
  project_.write("good.txt", "some text");
  const auto refused = [&](const std::string& path, const std::string& culprit) {
    project_.write("recipe.yaml",
                   "version: 1\ndata:\n  text: {path: text.txt, separator: \"\\n\\n\"}\n  last: {path: " +
                       path + ", separator: \"\\n\\n\"}\nstages:\n  - " + finetune_stage("./m") +
                       "\n  - {name: s, kind: evaluate, models: [tuned], data: [last], context: 64}\n");
    expect_run_refused({"--dry-run"}, 3, culprit);
  };
  refused("table.arrow", "table.arrow: expected text, found an Arrow file");
  refused("[good.txt, list.json]", "list.json: expected text or JSON lines, found one JSON array");
  expect_refusal(project_, {"tokenize", "m", "table.arrow"}, 3, "found an Arrow file");
}

TEST_F(BadRun, TooFewHeldOutDocumentsAreSaidBeforeTheFirstStageWithWhatToSet) {
  std::string text;
  for (int i = 0; i < 39; ++i) text += "document " + std::to_string(i) + std::string(1500, 'x') + "\n\n";
  project_.write("few.txt", text);
  const auto recipe = [&](const std::string& held_out, const std::string& stage) {
    project_.write("recipe.yaml", "version: 1\ndata:\n  few: {path: few.txt, separator: \"\\n\\n\"" +
                                      held_out + "}\nstages:\n  - " + stage + "\n");
  };
  const std::string evaluate = "{name: s, kind: evaluate, models: [./m], data: [few], context: 64}";
  recipe(", held_out: {fraction: 0.001}", evaluate);
  const auto found = project_.run({"run", "recipe.yaml", "--run-dir", "new/run", "--dry-run"});
  EXPECT_EQ(found.code, 3);
  EXPECT_SAYS(found.err,
              "stage 's': expected held-out documents with text in 'few', found none; set its held_out.");
  // What it says to set helps.
  const std::string marks = "set its held_out.fraction to ";
  const auto at = found.err.find(marks);
  ASSERT_NE(at, std::string::npos) << found.err;
  const auto value = found.err.substr(at + marks.size(), found.err.find(',', at) - at - marks.size());
  recipe(", held_out: {fraction: " + value + "}", evaluate);
  EXPECT_EQ(project_.run({"run", "recipe.yaml", "--run-dir", "new/run", "--dry-run"}).code, 0) << value;

  const std::string select =
      "{name: s, kind: select, models: [./m], teacher: ./m, data: [few], tokens: 512, packing: "
      "{sequence_length: 64}";
  recipe(", held_out: {every: 39}", select + "}");
  expect_run_refused({"--dry-run"}, 3,
                     "expected at least two held-out documents of 'few' in evaluate_tokens (8192), found 1; "
                     "set its held_out.");
  recipe(", held_out: {every: 13}", select + ", evaluate_tokens: 64}");
  expect_run_refused({"--dry-run"}, 3, "found 1; raise evaluate_tokens.");
  recipe(", held_out: {every: 13}", select + "}");
  const auto few = project_.run({"run", "recipe.yaml", "--run-dir", "new/run", "--dry-run"});
  EXPECT_EQ(few.code, 0) << few.err;
  EXPECT_SAYS(few.err, "only 3 held-out documents");
}

TEST_F(BadRun, SettingsThatNoModelCanMeet) {
  project_.write_recipe({finetune_stage("./m")});
  expect_run_refused({"--set", "memory_bytes=1M"}, 6, "available are 1.0 MB");
  expect_run_refused({"--set", "memory_bytes=1M", "--dry-run"}, 6, "available are 1.0 MB");
  expect_run_refused({"--set", "stages.tuned.packing.sequence_length=4k"}, 2,
                     "packing.sequence_length is 4000");
  expect_run_refused({"--set", "stages.tuned.from=./none"}, 4, "./none");
  expect_run_refused({"--device", "cuda"}, 5, "cuda");

  const std::string calibration = ", data: [text], calibration_tokens: 256, sequence_length: ";
  project_.write_recipe(
      {"{name: s, kind: prune, units: uniform, from: ./m" + calibration + "64, target: {parameters: 1%}}"});
  expect_run_refused({}, 2, "target");
  project_.write_recipe(
      {"{name: s, kind: prune, units: uniform, from: ./m" + calibration + "640, target: {parameters: 90%}}"});
  expect_run_refused({}, 2, "sequence_length is 640");
  const std::string enough = ", data: [text], calibration_tokens: 2k, sequence_length: 64";
  project_.write_recipe({"{name: s, kind: sparsify, from: ./m" + enough + ", layers: [knee_proj]}"});
  expect_run_refused({}, 2, "knee_proj");
  expect_run_refused({"--set", "memory_bytes=1M", "--set", "stages.s.layers=[down_proj]"}, 6,
                     "lower calibration_tokens, leave the widest layers out");
  expect_run_refused({"--set", "stages.s.calibration_tokens=9M"}, 3, "source 'text' has only");
  expect_run_refused({"--set", "stages.s.calibration_tokens=64"}, 3, "calibration text 'text': found ");
  project_.write_recipe({"{name: s, kind: evaluate, models: [./m], data: [text], context: 6400}"});
  expect_run_refused({}, 2, "context is 6400");
  project_.write_recipe({train_stage(512)});
  expect_run_refused({"--set", "stages.born.config=none.json"}, 4, "'none.json'");
  expect_run_refused({"--set", "stages.born.tokenizer=none"}, 4, "'none'");
}

TEST_F(BadRun, MistakeOfALaterStageIsSaidBeforeTheFirstBegins) {
  project_.write_recipe({train_stage(100'000), finetune_stage("born"),
                         "{name: s, kind: evaluate, models: [tuned, ./none], data: [text], context: 64}"});
  expect_run_refused({}, 4, "./none");
  project_.write_recipe(
      {train_stage(100'000),
       "{name: s, kind: prune, units: uniform, from: born, data: [text], target: {parameters: 90%}}"});
  expect_run_refused({}, 2, "stage 's': sequence_length is 512");
}

TEST_F(BadRun, RecipeMistakesComeTogether) {
  project_.write_recipe({"{name: s, kind: distill, from: ./m, data: [txt], tokens: -5}",
                         "{name: t, kind: finetune, from: s, data: [text], tokens: 1k, loss: [{kind: "
                         "kl_divergence}], optim: {rl: 1}}"});
  const auto before = files_below(project_.path());
  const Finished finished = project_.run_recipe();
  EXPECT_EQ(finished.code, 2);
  for (const char* mistake :
       {"retort: error: recipe.yaml: 5 mistakes", "recipe.yaml:5: stages.s.teacher: missing",
        "recipe.yaml:5: stages.s.data: 'txt'", "recipe.yaml:5: stages.s.tokens",
        "recipe.yaml:6: stages.t.loss: kl_divergence", "stages.t.optim.rl: unknown key"})
    EXPECT_SAYS(finished.err, mistake);
  EXPECT_TRUE(files_below(project_.path()) == before);
}

TEST_F(BadRun, LossThatIsNotFiniteStopsBeforeTheUpdate) {
  project_.write_recipe({finetune_stage("./m")});
  const Finished finished = project_.run_recipe({"--set", "stages.tuned.optim.lr=1e30"});
  EXPECT_EQ(finished.code, 17) << finished.err;
  EXPECT_SAYS(finished.err, "retort: error: tuned: step 2 (samples 2 to 3)");
  EXPECT_TRUE(fs::is_empty(project_.path("run/models")));
}

TEST_F(BadRun, RunDirectoryThatIsNone) {
  project_.write_recipe({finetune_stage("./m")});
  expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "text.txt"}, 7, "text.txt");
  expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "/proc/none"}, 7, "/proc/none");
}

TEST_F(BadRun, RunDirectoryThatIsDamaged) {
  project_.write_recipe({finetune_stage("./m")});
  fs::create_directory(project_.path("run"));
  project_.write("run/run.json", R"({"kind": "retort run directory", "format": 1})");
  for (const char* recipe : {"", "{", "[]", "{\"dtype\": 3}", "{\"stages\": []}"}) {
    SCOPED_TRACE(recipe);
    project_.write("run/recipe.json", recipe);
    project_.write("run/provenance.json", "{}");
    const auto before = files_below(project_.path("run"));
    const Finished finished = project_.run_recipe();
    EXPECT_TRUE(finished.code == 3 || finished.code == 2) << finished.code << finished.err;
    EXPECT_TRUE(files_below(project_.path("run")) == before);
  }
}

// A run replaces and removes files, so it takes no directory of somebody else; a dry run says the same.
TEST_F(BadRun, RunDirectoryThatHoldsFilesOfTheUser) {
  project_.write_recipe({train_stage(256)});
  project_.write("essay.unfinished-draft.txt", "draft");
  project_.write("metrics.jsonl", "log\n");
  project_.write("report.html", "report");
  fs::create_symlink("nowhere", project_.path("link"));
  for (const auto& [place, code, culprit] : {std::tuple{".", 2, ".: holds files that no run made"},
                                             std::tuple{"m", 2, "m: holds files that no run made"},
                                             std::tuple{"/", 2, "/: holds files that no run made"},
                                             std::tuple{"link", 7, "link: is a link to nowhere"},
                                             std::tuple{"link/run", 7, "link: is a link to nowhere"}})
    for (const auto* more : {"--dry-run", "-q"}) {
      SCOPED_TRACE(place);
      expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", place, more}, code, culprit);
      EXPECT_TRUE(fs::is_symlink(fs::symlink_status(project_.path("link"))));
    }
}

TEST_F(BadRun, ModelInTheRunDirectoryThatNoStageMade) {
  project_.write_recipe({train_stage(256)});
  ASSERT_EQ(project_.run_recipe().code, 0);
  fs::remove(project_.path("run/stages/born.json"));
  project_.write("run/models/born/notes.txt", "precious");
  const std::vector<std::string> run{"run", "recipe.yaml", "--run-dir", "run"};
  expect_refusal(project_, run, 2,
                 "run/models/born/notes.txt: is no file of the model that stage 'born' made");
  fs::remove_all(project_.path("run/models/born"));
  copy_model(project_, "run/models/born");
  auto about = base::Json::parse(files_below(project_.path("run/models/born")).at("retort.json"));
  about["provenance"]["stage"] = "another";
  project_.write("run/models/born/retort.json", about.dump());
  expect_refusal(project_, run, 2, "run/models/born: expected nothing, or the model that stage 'born' made");
  fs::remove_all(project_.path("run/models/born"));
  fs::create_directory_symlink(project_.path("m"), project_.path("run/models/born"));
  expect_refusal(project_, run, 2, "run/models/born: expected nothing, or the model that stage 'born' made");
  fs::remove(project_.path("run/models/born"));
  EXPECT_EQ(project_.run_recipe().code, 0) << "with nothing in its place it goes on from its last checkpoint";
}

TEST_F(BadRun, OutputsThatWouldReplaceFilesOfTheUser) {
  const auto expect_refused = [&](const std::vector<std::string>& more, const std::string& culprit) {
    std::vector<std::string> arguments{"eval", "m", "--text", "text.txt"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refusal(project_, arguments, 2, culprit);
  };
  project_.write("mine.json", "{\"mine\": 1}");
  for (const char* option : {"--per-token", "--per-document"})
    for (const char* file : {"text.txt", "m/model.safetensors", "mine.json"})
      expect_refused({option, file},
                     std::string(file) + ": holds something else than what " + option + " writes");
  expect_refused({"--per-token", "new", "--per-document", "./new"}, "new: is named by --per-token and by");
  expect_refusal(project_, {"bench", "gemm", "m", "--out", "mine.json"}, 2,
                 "mine.json: holds something else than what retort bench writes");
  expect_refusal(project_, {"bench", "kernels", "m", "--out", "text.txt"}, 2,
                 "text.txt: holds something else");
  for (int time = 0; time < 2; ++time) {  // its own files it writes anew
    const Finished finished = project_.run({"eval", "m", "--text", "text.txt", "--per-token", "tokens.jsonl",
                                            "--per-document", "documents.jsonl"});
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
}

TEST_F(BadRun, OutputsThatCannotBeWritten) {
  const std::vector<std::string> eval{"eval", "m", "--text", "text.txt", "--per-token"};
  for (const char* place : {"none/out.jsonl", "/dev/full", "."}) {
    SCOPED_TRACE(place);
    auto arguments = eval;
    arguments.emplace_back(place);
    expect_refusal(project_, arguments, 7, place);
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(BadRun, ReadOnlyDisk) {
  project_.write_recipe({finetune_stage("./m")});
  RETORT_ON_OWN_DISK_OR_SKIP(disk("size=64k", MS_RDONLY), [&] {
    expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "disk"}, 7, "Read-only file system");
    expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "disk/run"}, 7, "Read-only file system");
    expect_refusal(project_, {"eval", "m", "--text", "text.txt", "--per-token", "disk/out"}, 7,
                   "Read-only file system");
  });
}

TEST_F(BadRun, DiskFullBeforeTheRunBegins) {
  project_.write_recipe({finetune_stage("./m")});
  RETORT_ON_OWN_DISK_OR_SKIP(disk("size=8k"), [&] {
    expect_refusal(project_, {"run", "recipe.yaml", "--run-dir", "disk/run"}, 7, "No space left on device");
  });
}

// A model needs 0.9 MB (with its tokenizer), a checkpoint 1.9 MB.
TEST_F(BadRun, DiskFullWhileSavingAModel) {
  project_.write_recipe(
      {"{name: s, kind: sparsify, from: ./m, data: [text], calibration_tokens: 2k, sequence_length: 64}"});
  RETORT_ON_OWN_DISK_OR_SKIP(disk("size=700k"), [&] {
    const Finished full = project_.run({"run", "recipe.yaml", "--run-dir", "disk/run"});
    EXPECT_EQ(full.code, 7) << full.err;
    EXPECT_SAYS(said(full.err), "No space left on device; free some space and start again, nothing was lost");
    const auto left = files_below(project_.path("disk/run"));
    EXPECT_TRUE(left.contains("checkpoints/s/sparse-00002.safetensors")) << "finished blocks are kept";
    for (const auto& [name, content] : left) {
      EXPECT_EQ(name.find("unfinished"), std::string::npos) << name;
      EXPECT_FALSE(name.starts_with("models/")) << name;
    }
    EXPECT_EQ(::mount("tmpfs", project_.path("disk").c_str(), "tmpfs", MS_REMOUNT, "size=32m"), 0);
    const Finished again = project_.run({"run", "recipe.yaml", "--run-dir", "disk/run"});
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_FALSE(fs::exists(project_.path("disk/run/checkpoints/s")));
  });
}

TEST_F(BadRun, DiskFullWhileSavingACheckpointKeepsTheOneBefore) {
  project_.write_recipe({train_stage(1024, ", checkpoint_every_steps: 3")});
  ASSERT_EQ(project_.run_recipe().code, 0);
  const std::string undisturbed = weights_of(project_.path("run"), "born");
  RETORT_ON_OWN_DISK_OR_SKIP(disk("size=3200k"), [&] {
    const Finished full = project_.run({"run", "recipe.yaml", "--run-dir", "disk/run"});
    EXPECT_EQ(full.code, 7) << full.err;
    EXPECT_SAYS(full.err, "warning: born: training goes on without a checkpoint of step 6, the next is ");
    EXPECT_SAYS(said(full.err), "retort: error: ");
    EXPECT_SAYS(full.err, "No space left on device; free some space and start again, nothing was lost");
    const auto left = files_below(project_.path("disk/run"));
    EXPECT_TRUE(left.contains("checkpoints/born/step-00000003/manifest.json"));
    for (const auto& [name, content] : left) EXPECT_EQ(name.find("unfinished"), std::string::npos) << name;
    EXPECT_EQ(::mount("tmpfs", project_.path("disk").c_str(), "tmpfs", MS_REMOUNT, "size=32m"), 0);
    const Finished again = project_.run({"run", "recipe.yaml", "--run-dir", "disk/run"});
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_SAYS(again.err, "going on after step 3 of 8");
    EXPECT_TRUE(weights_of(project_.path("disk/run"), "born") == undisturbed);
  });
}

// Its lineage would name other blocks of that teacher than those that it was cut from.
TEST_F(BadRun, ADistillationByTheLineageFromAnotherTeacherIsRefused) {
  auto deeper = base::parse_json(base::read_file(project_.path("config.json")));
  deeper["num_hidden_layers"] = 4;
  project_.write("deeper.json", deeper.dump());
  std::string teacher = train_stage(128);
  for (const auto& [old, made] : {std::pair{"born", "teacher"}, std::pair{"config.json", "deeper.json"}})
    teacher.replace(teacher.find(old), std::string(old).size(), made);
  for (const char* map : {"surviving", "before_survivor"}) {
    SCOPED_TRACE(map);
    project_.write_recipe(
        {train_stage(128), teacher,
         std::string("{name: student, kind: distill, from: born, teacher: teacher, data: [text], "
                     "tokens: 128, packing: {sequence_length: 64}, batch: {sequences: 2}, loss: "
                     "[{kind: squarehead, layer_map: ") +
             map + "}]}"});
    const Finished finished = project_.run({"run", "recipe.yaml", "--run-dir", map});
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_SAYS(finished.err, "needs a teacher that the student was cut from");
    EXPECT_SAYS(finished.err, "3 blocks");
  }
}

}  // namespace
}  // namespace retort::test
