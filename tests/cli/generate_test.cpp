// Files of prompts and conversations, as a user makes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

class GenerateFile : public testing::Test {
 protected:
  GenerateFile() {
    copy_model(project_, "m");
    project_.write("m/chat_template.jinja", kTemplate);
    project_.write("prompts.jsonl",
                   "{\"prompt\": \"Once\"}\n\n{\"prompt\": \"The Debian project is\"}\n"
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"Who?\"}]}\n{\"prompt\": \"a\"}\n");
  }
  Finished generate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"generate",  "m",       "--prompts", "prompts.jsonl",    "--out",
                                    "out.jsonl", "--dtype", "fp32",      "--max-new-tokens", "8"};
    all.insert(all.end(), more.begin(), more.end());
    return project_.run(all);
  }
  std::string written() const { return base::read_file(project_.path("out.jsonl")); }
  std::vector<base::Json> answers() const {
    std::vector<base::Json> result;
    std::istringstream lines(written());
    for (std::string line; std::getline(lines, line);) result.push_back(base::parse_json(line));
    return result;
  }
  std::string answer_alone(const std::string& prompt) const {
    const auto one = project_.run(
        {"generate", "m", "--prompt", prompt, "--dtype", "fp32", "--max-new-tokens", "8", "--json"});
    EXPECT_EQ(one.code, 0) << one.err;
    return base::parse_json(one.out).at("answer");
  }

  TinyProject project_;
};

TEST_F(GenerateFile, AnswersInTheOrderOfThePromptsAsOfEachAlone) {
  const auto made = generate({"--batch", "3"});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto found = answers();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].at("answer"), answer_alone("Once"));
  EXPECT_EQ(found[1].at("prompt"), "The Debian project is");
  EXPECT_EQ(found[1].at("answer"), answer_alone("The Debian project is"));
  EXPECT_EQ(found[3].at("answer"), answer_alone("a"));
  EXPECT_EQ(found[2].at("messages").at(0).at("content"), "Who?");
  EXPECT_EQ(found[1].at("ended_by"), "max new tokens");
  EXPECT_EQ(found[1].at("answer_ids").size(), 8U);
}

