// Texts that a model writes to learn from, as a user makes them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "cli/refusal.h"
#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

// <|endoftext|> is the one special token of the tiny model, and so it ends turns too.
constexpr const char* kTemplate =
    "be good\n{% for m in messages %}<{{ m.role }}>\n{{ m.content }}<|endoftext|>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>\n{% endif %}";

std::string special_token(const TinyProject& project) {
  const auto json = base::parse_json(base::read_file(project.path("m/tokenizer.json")),
                                     {.max_bytes = std::size_t{1} << 24});
  return json.at("added_tokens").at(0).at("content");
}

class CorpusOf : public testing::Test {
 protected:
  CorpusOf() {
    copy_model(project_, "m");
    std::string chat = kTemplate;
    chat.replace(chat.find("<|endoftext|>"), 13, special_token(project_));
    project_.write("m/chat_template.jinja", chat);
  }
  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"generate", "m",    "--corpus", "out.jsonl",
                                    "--dtype",  "fp32", "--seed",   "3"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Finished generate(const std::vector<std::string>& more) const { return project_.run(command(more)); }
  std::string written(const char* name = "out.jsonl") const { return base::read_file(project_.path(name)); }
  std::vector<base::Json> texts() const {
    std::vector<base::Json> result;
    std::istringstream lines(written());
    for (std::string line; std::getline(lines, line);) result.push_back(base::parse_json(line));
    return result;
  }
  base::Json about() const { return base::parse_json(written("out.jsonl.about.json")); }
  void remove() const {
    std::filesystem::remove(project_.path("out.jsonl"));
    std::filesystem::remove(project_.path("out.jsonl.about.json"));
  }

  TinyProject project_;
};

const std::vector<std::string> kDocuments = {"--tokens", "1500", "--max-new-tokens", "24"};

