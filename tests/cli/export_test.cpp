// What is handed out: it loads, it answers as the model did, and nothing is left where it could not be made.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/refusal.h"
#include "retort/base/files.h"
#include "support/message_of.h"
#include "support/own_disk.h"

namespace retort::test {
namespace {

namespace fs = std::filesystem;
using base::Json;

class Export : public testing::Test {
 protected:
  Export() { copy_model(project_, "m"); }

  Finished exported(const std::string& program, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"export", "m", "--for", program, "--out", "out", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return project_.run(all);
  }
  Json certificate_of(const Finished& finished) const {
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.code == 0 ? base::parse_json(finished.out, {.max_bytes = std::size_t{1} << 24}) : Json();
  }
  std::string greedy(const std::string& model) const {
    const auto made = project_.run({"generate", model, "--prompt", "The Debian project", "--dtype", "fp32",
                                    "--max-new-tokens", "16", "--json"});
    EXPECT_EQ(made.code, 0) << made.err;
    return base::parse_json(made.out).at("answer");
  }
  void expect_refused(const std::vector<std::string>& arguments, int code, const std::string& culprit) const {
    expect_refusal(project_, arguments, code, culprit);
  }

  TinyProject project_;
};

TEST_F(Export, OfEveryTypeIsCertifiedAndReadAgain) {
  const Json whole = certificate_of(exported("llama.cpp", {"--type", "f32"}));
  EXPECT_EQ(whole["model"], "m-F32.gguf");
  EXPECT_EQ(whole["checks"]["logits"]["largest_difference"], 0);
  EXPECT_EQ(whole["checks"]["greedy"]["equal"], 64);
  EXPECT_EQ(greedy("out/m-F32.gguf"), greedy("m"));
  double before = 0;
  for (const char* type : {"q8_0", "q5_0", "Q4_0"}) {
    fs::remove_all(project_.path("out"));
    const Json checks = certificate_of(exported("llama.cpp", {"--type", type}))["checks"];
    EXPECT_EQ(checks["tokens"]["equal"], true);
    EXPECT_GT(checks["logits"]["mean_kl"].get<double>(), before) << type << " loses more than the one before";
    before = checks["logits"]["mean_kl"];
  }
}

TEST_F(Export, TakesTheTypesOfAnotherFile) {
  certificate_of(exported("llama.cpp", {"--type", "q8_0"}));
  fs::rename(project_.path("out"), project_.path("first"));
  const Json again = certificate_of(project_.run({"export", "first/m-Q8_0.gguf", "--for", "llama.cpp",
                                                  "--like", "first/m-Q8_0.gguf", "--out", "out", "--json"}));
  EXPECT_EQ(again["checks"]["logits"]["largest_difference"], 0) << "Q8_0 of values of Q8_0 are those values";
  EXPECT_GT(again["like"]["kept"].get<std::int64_t>(), 0);
  EXPECT_EQ(again["like"]["kept"], again["like"]["quantised"]);
  const auto bytes = [&](const char* file) {
    return static_cast<std::int64_t>(fs::file_size(project_.path(file)));
  };
  EXPECT_NEAR(bytes("out/m-Q8_0-mixed.gguf"), bytes("first/m-Q8_0.gguf"), 64) << "but for its name";
}

TEST_F(Export, OfPartsIsReadByTheFirst) {
  const Json certificate = certificate_of(exported("llama.cpp", {"--type", "f32", "--max-part-mb", "0.2"}));
  const std::string first = certificate["model"];
  EXPECT_NE(first.find("-00001-of-"), std::string::npos) << first;
  EXPECT_GE(certificate["files"].size(), 3U) << "two parts and a card at least";
  EXPECT_EQ(greedy("out/" + first), greedy("m"));
}

TEST_F(Export, OfBlocksThatDifferLoadsEverywhere) {
  project_.write_recipe(
      {train_stage(128),
       "{name: less, kind: prune, from: born, target: {parameters: 97%}, units: per_layer, "
       "width_multiple: 16, data: [text], calibration_tokens: 2k, sequence_length: 64, search: {method: "
       "greedy}}"});
  const auto run = project_.run_recipe();
  ASSERT_EQ(run.code, 0) << run.err;
  const auto before = greedy("run/models/less");
  for (const char* program : {"transformers", "llama.cpp"}) {
    const auto made =
        project_.run({"export", "run/models/less", "--for", program, "--out", program, "--json"});
    ASSERT_EQ(made.code, 0) << made.err;
    const Json certificate = base::parse_json(made.out, {.max_bytes = std::size_t{1} << 24});
    EXPECT_LE(certificate["checks"]["logits"]["largest_difference"].get<double>(), 1e-3);
    EXPECT_EQ(greedy(std::string(program) + "/" + certificate["model"].get<std::string>()), before);
  }
  const auto card = base::read_file(project_.path("transformers/README.md"));
  EXPECT_SAYS(card, "| | this model | that it comes from |");
  EXPECT_SAYS(card, "| `born` | `train` | `text` |");
  EXPECT_SAYS(card, "| `less` | `prune` | `text` |");
  const auto config = base::read_file(project_.path("transformers/config.json"));
  EXPECT_EQ(config.find("RetortForCausalLM"), std::string::npos) << config;
  EXPECT_SAYS(base::read_file(project_.path("llama.cpp/README.md")), " to ") << "blocks keep their sizes";
}

TEST_F(Export, ForOllamaHasAModelfile) {
  certificate_of(exported("ollama"));
  const auto text = base::read_file(project_.path("out/Modelfile"));
  EXPECT_EQ(text.rfind("FROM ./m-", 0), 0U) << text;
  EXPECT_SAYS(text, "PARAMETER stop \"<|endoftext|>\"");
  EXPECT_SAYS(text, "TEMPLATE") << "a model without a chat template";
  EXPECT_SAYS(base::read_file(project_.path("out/README.md")), "ollama create my-model -f Modelfile");
}

TEST_F(Export, IsVerifiedUntilSomethingChanges) {
  certificate_of(exported("llama.cpp"));
  const auto sound = project_.run({"verify", "out", "--json"});
  ASSERT_EQ(sound.code, 0) << sound.err;
  EXPECT_EQ(base::parse_json(sound.out, {.max_bytes = std::size_t{1} << 24})["source"]["compared"], true);

  fs::rename(project_.path("m"), project_.path("gone"));
  const auto alone = project_.run({"verify", "out", "--json"});
  ASSERT_EQ(alone.code, 0) << "years later the model that it was made from may be gone: " << alone.err;
  EXPECT_EQ(base::parse_json(alone.out, {.max_bytes = std::size_t{1} << 24})["source"]["compared"], false);

  project_.write("out/more.txt", "x");
  expect_refused({"verify", "out"}, 17, "file \"more.txt\" was added after the certificate");
  fs::remove(project_.path("out/more.txt"));
  auto bytes = base::read_file(project_.path("out/m-F32.gguf"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  project_.write("out/m-F32.gguf", bytes);
  expect_refused({"verify", "out"}, 17, "file \"m-F32.gguf\" has other bytes");
  fs::remove(project_.path("out/m-F32.gguf"));
  expect_refused({"verify", "out"}, 17, "file \"m-F32.gguf\" is missing");
}

TEST_F(Export, ACertificateThatSaysAnotherAnswerIsRefused) {
  certificate_of(exported("llama.cpp"));
  const auto path = project_.path("out/certificate.json");
  Json certificate = base::parse_json(base::read_file(path), {.max_bytes = std::size_t{1} << 24});
  certificate["recorded"]["perplexity"] = certificate["recorded"]["perplexity"].get<double>() * 1.01;
  project_.write("out/certificate.json", certificate.dump());
  expect_refused({"verify", "out"}, 17, "other than those that were certified");
  project_.write("out/certificate.json", "{\"format\": 9}");
  expect_refused({"verify", "out"}, 17, "expected a certificate of format 1");
  certificate["recorded"]["perplexity"] = "much";
  project_.write("out/certificate.json", certificate.dump());
  expect_refused({"verify", "out"}, 17, "expected a certificate of format 1");
  certificate["recorded"]["perplexity"] = 1.0;
  certificate["model"] = "../m";
  project_.write("out/certificate.json", certificate.dump());
  expect_refused({"verify", "out"}, 17, "expected a certificate of format 1");
  project_.write("out/certificate.json", "{");
  expect_refused({"verify", "out"}, 17, "not sound JSON");
  expect_refused({"verify", "m"}, 17, "expected the certificate of what `retort export` wrote");
}

TEST_F(Export, ComparesTheTokenizersOwnTokensAndAConversation) {
  project_.write("m/chat_template.jinja",
                 "{% for m in messages %}<|endoftext|>{{ m.role }}: {{ m.content }}{% endfor %}");
  const Json certificate = certificate_of(exported("llama.cpp"));
  EXPECT_EQ(certificate["checks"]["tokens"]["texts"], 12) << "nine, two with added tokens, a conversation";
  EXPECT_EQ(certificate["checks"]["tokens"]["with_added_tokens"], 2);
  EXPECT_EQ(certificate["checks"]["tokens"]["chat"], true);
  EXPECT_SAYS(base::read_file(project_.path("out/README.md")), "equal on 12 texts, 2 of them with added");
  EXPECT_EQ(project_.run({"verify", "out"}).code, 0);

  Json other = certificate;
  other["recorded"]["chat"] = certificate["recorded"]["chat"].get<std::string>() + " ";
  project_.write("out/certificate.json", other.dump());
  fs::rename(project_.path("m"), project_.path("gone"));
  expect_refused({"verify", "out"}, 17,
                 "the chat template gives a text other than those that were certified");
}

TEST_F(Export, RefusesATokenThatTakesSpacesAlongWhichGgufCannotSay) {
  const auto path = project_.path("m/tokenizer.json");
  Json tokenizer = base::parse_json(base::read_file(path), {.max_bytes = std::size_t{1} << 24});
  tokenizer["added_tokens"][0]["rstrip"] = true;
  project_.write("m/tokenizer.json", tokenizer.dump());
  expect_refused({"export", "m", "--for", "llama.cpp", "--out", "out"}, 17,
                 "changes the ids of \"One <|endoftext|> two<|endoftext|>three");
  EXPECT_FALSE(fs::exists(project_.path("out")));
  EXPECT_EQ(certificate_of(exported("transformers"))["checks"]["tokens"]["equal"], true);
}

TEST_F(Export, IsRefusedBeforeAnythingIsWritten) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& culprit) {
    std::vector<std::string> all = {"export", "m", "--out", "out"};
    all.insert(all.end(), more.begin(), more.end());
    expect_refused(all, 2, culprit);
  };
  refused({"--for", "lama.cpp"}, "--for is 'lama.cpp', expected transformers, vllm, llama.cpp or ollama");
  refused({"--for", "llama.cpp", "--type", "q9"}, "--type is \"q9\", expected one of");
  refused({"--for", "transformers", "--type", "q8_0"}, "type, like and parts are of GGUF files");
  fs::create_directory(project_.path("out"));
  project_.write("out/mine.txt", "x");
  refused({"--for", "llama.cpp"}, "out is there, expected a new or empty directory");
  fs::remove_all(project_.path("out"));
  project_.write("m/tokenizer.json", "{}");
  expect_refused({"export", "m", "--for", "llama.cpp", "--out", "out"}, 4, "tokenizer.json");
}

TEST_F(Export, AsAStageIsRefusedByTheDryRunAndElseInTheRunDirectory) {
  project_.write(
      "r.yaml",
      "version: 1\nstages:\n  - {name: gguf, kind: export, from: ./m, for: llama.cpp, type: q8_0}\n");
  const auto made = project_.run({"run", "r.yaml", "--run-dir", "run"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_SAYS(made.out, "for llama.cpp: run/stages/gguf/m-Q8_0.gguf, ");
  EXPECT_EQ(project_.run({"verify", "run/stages/gguf"}).code, 0);
  EXPECT_SAYS(project_.run({"run", "r.yaml", "--run-dir", "run"}).err, "stage gguf: finished before");
  project_.write("bad.yaml", "version: 1\nstages:\n  - {name: gguf, kind: export, from: ./m, type: q9}\n");
  expect_refused({"run", "bad.yaml", "--run-dir", "other"}, 2, "--type is \"q9\", expected one of");
}

TEST_F(Export, IsForeseenForTheModelsOfARecipe) {
  project_.write_recipe({train_stage(128), finetune_stage("born")});
  const auto sound = project_.run({"verify", "recipe.yaml", "--for", "llama.cpp", "--json"});
  ASSERT_EQ(sound.code, 0) << sound.err;
  const Json found = base::parse_json(sound.out);
  EXPECT_EQ(found["models"].size(), 2U);
  EXPECT_EQ(found["models"][1]["as"], "GGUF architecture llama");
  EXPECT_FALSE(fs::exists(project_.path("run")));
}

TEST_F(Export, LeavesNothingOnAFullDisk) {
  const fs::path small = project_.path("small");
  fs::create_directory(small);
  RETORT_ON_OWN_DISK_OR_SKIP((OwnDisk{small, "size=256k"}), [&] {
    const auto full =
        project_.run({"export", "m", "--for", "llama.cpp", "--type", "f32", "--out", "small/out"});
    EXPECT_EQ(full.code, 7) << full.err;
    EXPECT_SAYS(full.err, "small/out/m-F32.gguf") << "where the file would be";
    EXPECT_TRUE(fs::is_empty(small)) << full.err;
  });
}

}  // namespace
}  // namespace retort::test
