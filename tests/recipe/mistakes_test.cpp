// Wrong recipes and what is said about them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/random.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {
namespace {

/// Lines 1 to 4; the stage under test follows on line 5.
const std::string kHead = R"(version: 1
data:
  books: {path: "b.txt"}
stages:
)";

std::string message_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_recipe(text, "r.yaml", overrides);
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

struct Case {
  const char* stage;
  const char* message;
};

class WrongStage : public testing::TestWithParam<Case> {};

TEST_P(WrongStage, IsReportedWithLineKeyAndReason) {
  const std::string message = message_of(kHead + "  - " + GetParam().stage + "\n");
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Recipe, WrongStage,
    testing::Values(
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 60k, optim: {learning_rate: 1}}",
             "r.yaml:5: stages.a.optim.learning_rate: unknown key; did you mean 'lr'?"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 60k, learning_rate: 1}",
             "stages.a.learning_rate: unknown key; did you mean 'optim.lr'?"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 60k, lr: 1}",
             "stages.a.lr: unknown key; did you mean 'optim.lr'?"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 60k, batch_size: 8}",
             "did you mean 'batch.sequences'?"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 60k, gradient_checkpointing: true}",
             "did you mean 'recompute'?"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 60k, optim: {embeding_lr: 1}}",
             "did you mean 'embedding_lr'?"},
        Case{"{name: a, kind: export, from: m/x, for: lama.cpp}",
             "stages.a.for: expected one of transformers, vllm, llama.cpp, ollama, found 'lama.cpp'"},
        Case{"{name: a, kind: export, from: m/x, type: q8_0, like: m/y.gguf}",
             "stages.a.like: has no meaning beside type; leave one out"},
        Case{"{name: a, kind: finetne, from: m/x}",
             "expected one of train, finetune, profile, prune, sparsify, distill, select, "
             "evaluate, export, found 'finetne'; did you mean 'finetune'?"},
        Case{"{name: a, from: m/x}", "r.yaml:5: stages.a.kind: missing"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books]}", "stages.a.tokens: missing"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 0}",
             "stages.a.tokens: expected more than 0"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: -5k}",
             "expected more than 0, found '-5k'"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1.5}",
             "expected a whole number such as"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: many}", "found 'many'"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: [1]}", "found a list"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: }", "found nothing"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, optim: {lr: 0}}",
             "stages.a.optim.lr: expected more than 0"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, optim: {lr: nan}}",
             "expected a number"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, optim: {beta2: 1}}",
             "less than 1"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, optim: 3}",
             "stages.a.optim: expected keys and values, found '3'"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, packing: {eos: yes}}",
             "expected true or false, found 'yes'"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, seed: -1}",
             "expected a whole number from 0"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, batch: {wave: 3}}",
             "stages.a.batch.wave: more than the micro-batches"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, optim: {warmup_steps: 1, "
             "warmup_fraction: 0.1}}",
             "found both"},
        Case{"{name: a, kind: finetune, from: m/x, data: [boks], tokens: 1k}",
             "stages.a.data: 'boks' is not among the sources under data; did you mean 'books'?"},
        Case{"{name: a, kind: finetune, from: m/x, data: [], tokens: 1k}", "found an empty one"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books, books], tokens: 1k}",
             "stages.a.data: 'books' is named twice"},
        Case{"{name: a, kind: evaluate, models: [m/x, m/y, m/x], data: [books]}",
             "stages.a.models: 'm/x' is named twice"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, target: {parameters: 60%}}",
             "stages.a.target: a key of kind prune, select, not of finetune"},
        Case{"{name: a, kind: finetune, from: m/x, teacher: m/x, data: [books], tokens: 1k}",
             "stages.a.teacher: a key of kind distill, select, evaluate, not of finetune"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, loss: [{kind: squarehead}]}",
             "stages.a.loss: squarehead needs a teacher"},
        Case{"{name: a, kind: finetune, data: [books], tokens: 1k}", "stages.a.from: missing"},
        Case{"{name: a, kind: finetune, from: base, data: [books], tokens: 1k}",
             "'base' is no earlier stage and no directory (write ./base for a directory)"},
        Case{"{name: a, kind: finetune, from: a, data: [books], tokens: 1k}",
             "does not come before this one"},
        Case{"{name: a/b, kind: finetune, from: m/x, data: [books], tokens: 1k}", "expected 1 to 64 letters"},
        Case{"{name: .., kind: finetune, from: m/x, data: [books], tokens: 1k}", "expected 1 to 64 letters"},
        Case{"{kind: finetune, from: m/x, data: [books], tokens: 1k}", "r.yaml:5: stages.0.name: missing"},
        Case{"{name: a, kind: train, data: [books], tokens: 1k}", "stages.a.config: missing"},
        Case{
            "{name: a, kind: train, from: m/x, config: c, tokenizer: t, data: [books], tokens: 1k}",
            "stages.a.from: a key of kind finetune, profile, prune, sparsify, distill, export, not of train"},
        Case{"{name: a, kind: distill, from: m/x, data: [books], tokens: 1k}", "stages.a.teacher: missing"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, loss: []}",
             "an empty one"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, loss: [{kind: "
             "kl_divergence, "
             "temperature: 0}]}",
             "stages.a.loss.0.temperature: expected more than 0"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, loss: [{kind: "
             "cross_entropy, "
             "temperature: 2}]}",
             "stages.a.loss.0.temperature: a key of kind kl_divergence, jensen_shannon, total_variation, not "
             "of "
             "cross_entropy"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, loss: [{kind: "
             "jensen_shannon, beta: 1.5}]}",
             "stages.a.loss.0.beta: expected at most 1"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, loss: [{kind: "
             "kl}]}",
             "stages.a.loss.0.kind: expected one of cross_entropy, kl_divergence, jensen_shannon, "
             "total_variation, squarehead, found 'kl'; did you mean 'kl_divergence'?"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, loss: [{kind: "
             "squarehead}, "
             "{kind: squarehead}]}",
             "given twice"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, on_policy: "
             "{top_p: 0.9}}",
             "stages.a.on_policy.share: expected beside the other keys of on_policy"},
        Case{"{name: a, kind: distill, from: m/x, teacher: m/y, data: [books], tokens: 1k, on_policy: "
             "{share: 1.5}}",
             "stages.a.on_policy.share: expected at most 1"},
        Case{"{name: a, kind: finetune, from: m/x, data: [books], tokens: 1k, on_policy: {share: 1}}",
             "stages.a.on_policy: a key of kind distill, select, not of finetune"},
        Case{"{name: a, kind: prune, from: m/x, data: [books]}", "stages.a.target: missing"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 160%}}",
             "a fraction between 0 and 1"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {params: 60%}}",
             "stages.a.target.params: unknown key"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%}, blocks: false, "
             "heads: false, channels: false}",
             "nothing to prune"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%}, units: per_layer, "
             "hidden: true}",
             "stages.a.hidden: has no meaning with these units"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%}, units: sub_blocks, "
             "heads: false}",
             "stages.a.heads: has no meaning with these units"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%}, units: uniform, "
             "search: {tolerance: 0.1}}",
             "stages.a.search.tolerance: has no meaning in the stepwise search, greedy with uniform units"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%}, units: uniform, "
             "search: {method: additive}}",
             "stages.a.search.method: additive needs units whose parameters add up"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%}, objective: "
             "{perplexity: 0, kl: 0}}",
             "stages.a.objective: perplexity and kl are both 0"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {}}",
             "stages.a.target: expected parameters, such as 60%, blocks or latency, found none"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%, blocks: 3}}",
             "stages.a.target.blocks: found both"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%, latency: 80%}}",
             "stages.a.target.latency: found both"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {parameters: 60%, batch: 4}}",
             "stages.a.target.batch: has no meaning without latency"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {latency: 120%}}",
             "stages.a.target.latency: expected less than 1"},
        Case{"{name: a, kind: select, models: [m/x], teacher: m/y, data: [books], tokens: 1k, target: {}}",
             "stages.a.target: expected latency, such as 80%, milliseconds or tokens_per_second, found none"},
        Case{"{name: a, kind: select, models: [m/x], teacher: m/y, data: [books], tokens: 1k, target: "
             "{latency: 80%, milliseconds: 3}}",
             "stages.a.target.milliseconds: found both"},
        Case{"{name: a, kind: select, models: [m/x], teacher: m/y, data: [books], tokens: 1k, target: "
             "{parameters: 60%}}",
             "stages.a.target.parameters: unknown key"},
        Case{"{name: a, kind: prune, from: m/x, data: [books], target: {blocks: 3}, units: uniform}",
             "stages.a.units: target.blocks counts whole blocks"},
        Case{"{name: a, kind: sparsify, from: m/x, data: [books], pattern: \"3:4\"}",
             "expected one of 2:4, 1:4, 4:8, found '3:4'"},
        Case{"{name: a, kind: sparsify, from: m/x, data: [books], method: sparse_gpt, block_size: 130}",
             "multiple of 4"},
        Case{"{name: a, kind: sparsify, from: m/x, data: [books], mask: exact}",
             "stages.a.mask: has no meaning with this method; leave it out, or choose method: sparse_gpt"},
        Case{"{name: a, kind: sparsify, from: m/x, data: [books], method: wanda, block_size: 64}",
             "stages.a.block_size: has no meaning with this method"},
        Case{"{name: a, kind: evaluate, data: [books]}", "stages.a.models: missing"},
        Case{"{name: a, kind: evaluate, models: [m], data: [books]}", "'m' is no earlier stage"},
        Case{"{name: a, kind: evaluate, models: [m/x, m/y], as: [whole], data: [books]}",
             "stages.a.as: expected a name for each of 2 models, found 1"},
        Case{"{name: a, kind: evaluate, models: [m/x, m/y], as: [whole, whole], data: [books]}",
             "stages.a.as: 'whole' is given twice"},
        Case{"just text", "stages.0: expected keys and values, found 'just text'"}));