TEST_F(GenerateFile, GoesOnWhereItStoppedAndGivesTheSameFile) {
  ASSERT_EQ(generate({"--temperature", "1.2", "--top-k", "50"}).code, 0);
  const auto whole = written();
  // Two lines and a part of the third.
  const auto second = whole.find('\n', whole.find('\n') + 1);
  base::write_file_atomically(project_.path("out.jsonl"), whole.substr(0, second + 30));
  const auto again = generate({"--temperature", "1.2", "--top-k", "50", "--batch", "1"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(written(), whole);
  EXPECT_NE(again.err.find("goes on behind 2 answers of 4"), std::string::npos) << again.err;
}

// A template that refuses everything shows which rows are written by it.
TEST_F(GenerateFile, GoesOnWithoutReadingFinishedPromptsAgain) {
  ASSERT_EQ(generate().code, 0);
  const auto whole = written();
  const auto last = whole.rfind('\n', whole.size() - 2) + 1;
  base::write_file_atomically(project_.path("out.jsonl"), whole.substr(0, last));
  project_.write("m/chat_template.jinja", "{{ raise_exception('no more') }}");
  const auto again = generate();
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(written(), whole);
  base::write_file_atomically(project_.path("out.jsonl"), whole.substr(0, whole.find('\n') + 1));
  EXPECT_NE(generate().err.find("no more"), std::string::npos);
}

TEST_F(GenerateFile, RefusesAnswersToOtherPromptsAndFilesOfOthers) {
  ASSERT_EQ(generate().code, 0);
  const auto whole = written();
  const auto refused = [&](const Finished& found, const std::string& what) {
    EXPECT_EQ(found.code, 2) << found.err;
    EXPECT_NE(found.err.find(what), std::string::npos) << found.err;
    EXPECT_EQ(written(), whole);
  };
  refused(generate({"--temperature", "0.5"}),
          "out.jsonl:1: was answered by another model or with other options");
  project_.write("prompts.jsonl", "{\"prompt\": \"Once\"}\n{\"prompt\": \"changed\"}\n");
  refused(generate(), "out.jsonl:2: answers another prompt");
  project_.write("prompts.jsonl", "{\"prompt\": \"Once\"}\n");
  refused(generate(), "there are more answers than prompts");
  project_.write("out.jsonl", "mine\n");
  const auto foreign = generate();
  EXPECT_EQ(foreign.code, 2);
  EXPECT_EQ(written(), "mine\n");
}

TEST_F(GenerateFile, RefusesWhatIsNoPrompt) {
  for (const auto& [line, what] :
       {std::pair{"{\"prompt\": 3}", "prompts.jsonl:2: expected an object with \"prompt\""},
        {"{\"prompt\": \"a\"", "prompts.jsonl:2: not JSON"},
        {"{\"prompt\": \"a\", \"messages\": []}", "prompts.jsonl:2: expected an object"},
        {"{\"messages\": [{\"content\": 3}]}", "message"}}) {
    project_.write("prompts.jsonl", std::string("{\"prompt\": \"a\"}\n") + line + "\n");
    const auto found = generate();
    EXPECT_NE(found.code, 0) << line;
    EXPECT_NE(found.err.find(what), std::string::npos) << found.err;
    EXPECT_FALSE(std::filesystem::exists(project_.path("out.jsonl"))) << line;
  }
  project_.write("prompts.jsonl", "\n");
  EXPECT_NE(generate().err.find("at least one prompt"), std::string::npos);
}

TEST_F(GenerateFile, EndsAtAStopText) {
  const auto answer = answer_alone("The Debian project is");
  const auto stop = answer.substr(4, 3);
  ASSERT_EQ(generate({"--stop", stop}).code, 0);
  const auto found = answers()[1];
  EXPECT_EQ(found.at("answer"), answer.substr(0, answer.find(stop)));
  EXPECT_EQ(found.at("ended_by"), "stop text");
}

TEST_F(GenerateFile, DrawsAsTheModelsFileSays) {
  project_.write("m/generation_config.json", R"({"do_sample": true, "temperature": 1.5, "top_k": 40})");
  const auto found = generate({"--json", "--top-k", "7"});
  ASSERT_EQ(found.code, 0) << found.err;
  const auto sampling = base::parse_json(found.out).at("sampling");
  EXPECT_EQ(sampling.at("temperature"), 1.5);
  EXPECT_EQ(sampling.at("top_k"), 7);
  project_.write("m/generation_config.json", R"({"do_sample": true, "temperature": "hot"})");
  EXPECT_NE(generate().err.find("temperature is not a number"), std::string::npos);
}

using Chat = GenerateFile;

TEST_F(Chat, AnswersAsAFileOfTheSameMessagesIsAnswered) {
  const auto chat =
      run({"chat", "m", "--dtype", "fp32", "--max-new-tokens", "8"}, "Who?\n/reset\nWho?\n", project_.path());
  ASSERT_EQ(chat.code, 0) << chat.err;
  ASSERT_EQ(generate().code, 0);
  const std::string answer = answers()[2].at("answer");
  EXPECT_EQ(chat.out, answer + "\n" + answer + "\n");
}

TEST_F(Chat, RemembersWhatWasSaid) {
  const auto chat = run({"chat", "m", "--dtype", "fp32", "--max-new-tokens", "8", "--system", "Be kind."},
                        "Who?\nWhy?\n", project_.path());
  ASSERT_EQ(chat.code, 0) << chat.err;
  const auto first = chat.out.substr(0, chat.out.find('\n'));
  base::Json messages = base::Json::array({{{"role", "system"}, {"content", "Be kind."}},
                                           {{"role", "user"}, {"content", "Who?"}},
                                           {{"role", "assistant"}, {"content", first}},
                                           {{"role", "user"}, {"content", "Why?"}}});
  project_.write("prompts.jsonl", base::Json{{"messages", messages}}.dump() + "\n");
  ASSERT_EQ(generate().code, 0);
  EXPECT_EQ(chat.out, first + "\n" + answers()[0].at("answer").get<std::string>() + "\n");
}

TEST_F(Chat, ComparesTwoModels) {
  const auto chat = run({"chat", "m", "--compare", "m", "--dtype", "fp32", "--max-new-tokens", "4"}, "Who?\n",
                        project_.path());
  ASSERT_EQ(chat.code, 0) << chat.err;
  const auto half = chat.out.size() / 2;
  EXPECT_EQ(chat.out.substr(0, half), chat.out.substr(half));
  EXPECT_TRUE(chat.out.starts_with("m: ")) << chat.out;
}

TEST_F(Chat, SaysThatAModelHasNoTemplate) {
  std::filesystem::remove(project_.path("m/chat_template.jinja"));
  const auto chat = run({"chat", "m"}, "Who?\n", project_.path());
  EXPECT_NE(chat.code, 0);
  EXPECT_NE(chat.err.find("template"), std::string::npos) << chat.err;
}

}  // namespace
}  // namespace retort::test
