// Conversations as a person has them: in a terminal, and with a model that is one file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "cli/tiny_project.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "support/gguf_writer.h"
#include "support/message_of.h"

namespace retort::test {
namespace {

// A terminal of its own for a program: what is typed into it, and what it shows.
class Terminal {
 public:
  Terminal() : screen_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (screen_ < 0 || ::grantpt(screen_) != 0 || ::unlockpt(screen_) != 0)
      throw std::runtime_error("a terminal cannot be made");
    name_ = ::ptsname(screen_);
  }
  ~Terminal() { ::close(screen_); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // In the new process.
  void take() const {
    if (::setsid() < 0) ::_exit(126);
    const int terminal = ::open(name_.c_str(), O_RDWR);
    if (terminal < 0 || ::ioctl(terminal, TIOCSCTTY, 0) != 0) ::_exit(126);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(terminal, stream);
  }

  void type(std::string_view keys) const {
    ASSERT_EQ(::write(screen_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Waits until it shows `text`, and `more` characters behind; what it showed up to there.  The rest is for
  // the next time.
  std::string shown(const std::string& text, std::size_t more = 0) {
    constexpr int kMinute_milliseconds = 60'000;
    for (auto at = screen_text_.find(text);
         at == screen_text_.npos || screen_text_.size() < at + text.size() + more;
         at = screen_text_.find(text)) {
      pollfd wait{screen_, POLLIN, 0};
      char bytes[4096];
      const auto count =
          ::poll(&wait, 1, kMinute_milliseconds) == 1 ? ::read(screen_, bytes, sizeof bytes) : 0;
      if (count <= 0) throw std::runtime_error("expected " + text + ", the terminal shows " + screen_text_);
      screen_text_.append(bytes, static_cast<std::size_t>(count));
    }
    const auto until = screen_text_.substr(0, screen_text_.find(text) + text.size());
    screen_text_.erase(0, until.size());
    return until;
  }

 private:
  int screen_;
  std::string name_, screen_text_;
};

constexpr const char *kCtrlC = "\x03", *kCtrlD = "\x04";

// An answer that does not end by itself within minutes.
void write_talkative_model(const TinyProject& project) {
  copy_model(project, "m");
  auto config = base::Json::parse(base::read_file(project.path("m/config.json")));
  config["max_position_embeddings"] = 1 << 15;
  config["eos_token_id"] = 4095;
  project.write("m/config.json", config.dump());
  project.write("m/generation_config.json", "{\"eos_token_id\": 4095}");
  project.write("m/chat_template.jinja", "{% for m in messages %}{{ m.content }}\n{% endfor %}");
}

TEST(ChatInATerminal, CtrlCEndsTheAnswerAndNotTheProgram) {
  const TinyProject project;
  write_talkative_model(project);
  Terminal terminal;
  Running chat({"chat", "m", "--dtype", "fp32", "--temperature", "0", "--max-new-tokens", "30000",
                "--context", "32768"},
               "", project.path(), [&] { terminal.take(); });
  for (int answer = 0; answer < 2; ++answer) {
    terminal.shown("> ");
    terminal.type("Who?\n");
    terminal.shown("Who?\r\n", 8);
    terminal.type(kCtrlC);
    EXPECT_GT(terminal.shown("(stopped)").size(), 8U);
    EXPECT_FALSE(chat.ended());
  }
  terminal.shown("> ");
  terminal.type(kCtrlD);
  EXPECT_EQ(chat.wait().code, 0);
}

// Greedy, of text of the letters a and b.
GgufWriter file_with_template(const std::string& source) {
  auto file = tiny_gguf_metadata();
  add_tiny_tokenizer(file);
  add_tiny_tensors(file);
  if (!source.empty()) file.text("tokenizer.chat_template", source);
  return file;
}

TEST(ChatWithAGguf, FollowsTheTemplateOfTheFile) {
  const TinyProject project;
  project.write("m.gguf", file_with_template("b{% for m in messages %}{{ m.content }}{% endfor %}"
                                             "{% if add_generation_prompt %}b{% endif %}")
                              .bytes());
  project.write("prompts.jsonl", R"({"messages": [{"role": "user", "content": "aab"}]})");
  const std::vector<std::string> how = {"--dtype", "fp32", "--max-new-tokens", "5"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), how.begin(), how.end());
    return arguments;
  };
  const auto file =
      project.run(with({"generate", "m.gguf", "--prompts", "prompts.jsonl", "--out", "out.jsonl"}));
  ASSERT_EQ(file.code, 0) << file.err;
  const auto answer = base::parse_json(base::read_file(project.path("out.jsonl")));
  EXPECT_EQ(answer.at("prompt_tokens"), 4) << "b a ab b";
  const auto chat = run(with({"chat", "m.gguf"}), "aab\n", project.path());
  ASSERT_EQ(chat.code, 0) << chat.err;
  EXPECT_EQ(chat.out, answer.at("answer").get<std::string>() + "\n");
}

TEST(ChatWithAGguf, NamesWhatIsWrongWithItsTemplate) {
  const TinyProject project;
  project.write("none.gguf", file_with_template("").bytes());
  project.write("include.gguf", file_with_template("{{ bos_token }}\n{% include 'other' %}").bytes());
  const auto refusal = [&](const char* file) {
    const auto chat = run({"chat", file}, "ab\n", project.path());
    EXPECT_EQ(chat.code, 4) << chat.err;
    return chat.err;
  };
  EXPECT_SAYS(refusal("none.gguf"), "none.gguf");
  EXPECT_SAYS(refusal("none.gguf"), "template");
  const auto include = refusal("include.gguf");
  EXPECT_SAYS(include, "include.gguf");
  EXPECT_SAYS(include, "include");
  EXPECT_SAYS(include, "line 2");
}

}  // namespace
}  // namespace retort::test
