// What a recipe means when all defaults are filled in.
#include <gtest/gtest.h>

#include <clocale>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {
namespace {

Recipe parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(text, "r.yaml", overrides);
}

/// A key of every kind of value, all away from the defaults.
const std::string kFull = R"(version: 1
device: cuda
dtype: bf16
seed: 18446744073709551615
memory_bytes: 12G
data:
  a: {path: [x.txt, "y*.gz"], separator: "\n\t\u00e9\"'\\", field: body, weight: 2.5, held_out: {every: 50}, skip_bad_lines: true}
  b: {path: "*.jsonl", held_out: {path: h.txt}, chat: true, loss_on: all}
  "no": {path: "true", held_out: {fraction: 0%}}
stages:
  - {name: t, kind: train, config: c.json, tokenizer: tok, data: [a, b, "no"], tokens: 1.5M, seed: 7, recompute: never, head_rows: 64,
     packing: {sequence_length: 64, bos: false, eos: true, attend_across_documents: true, shuffle_documents: 1, shuffle_sequences: 2, cut: whole, too_long: error},
     batch: {sequences: 2, accumulate: 4, wave: 3}, checkpoint_every_steps: 3, keep_checkpoints: 1, evaluate_every_steps: 0,
     optim: {lr: 1e-5, embedding_lr: 2e-7, beta1: 0.8, beta2: 0.9, eps: 1e-9, weight_decay: 0.1, clip_norm: 0, schedule: constant,
             warmup_steps: 0, final_lr_fraction: 0}}
  - {name: f, kind: profile, from: t, data: [a, b], calibration_tokens: 1M, sequence_length: 64, seed: 3}
  - {name: p, kind: prune, from: t, profile: f, data: a, target: {parameters: 3.3M}, channel_ranking: obs, head_ranking: wanda, winsorise_quantile: 1, units: uniform, blocks: false, width_multiple: 8, objective: {kl: 0.5}}
  - {name: s, kind: sparsify, from: ./p, data: [a], pattern: "4:8", method: sparse_gpt, mask: exact, polish: true, share: 60%, layers: [gate_proj, up_proj], blocks: [0, 2], dampening_fraction: 5%}
  - {name: d, kind: distill, from: s, teacher: /m/t, data: [a], tokens: 2e5, shard: {student_ranks: all, teacher_ranks: 4},
     on_policy: {share: 25%, temperature: 0.7, top_p: 0.95, max_new_tokens: 96, prompt_tokens: 32},
     loss: [{kind: kl_divergence, temperature: 0.1, direction: reverse, temperature_squared: false},
            {kind: squarehead, weight: 3, layer_map: surviving, eps: 0}]}
  - {name: e, kind: evaluate, models: [t, d], teacher: d, data: [a], windows: rolling, context: 128, tokens: 1k, prompt: "null", max_new_tokens: 3,
     chat: ["Hello?", [{role: system, content: "Be brief."}, {role: user, content: "null"}]]}
)";

TEST(Resolve, TakesQuestionsAsTextsOrAsMessages) {
  const auto chats = [](const std::string& value) {
    const auto recipe = parse(
        "version: 1\ndata: {a: {path: x}}\nstages:\n  - {name: e, kind: evaluate, models: [./m], data: [a], "
        "chat: " +
        value + "}\n");
    return base::Json(std::get<eval::EvaluateOptions>(recipe.stage("e").options).chats);
  };
  const auto said = [](const char* role, const char* content) {
    return base::Json{{"role", role}, {"content", content}};
  };
  const auto hello = base::Json::array({said("user", "Hello")});
  EXPECT_EQ(chats("Hello"), base::Json::array({hello}));
  EXPECT_EQ(chats("[Hello, Hello]"), base::Json::array({hello, hello}));
  const auto two = base::Json::array({said("system", "x"), said("user", "y")});
  EXPECT_EQ(chats("[{role: system, content: x}, {role: user, content: y}]"), base::Json::array({two}));
  EXPECT_EQ(chats("[Hello, [{role: system, content: x}, {role: user, content: y}]]"),
            base::Json::array({hello, two}));
  for (const char* wrong : {"[[]]", "[{role: user}]", "{a: b}", "[[{role: narrator, content: x}]]",
                            "[[{role: user, content: x}, {role: assistant, content: y}]]", "[[x]]"})
    EXPECT_THROW((void)chats(wrong), base::UsageError) << wrong;
}

