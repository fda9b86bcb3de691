// Runs on conversations: what is learned, measured and asked.
#include <gtest/gtest.h>

#include "pipeline/project.h"
#include "retort/base/error.h"
#include "retort/record/run_files.h"
#include "retort/text/tokenizer.h"
#include "support/message_of.h"

namespace retort::pipeline {
namespace {

using base::Json;

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}<|endoftext|>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}";

class Chats : public ::testing::Test {
 protected:
  Chats() {
    std::ofstream file(project_.path("chats.jsonl"));
    for (int i = 0; i < 160; ++i) {
      const auto question = base::join("question number ", i, " of many"),
                 answer = base::join("answer ", i * i);
      file << Json{{"messages",
                    {{{"role", "user"}, {"content", question}},
                     {{"role", "assistant"}, {"content", answer}}}}}
                  .dump()
           << "\n";
      if (i % 10 == 9) answers_.push_back(answer);  // held out
    }
    file << Json{{"prompt", std::string(2000, 'x')}, {"completion", "too long"}}.dump() << "\n";
  }

  void write_template() const { std::ofstream(project_.path("model") / "chat_template.jinja") << kTemplate; }

  recipe::Recipe recipe(const std::vector<std::string>& stages) const {
    std::string text =
        "version: 1\ndata:\n  chats: {path: " + project_.path("chats.jsonl").string() +
        ", chat: true, held_out: {every: 10}}\n  text: {path: " + project_.path("text.txt").string() +
        ", separator: \"\\n\\n\", held_out: {every: 10}}\nstages:\n";
    for (auto stage : stages) {
      for (auto at = stage.find("MODEL"); at != std::string::npos; at = stage.find("MODEL"))
        stage.replace(at, 5, project_.path("model").string());
      text += "  - " + stage + "\n";
    }
    return recipe::parse_recipe(text, "recipe.yaml");
  }

  Json result(const std::string& stage) const {
    return base::parse_json(base::read_file(project_.run_directory() / "stages" / (stage + ".json")),
                            {.max_bytes = 1 << 24});
  }

  test::Project project_;
  std::vector<std::string> answers_;
};

TEST_F(Chats, AreLearnedCalibratedOnAndMeasuredBesidePlainText) {
  write_template();
  const auto all = recipe(
      {"{name: tuned, kind: distill, from: MODEL, teacher: MODEL, data: [chats, text], tokens: 2k, "
       "packing: {sequence_length: 64}, batch: {sequences: 4}, evaluate_every_steps: 4, evaluate_tokens: "
       "256}",
       "{name: seen, kind: profile, from: MODEL, data: [chats], calibration_tokens: 512, sequence_length: "
       "64}",
       "{name: scores, kind: evaluate, models: [MODEL, tuned], data: [chats], context: 64, max_new_tokens: "
       "4, "
       "prompt: \"word1\", chat: [\"question\", [{role: user, content: a}, {role: assistant, content: b}, "
       "{role: user, content: c}]]}"});
  test::Listener listener;
  run(all, test::run_in(project_.run_directory()), listener);

  const auto text = result("tuned").at("text");
  const auto& chats = text.at("sources").at("chats");
  EXPECT_GT(chats.at("targets"), 0);
  EXPECT_LT(chats.at("targets"), chats.at("tokens"));
  EXPECT_GT(text.at("padding").get<double>(), 0);
  EXPECT_LT(text.at("padding").get<double>(), 0.5);
  EXPECT_SAYS(listener.said,
              "documents of data.chats were left out, because they have more than the 64 tokens");
  EXPECT_SAYS(listener.said, "% of the sequences are padding");

  // The targets are the answers of the held-out conversations, each with the token that ends it.
  const auto tokenizer = text::Tokenizer::from_file(project_.path("model"));
  std::int64_t tokens = 0, bytes = 0;
  for (const auto& answer : answers_) {
    tokens += std::ssize(tokenizer.encode(" " + answer, false)) + 1;
    bytes += std::ssize(answer + "<|endoftext|>");
  }
  const auto scores = result("scores");
  const auto& source = scores.at("models")[0].at("sources")[0];
  EXPECT_EQ(source.at("documents"), answers_.size());
  EXPECT_EQ(source.at("bytes"), bytes);
  EXPECT_NEAR(source.at("tokens").get<double>(), static_cast<double>(tokens),
              static_cast<double>(answers_.size()));

  const auto& generations = scores.at("models")[1].at("generations");
  ASSERT_EQ(generations.size(), 3U);
  EXPECT_FALSE(generations[0].contains("messages"));
  EXPECT_TRUE(generations[0].at("text").get<std::string>().starts_with("word1"));
  EXPECT_EQ(generations[1].at("prompt"), "question");
  EXPECT_EQ(generations[1].at("messages").size(), 1U);
  EXPECT_EQ(generations[2].at("prompt"), "user: a\nassistant: b\nuser: c");
  EXPECT_TRUE(std::filesystem::exists(project_.run_directory() / "models" / "tuned" / "chat_template.jinja"));
}

TEST_F(Chats, NeedAChatTemplateBeforeARunBegins) {
  test::Listener listener;
  for (const char* stage :
       {"{name: t, kind: finetune, from: MODEL, data: [chats], tokens: 1k, packing: {sequence_length: 64}}",
        "{name: t, kind: evaluate, models: [MODEL], data: [text], context: 64, chat: Hello}"})
    EXPECT_SAYS(test::message_of<base::ModelError>(
                    [&] { run(recipe({stage}), test::run_in(project_.run_directory()), listener); }),
                "expected a chat template");
}

TEST_F(Chats, ThatAreAllTooLongAreRefusedBeforeARunBegins) {
  write_template();
  test::Listener listener;
  EXPECT_SAYS(test::message_of<base::DataError>([&] {
                run(recipe({"{name: t, kind: finetune, from: MODEL, data: [chats], tokens: 1k, packing: "
                            "{sequence_length: 8}}"}),
                    test::run_in(project_.run_directory()), listener);
              }),
              "source 'chats': expected conversations with an answer in at most 8 tokens, found none, but ");
}

}  // namespace
}  // namespace retort::pipeline
