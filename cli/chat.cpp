#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/recipe_source.h"
#include "cli/text_options.h"
#include "retort/base/printable.h"

namespace retort::cli {
namespace {

std::atomic<bool> interrupted_answer{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupted_answer(int /*signal*/) {
  interrupted_answer = true;
}

// Ctrl-C ends an answer, not the program; Ctrl-D ends the program.
void catch_interrupted_answers() {
  struct sigaction action {};
  action.sa_handler = on_interrupted_answer;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
}

// Lines from standard input; answers to standard output.
class Terminal : public pipeline::ChatPartner {
 public:
  explicit Terminal(bool names_models) : names_models_(names_models), asks_(::isatty(STDIN_FILENO) == 1) {}

  std::optional<std::string> ask() override {
    if (asks_) std::cerr << "> " << std::flush;
    std::string line;
    while (std::getline(std::cin, line) && line.find_first_not_of(" \t\r") == std::string::npos)
      if (asks_) std::cerr << "> " << std::flush;
    if (!std::cin || line == "/bye") return std::nullopt;
    interrupted_answer = false;
    return line;
  }
  void begin(const std::string& model) override {
    if (names_models_) std::cout << base::printable(model) << ": ";
    std::cout << std::flush;
  }
  void say(std::string_view piece) override {
    std::cout << base::printable(piece, base::Newlines::all) << std::flush;
  }
  void end(std::string_view note) override {
    std::cout << '\n' << std::flush;
    if (!note.empty()) std::cerr << '(' << base::printable(note) << ")\n";
  }
  bool stops() override { return interrupted_answer; }

 private:
  bool names_models_, asks_;
};

}  // namespace

Action declare_chat(CLI::App& app) {
  app.footer(
      "A line is a message. /reset begins anew, /system TEXT too, with that system message; /bye or Ctrl-D "
      "ends.\n"
      "Ctrl-C ends an answer.\n"
      "Examples:\n"
      "  retort chat MODEL\n"
      "  retort chat MODEL --compare SMALLER_MODEL --temperature 0");
  struct Options {
    pipeline::ModelRequest model;
    pipeline::ChatRequest request;
    std::string compare;
    Verbosity verbosity = Verbosity::normal;
  };
  auto options = std::make_shared<Options>();
  options->request.text.max_new_tokens = 512;
  app.add_option("MODEL", options->model.model, "Model directory or GGUF file, with a chat template")
      ->required();
  app.add_option("--compare", options->compare, "Another model, which answers the same");
  app.add_option("--system", options->request.system, "System message");
  app.add_option("--context", options->request.context,
                 "Tokens of a conversation, at most what the model was made for")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 24));
  add_sampling_options(app, options->request.text);
  add_place(app, options->model.device, options->model.dtype);
  add_verbosity(app, options->verbosity);
  return [options] {
    Console console(options->verbosity);
    options->request.models = {options->model};
    if (!options->compare.empty()) {
      options->request.models.push_back(options->model);
      options->request.models.back().model = options->compare;
    }
    catch_interrupted_answers();
    Terminal terminal(options->request.models.size() > 1);
    library().chat(options->request, terminal, console);
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