std::vector<std::string> with(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(CorpusOf, HasDocumentsUpToItsBudget) {
  const auto made = generate(with(kDocuments, {"--json"}));
  ASSERT_EQ(made.code, 0) << made.err;
  const auto result = base::parse_json(made.out);
  EXPECT_GE(result.at("tokens").get<int>(), 1500);
  EXPECT_LT(result.at("tokens").get<int>(), 1600);
  EXPECT_EQ(texts().size(), result.at("texts").get<std::size_t>());
  EXPECT_EQ(about().at("tokens"), result.at("tokens"));
  EXPECT_FALSE(texts().front().contains("messages"));
}

TEST_F(CorpusOf, IsTheSameForAnyNumberOfTextsAtOnce) {
  ASSERT_EQ(generate(with(kDocuments, {"--batch", "3"})).code, 0);
  const auto text = written();
  remove();
  ASSERT_EQ(generate(with(kDocuments, {"--batch", "40"})).code, 0);
  EXPECT_EQ(written(), text);
}

TEST_F(CorpusOf, GoesOnWithTheSameBytesAfterItWasKilled) {
  ASSERT_EQ(generate(kDocuments).code, 0);
  const auto whole = written(), said = written("out.jsonl.about.json");
  remove();
  for (int killed = 0; killed < 3; ++killed) {
    Running running(command(with(kDocuments, {"--batch", "2"})), "", project_.path());
    const auto has_more = [&, before = std::filesystem::exists(project_.path("out.jsonl"))
                                           ? std::filesystem::file_size(project_.path("out.jsonl"))
                                           : 0] {
      std::error_code ignored;
      return std::filesystem::file_size(project_.path("out.jsonl"), ignored) > before && !ignored;
    };
    ASSERT_TRUE(wait_until(running, has_more)) << running.err();
    running.signal(SIGKILL);
    (void)running.wait();
  }
  const auto again = generate(kDocuments);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(written(), whole);
  EXPECT_EQ(written("out.jsonl.about.json"), said);
}

TEST_F(CorpusOf, SavesWhenItIsInterruptedAndGoesOn) {
  ASSERT_EQ(generate(kDocuments).code, 0);
  const auto whole = written();
  remove();
  {
    Running running(command(with(kDocuments, {"--batch", "1"})), "", project_.path());
    ASSERT_TRUE(wait_until(running, [&] {
      std::error_code ignored;
      return std::filesystem::file_size(project_.path("out.jsonl"), ignored) > 100 && !ignored;
    }));
    running.signal(SIGTERM);
    const auto ended = running.wait();
    EXPECT_EQ(ended.code, 85) << ended.err;
  }
  const auto again = generate(kDocuments);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(written(), whole);
}

TEST_F(CorpusOf, GoesOnFromBeginningsInTurn) {
  project_.write("starts.txt", "the package\nDebian system\n");
  ASSERT_EQ(generate({"--tokens", "200", "--max-new-tokens", "8", "--starts", "starts.txt"}).code, 0);
  // Texts with broken bytes are dropped between those that are kept.
  int of_first = 0, of_second = 0;
  for (const auto& line : texts()) {
    const auto text = line.at("text").get<std::string>();
    of_first += text.starts_with("the package") ? 1 : 0;
    of_second += text.starts_with("Debian system") ? 1 : 0;
  }
  EXPECT_GE(of_first, 2);
  EXPECT_GE(of_second, 2);
  EXPECT_EQ(of_first + of_second, static_cast<int>(texts().size()));
}

// The tiny model seldom ends a turn, so there may be no answer; each question is asked all the same.
TEST_F(CorpusOf, AnswersQuestionsOfAFileOnceEach) {
  project_.write("q.jsonl",
                 "{\"prompt\": \"Who?\"}\n"
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"What?\"}, "
                 "{\"role\": \"assistant\", \"content\": \"old\"}]}\n");
  const auto made = generate(
      {"--chat", "--questions", "q.jsonl", "--temperature", "40", "--max-new-tokens", "120", "--json"});
  const auto said = about();
  EXPECT_EQ(said.at("rows"), 2) << made.err;
  for (const auto& line : texts()) {
    EXPECT_EQ(line.at("messages").size(), 2U);
    EXPECT_NE(line.at("messages").at(1).at("content"), "old");
    EXPECT_SAYS(line.at("text").get<std::string>(), "be good\n<user>\n");
  }
}

TEST_F(CorpusOf, RefusesWhatCannotBeMade) {
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::string& culprit) {
    expect_refusal(project_, command(more), code, culprit);
  };
  refused({}, 2, "a number of tokens to keep above 0");
  refused({"--tokens", "0"}, 2, "a number of tokens to keep above 0");
  refused({"--tokens", "many"}, 2, "expected a number such as 100k");
  refused({"--tokens", "100", "--temperature", "0"}, 2, "every text would be the same");
  refused({"--tokens", "100", "--questions", "q.jsonl"}, 2, "questions are asked in a conversation");
  refused({"--tokens", "100", "--chat", "--starts", "s.txt"}, 2, "beginnings are of documents");
  refused({"--tokens", "100", "--starts", "no.txt"}, 7, "no.txt");
  refused({"--tokens", "100", "--stop", "x"}, 2, "--stop has no meaning for a corpus");
  std::filesystem::remove(project_.path("m/chat_template.jinja"));
  refused({"--tokens", "100", "--chat"}, 4, "ask for documents instead of chats");
  project_.write("out.jsonl", "mine\n");
  refused(kDocuments, 2, "found other text");
}

TEST_F(CorpusOf, EndsWithAnErrorWhereNothingIsWorthKeeping) {
  project_.write("q.txt", "Who?\nWhat?\n");
  const auto made = generate({"--chat", "--questions", "q.txt", "--max-new-tokens", "2"});
  EXPECT_EQ(made.code, 17) << made.err;
  EXPECT_SAYS(made.err, "worth learning from");
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace retort::test