TEST(Mistakes, AProfileIsAnEarlierStageOfTheSameModel) {
  const std::string profiled = kHead + "  - {name: seen, kind: profile, from: m/x, data: [books]}\n";
  const auto prune = [](const std::string& from, const std::string& profile) {
    return "  - {name: p, kind: prune, from: " + from + ", profile: " + profile +
           ", data: [books], target: {parameters: 60%}}\n";
  };
  const auto expect = [](const std::string& recipe, const std::string& what) {
    EXPECT_NE(message_of(recipe).find(what), std::string::npos) << message_of(recipe);
  };
  expect(profiled + prune("m/y", "seen"), "stages.p.profile: stage 'seen' profiles 'm/x', not 'm/y'");
  expect(profiled + prune("m/x", "sen"), "'sen' is no earlier stage of kind profile; did you mean 'seen'?");
  expect(profiled + prune("seen", "seen"),
         "stages.p.from: stage 'seen' is of kind profile and makes files and no model");
}

TEST(Mistakes, AreReportedAllAtOnce) {
  const std::string message =
      message_of(kHead +
                     "  - {name: a, kind: finetune, from: m/x, data: [boks], tokens: 0}\n"
                     "  - {name: a, kind: prune, from: b, data: [books], targt: {parameters: 60%}}\n"
                     "speed: 3\n",
                 {"stages.a.optim.lrr=1", "stages.zz.tokens=1"});

  EXPECT_EQ(message.rfind("r.yaml: 9 mistakes\n", 0), 0U) << message;
  for (const char* part :
       {"--set stages.zz.tokens=1: 'zz' is no item of stages", "r.yaml:5: stages.a.data: 'boks'",
        "r.yaml:5: stages.a.tokens:", "--set stages.a.optim.lrr=1: stages.a.optim.lrr: unknown key",
        "r.yaml:6: stages.a.name: 'a' names an earlier stage", "r.yaml:6: stages.a.from: 'b'",
        "r.yaml:6: stages.a.target: missing", "r.yaml:6: stages.a.targt: unknown key; did you mean 'target'?",
        "r.yaml:7: speed: unknown key"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

// A stage whose kind is wrong is read as the one that was meant, or that knows most of its keys.
TEST(Mistakes, AreReportedAllAtOnceWhereTheKindIsWrongToo) {
  const auto expect = [](const std::string& stage, std::initializer_list<const char*> parts) {
    const auto message = message_of(kHead + "  - " + stage + "\n");
    for (const char* part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
    EXPECT_NE(message.find(std::to_string(parts.size()) + " mistakes"), std::string::npos) << message;
  };
  expect("{name: a, kind: prun, from: m/x, data: [books], target: {parameter: 60%}, units: block}",
         {"found 'prun'; did you mean 'prune'?", "stages.a.target.parameter: unknown key",
          "stages.a.target: expected parameters", "stages.a.units: expected one of"});
  expect("{name: a, kind: shrink, from: m/x, data: [boks], target: {parameters: 60%}, units: block}",
         {"stages.a.kind: expected one of", "stages.a.data: 'boks'", "stages.a.units: expected one of"});
  expect("{name: a, from: m/x, teacher: m/t, data: [books], tokens: 0, loss: [{kind: mse, wight: 1}]}",
         {"stages.a.kind: missing", "stages.a.tokens: expected more than 0",
          "stages.a.loss.0.kind: expected one of",
          "stages.a.loss.0.wight: unknown key; did you mean 'weight'?"});
}

TEST(Mistakes, OfALossThatTheRecipeLeavesToItsDefaultSaysWhatToWrite) {
  const auto text =
      kHead + "  - {name: a, kind: distill, from: m/x, teacher: m/t, data: [books], tokens: 60k}\n";
  const auto message = message_of(text, {"stages.a.loss.kl_divergence.temperature=2"});
  EXPECT_NE(message.find("stages.a.loss: expected a list, found a map"), std::string::npos) << message;
  EXPECT_NE(message.find("--set 'stages.a.loss=[...]'"), std::string::npos) << message;
}

TEST(Mistakes, OfSourcesAndTheTopAreNamed) {
  EXPECT_NE(message_of("{}").find("version: missing"), std::string::npos);
  EXPECT_NE(message_of("").find("is empty"), std::string::npos);
  EXPECT_NE(message_of("[1]").find("expected keys and values, found a list"), std::string::npos);
  EXPECT_NE(message_of("version: 2").find("r.yaml:1: version: expected at most 1, found '2'"),
            std::string::npos);
  EXPECT_NE(message_of("version: 1\ndevice: tpu").find("device: expected one of cpu, cuda"),
            std::string::npos);
  for (const std::string data : {"", "data: {}\n"}) {
    const auto message = message_of("version: 1\n" + data +
                                    "stages: [{name: a, kind: finetune, from: m/x, data: [b], tokens: 60k}]");
    EXPECT_NE(message.find("data: expected a source of text, which a stage reads, found none"),
              std::string::npos)
        << message;
  }
  EXPECT_NE(message_of("data: {a.b: {path: x}}").find("data.a.b.name: 'a.b'"), std::string::npos);
  EXPECT_NE(message_of("data: {a: {path: x, weight: 0}}").find("data.a.weight: expected more than 0"),
            std::string::npos);
  EXPECT_NE(message_of("data: {a: {path: x, held_out: {fraction: 2%, every: 5}}}")
                .find("data.a.held_out: expected one of"),
            std::string::npos);
  EXPECT_NE(message_of("data: {a: {path: x, separator: '" + std::string(1025, '-') + "'}}")
                .find("data.a.separator: expected at most 1024 bytes"),
            std::string::npos);
  EXPECT_NE(message_of("data: {a: {path: x, held_out: {fraction: 0.6}}}").find("expected at most 0.5"),
            std::string::npos);
}

TEST(Mistakes, WhateverTheBytesARecipeIsReadOrRefused) {
  const std::string good(quickstart());
  base::Random random(1, 2);
  const std::string inserted = "{}[]:,-\"'#&*!|>%@?\n \t0a\xC3";
  for (int round = 0; round < 3000; ++round) {
    std::string text = good.substr(good.find("version"));
    for (std::uint64_t edits = 1 + random.next_below(4); edits > 0; --edits) {
      const std::size_t place = random.next_below(text.size());
      const char byte = inserted[random.next_below(inserted.size())];
      switch (random.next_below(4)) {
        case 0:
          text[place] = byte;
          break;
        case 1:
          text.insert(place, 1 + random.next_below(3), byte);
          break;
        case 2:
          text.erase(place, 1 + random.next_below(20));
          break;
        default:
          text.insert(place, text.substr(random.next_below(text.size()), random.next_below(60)));
          break;
      }
    }
    try {
      const Recipe recipe = parse_recipe(text, "r.yaml");
      EXPECT_EQ(to_json(parse_recipe(to_yaml(recipe), "again.yaml")), to_json(recipe)) << text;
    } catch (const base::UsageError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("r.yaml", 0), 0U) << error.what();
    }
  }
}

TEST(Mistakes, ReadingEndsAfterAHundred) {
  std::string text = kHead + "  - {name: a, kind: train}\n";
  for (int i = 0; i < 3000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const std::string message = message_of(text);
  EXPECT_EQ(message.rfind("r.yaml: 100 mistakes or more\n", 0), 0U) << message;
  EXPECT_EQ(message.find("k200"), std::string::npos);
}

TEST(Mistakes, AFileThatIsMissingIsOneOfTheCommand) {
  EXPECT_THROW(read_recipe("no/such.yaml"), base::UsageError);
}

/// A recipe whose source `chats` has these keys; stage `a` reads it, and others follow.
std::string generated(const std::string& keys, const std::string& stages = "") {
  return "version: 1\ndata:\n  chats: {" + keys +
         "}\nstages:\n  - {name: a, kind: finetune, from: m/x, data: [chats], tokens: 60k}\n" + stages;
}

TEST(GeneratedSource, IsReadWithDefaultsOfItsKindAndWrittenAgain) {
  const auto chats =
      parse_recipe(generated("generated: {model: m/x, tokens: 1M, chat: true}"), "r.yaml").data.front();
  EXPECT_EQ(chats.generated.model, "m/x");
  EXPECT_EQ(chats.generated.tokens, 1'000'000);
  EXPECT_EQ(chats.generated.temperature, 0.7);
  const auto recipe =
      parse_recipe("seed: 7\n" + generated("generated: {model: m/x, tokens: 1k}, weight: 2"), "r.yaml");
  EXPECT_EQ(recipe.data.front().generated.temperature, 1.0);
  EXPECT_EQ(recipe.data.front().generated.seed, 7U);
  const auto again = parse_recipe(to_yaml(recipe), "again.yaml");
  EXPECT_EQ(to_json(again), to_json(recipe));
  EXPECT_FALSE(to_json(recipe).at("data").at("chats").contains("path"));
}

TEST(GeneratedSource, IsRefusedWithItsReason) {
  const auto says = [](const std::string& keys, const std::string& what, const std::string& stages = "") {
    const auto message = message_of(generated(keys, stages));
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  says("generated: {tokens: 1k}", "data.chats.generated.model: missing");
  says("generated: {model: m/x}", "data.chats.generated.tokens: expected a number of tokens to keep above 0");
  says("generated: {model: m/x, tokens: 0}", "tokens to keep above 0, such as 1M");
  says("generated: {model: m/x, tokens: 1k}, path: b.txt", "data.chats.path: a model writes the text");
  says("generated: {model: m/x, tokens: 1k, questions: q.txt}", "generated.questions: are asked in a conv");
  says("generated: {model: m/x, tokens: 1k, chat: true, starts: s.txt}",
       "generated.starts: are of documents");
  says("generated: {model: m/x, tokens: 1k, temperature: 0}", "generated.temperature: at 0 every document");
  says("generated: {model: m/x, tokens: 1k, temprature: 1}", "did you mean 'temperature'");
  says("generated: {model: late, tokens: 1k}",
       "chats.generated.model: stage 'a' reads the text, and 'late' does not come before it",
       "  - {name: late, kind: finetune, from: m/x, data: [chats], tokens: 60k}\n");
  says("generated: {model: a, tokens: 1k}", "stage 'a' reads the text, and 'a' does not come before it");
  says("generated: {model: b, tokens: 1k}", "'b' is no stage and no directory");
  says("generated: {model: scores, tokens: 1k}", "stage 'scores' is of kind evaluate and makes no model",
       "  - {name: scores, kind: evaluate, models: [a], data: [chats]}\n");
}

TEST(GeneratedSource, IsWhatAStageNamedAsTextIsToldOf) {
  const auto message = message_of(kHead +
                                  "  - {name: a, kind: finetune, from: m/x, data: [books], tokens: 60k}\n"
                                  "  - {name: b, kind: finetune, from: a, data: [a], tokens: 60k}\n");
  EXPECT_NE(message.find("'a' is a stage and no source of text; a source with generated: {model: a}"),
            std::string::npos)
      << message;
}

TEST(GeneratedSource, AnswersAllQuestionsOfAFileWithoutABudget) {
  const auto recipe =
      parse_recipe(generated("generated: {model: m/x, chat: true, questions: q.jsonl}"), "r.yaml");
  EXPECT_EQ(recipe.data.front().generated.tokens, 0);
}

}  // namespace
}  // namespace retort::recipe