TEST(Resolve, HasTheKeysOfConversationsOnlyWithChat) {
  const auto source = [](const std::string& keys) {
    return parse("version: 1\ndata: {a: {path: x.jsonl, " + keys +
                 "}}\nstages:\n  - {name: e, kind: evaluate, models: [./m], data: [a]}\n");
  };
  EXPECT_EQ(source("chat: true").data.front().loss_on, data::LossOn::answers);
  EXPECT_TRUE(to_json(source("chat: true")).at("data").at("a").contains("loss_on"));
  EXPECT_FALSE(to_json(source("chat: false")).at("data").at("a").contains("loss_on"));
  EXPECT_THROW((void)source("loss_on: all"), base::UsageError);
  EXPECT_THROW((void)source("chat: true, separator: x"), base::UsageError);
}

TEST(Resolve, WeighsSourcesByTheirBudgetsOfTokens) {
  const auto recipe = [](const std::string& a, const std::string& tokens) {
    return parse("version: 1\ndata:\n  a: {path: x, " + a +
                 "}\n  b: {path: y}\n  c: {path: z, weight: 3}\nstages:\n" +
                 "  - {name: t, kind: finetune, from: ./m, data: [a, b, c], tokens: " + tokens + "}\n" +
                 "  - {name: e, kind: evaluate, models: [t], data: [a, b]}\n");
  };
  const auto read = recipe("tokens: 200k, epochs: 2", "1M");
  const auto sources = read.sources(read.stages.front());
  EXPECT_DOUBLE_EQ(sources[0].weight, 200'000);
  EXPECT_DOUBLE_EQ(sources[1].weight, 200'000);
  EXPECT_DOUBLE_EQ(sources[2].weight, 600'000);
  EXPECT_EQ(sources[0].epochs, 2);
  EXPECT_DOUBLE_EQ(read.sources(read.stages.back())[1].weight, 1);  // of what trains alone
  EXPECT_THROW((void)recipe("tokens: 200k", "200k"), base::UsageError);
  EXPECT_THROW((void)recipe("tokens: 200k, weight: 2", "1M"), base::UsageError);
  EXPECT_NO_THROW((void)recipe("weight: 2", "200k"));
}

TEST(Resolve, ReadsTheQuickstart) {
  const Recipe recipe = parse(std::string(quickstart()));

  ASSERT_EQ(recipe.stages.size(), 6U);
  const auto& teacher = std::get<train::TrainOptions>(recipe.stage("teacher").options);
  EXPECT_EQ(recipe.stage("teacher").kind, StageKind::finetune);
  EXPECT_EQ(teacher.tokens, 330'000);
  EXPECT_DOUBLE_EQ(teacher.optim.lr, 1e-3);
  EXPECT_DOUBLE_EQ(teacher.optim.embedding_lr, 2e-4);
  ASSERT_EQ(teacher.losses.size(), 1U);
  EXPECT_DOUBLE_EQ(std::get<prune::PruneOptions>(recipe.stage("pruned").options).target.parameters_fraction,
                   0.75);
  const auto& student = std::get<train::TrainOptions>(recipe.stage("student").options);
  const auto& ce_only = std::get<train::TrainOptions>(recipe.stage("ce_only").options);
  ASSERT_EQ(student.losses.size(), 2U);
  EXPECT_DOUBLE_EQ(student.losses[1].temperature, 1.0);
  EXPECT_EQ(student.tokens, ce_only.tokens);
  EXPECT_DOUBLE_EQ(student.optim.lr, ce_only.optim.lr);
  EXPECT_EQ(recipe.stage("scores").teacher, "teacher");
  EXPECT_EQ(recipe.source("manuals").separator, "\n\n\n");
}

TEST(Resolve, WritesYamlThatReadsBackEqual) {
  for (const std::string& text : {kFull, std::string(quickstart())}) {
    const Recipe recipe = parse(text);
    const std::string yaml = to_yaml(recipe);
    EXPECT_EQ(to_json(parse(yaml)), to_json(recipe)) << yaml;
    EXPECT_EQ(to_yaml(parse(yaml)), yaml);
  }
}

// The run reads the model; until then the width is not known, and is not written.
TEST(Resolve, LeavesTheWidthToTheModel) {
  const auto width_of = [](const std::string& keys) {
    const Recipe recipe = parse(
        "version: 1\ndata: {a: {path: x.txt}}\nstages:\n"
        "  - {name: p, kind: prune, from: m/x, data: [a], target: {parameters: 50%}" +
        keys + "}\n");
    EXPECT_EQ(to_json(parse(to_yaml(recipe))), to_json(recipe));
    const auto json = to_json(recipe)["stages"]["p"];
    const auto width = std::get<prune::PruneOptions>(recipe.stage("p").options).width_multiple;
    EXPECT_EQ(json.contains("width_multiple"), width > 0);
    return width;
  };
  EXPECT_EQ(width_of(""), prune::kWidthMultipleOfModel);
  EXPECT_EQ(width_of(", width_multiple: 48"), 48);
}

TEST(Resolve, KeysStagesAndSourcesByName) {
  const base::Json json = to_json(parse(kFull));

  EXPECT_EQ(json["seed"], 18446744073709551615ULL);
  EXPECT_EQ(json["memory_bytes"], 12'000'000'000);
  EXPECT_EQ(json["data"]["a"]["held_out"], (base::Json{{"every", 50}}));
  EXPECT_EQ(json["data"]["no"]["held_out"], (base::Json{{"fraction", 0.0}}));
  EXPECT_EQ(json["data"]["a"]["separator"], "\n\t\u00e9\"'\\");
  EXPECT_EQ(json["stages"]["t"]["optim"]["lr"], 1e-5);
  EXPECT_EQ(json["stages"]["t"]["optim"]["warmup_steps"], 0);
  EXPECT_FALSE(json["stages"]["t"]["optim"].contains("warmup_fraction"));
  EXPECT_EQ(json["stages"]["p"]["target"]["parameters"], 3'300'000);
  EXPECT_EQ(json["stages"]["s"]["blocks"], base::Json({0, 2}));
  EXPECT_EQ(json["stages"]["d"]["loss"][0]["direction"], "reverse");
  EXPECT_EQ(json["stages"]["e"]["prompt"], base::Json::array({"null"}));
}

TEST(Resolve, FillsDefaultsThatDependOnOtherKeys) {
  const Recipe recipe = parse(R"(version: 1
seed: 9
data: {a: {path: x}}
stages:
  - {name: f, kind: finetune, from: m/x, data: [a], tokens: 1k, optim: {lr: 3e-4}}
  - {name: d, kind: distill, from: f, teacher: f, data: [a], tokens: 1k}
  - {name: e, kind: evaluate, models: [d, f], data: [a]}
)");

  const auto& finetune = std::get<train::TrainOptions>(recipe.stage("f").options);
  EXPECT_DOUBLE_EQ(finetune.optim.embedding_lr, 3e-4);
  EXPECT_EQ(finetune.seed, 9U);
  EXPECT_EQ(finetune.losses.front().kind, loss::LossKind::cross_entropy);
  const auto& distill = std::get<train::TrainOptions>(recipe.stage("d").options);
  ASSERT_EQ(distill.losses.size(), 2U);
  EXPECT_DOUBLE_EQ(distill.losses[0].weight, 0.5);
  EXPECT_DOUBLE_EQ(distill.losses[1].temperature, 1);
  EXPECT_LT(distill.optim.lr, 0) << "by the width of the model";
  EXPECT_LT(distill.optim.embedding_lr, 0);
  EXPECT_EQ(recipe.stage("e").teacher, "d");
}

TEST(Resolve, OverridesBeatTheFileAndReachEveryKind) {
  const Recipe recipe =
      parse(std::string(quickstart()),
            {"stages.student.optim.lr=1e-5", "data.manuals.path=[a.txt, b.txt]", "seed=5",
             "stages.student.loss.kl_divergence.temperature=2", "stages.pruned.target.parameters=50%",
             "data.more={path: c.jsonl, field: body}", "stages.scores.data=[manuals, more]"});

  const auto& student = std::get<train::TrainOptions>(recipe.stage("student").options);
  EXPECT_DOUBLE_EQ(student.optim.lr, 1e-5);
  EXPECT_DOUBLE_EQ(student.losses[1].temperature, 2.0);
  EXPECT_EQ(student.seed, 5U);
  EXPECT_EQ(recipe.source("manuals").paths, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_EQ(recipe.source("more").field, "body");
  EXPECT_DOUBLE_EQ(std::get<prune::PruneOptions>(recipe.stage("pruned").options).target.parameters_fraction,
                   0.5);
}

TEST(Resolve, NumbersMayBeWrittenInManyWays) {
  const auto tokens = [](const std::string& text) {
    return std::get<train::TrainOptions>(
               parse(std::string(quickstart()), {"stages.student.tokens=" + text}).stage("student").options)
        .tokens;
  };
  EXPECT_EQ(tokens("60k"), 60'000);
  EXPECT_EQ(tokens("1.5M"), 1'500'000);
  EXPECT_EQ(tokens("2e5"), 200'000);
  EXPECT_EQ(tokens("\"7\""), 7);
  const auto fraction = [](const std::string& text) {
    return std::get<prune::PruneOptions>(
               parse(std::string(quickstart()), {"stages.pruned.target.parameters=" + text})
                   .stage("pruned")
                   .options)
        .target.parameters_fraction;
  };
  EXPECT_DOUBLE_EQ(fraction("7%"), 0.07);
  EXPECT_DOUBLE_EQ(fraction("0.07"), 0.07);
  EXPECT_DOUBLE_EQ(fraction("7.0e-2"), 0.07);
}

TEST(Resolve, DoesNotDependOnTheLocale) {
  const char* before = std::setlocale(LC_ALL, nullptr);
  const std::string saved = before ? before : "C";
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  const Recipe recipe = parse(kFull);
  EXPECT_EQ(to_json(parse(to_yaml(recipe))), to_json(recipe));
  EXPECT_DOUBLE_EQ(recipe.source("a").weight, 2.5);
  std::setlocale(LC_ALL, saved.c_str());
}

TEST(Resolve, NamesTheNearestStage) {
  const Recipe recipe = parse(std::string(quickstart()));
  try {
    recipe.stage("studnt");
    FAIL();
  } catch (const base::UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'student'?"), std::string::npos);
  }
}

/// Every leaf of a resolved recipe as the documentation spells it.
void collect(const base::Json& json, const std::string& path, std::vector<std::string>& keys) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      const bool named = path == "data" || path == "stages";
      collect(value, (path.empty() ? "" : path + ".") + (named ? "<name>" : key), keys);
    }
  } else if (json.is_array() && !json.empty() && json[0].is_object()) {
    for (const auto& item : json) collect(item, path + "[]", keys);
  } else {
    keys.push_back(path);
  }
}

TEST(Labels, AreTheEndsOfPathsThatTellModelsApart) {
  Stage stage;
  stage.models = {"student", "/models/a/europa", "/models/b/europa/", "hub/tiny.gguf", "europa"};
  EXPECT_EQ(stage.labels(),
            (std::vector<std::string>{"student", "a/europa", "b/europa", "tiny.gguf", "europa"}));
  stage.models = {"x/m", "y/x/m"};
  EXPECT_EQ(stage.labels(), (std::vector<std::string>{"x/m", "y/x/m"}));
  stage.as = {"whole", "pruned"};
  EXPECT_EQ(stage.labels(), stage.as);
}

TEST(Keys, DocumentsEveryKeyThatIsWritten) {
  const std::string text = describe_keys();
  for (const std::string& recipe : {kFull, std::string(quickstart())}) {
    std::vector<std::string> keys;
    collect(to_json(parse(recipe)), "", keys);
    ASSERT_GT(keys.size(), 40U);
    for (const std::string& key : keys) EXPECT_NE(text.find("\n" + key + "\n"), std::string::npos) << key;
  }
}

TEST(Keys, TellsDefaultsAndKinds) {
  const std::string text = describe_keys();
  EXPECT_NE(
      text.find("\nstages.<name>.optim.lr\n    number, default 0.12 / hidden_size, of random weights 1.2 / "
                "hidden_size: learning rate (train, finetune, "
                "distill, select)\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\nstages.<name>.loss[].temperature\n"), std::string::npos);
  EXPECT_NE(text.find("\ndata.<name>.path\n    texts, required"), std::string::npos);
}

}  // namespace
}  // namespace retort::recipe
