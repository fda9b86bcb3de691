// The program: a table of commands, and one place where errors become a line on standard error and an exit
// code.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/cut_files.h"
#include "cli/ranks.h"
#include "cli/standard_streams.h"
#include "retort/base/as_errors.h"
#include "retort/base/units.h"
#include "retort/record/provenance.h"

namespace retort::cli {
namespace {

std::vector<std::string> arguments;

// Given back where memory has run out, so that there is some to say so.
auto spare_memory = std::make_unique<char[]>(std::size_t{1} << 16);
// Made before they are needed, for when there is no memory to make one.
std::string without_memory =
    std::string(kError) + "out of memory; raise the limit of this process (ulimit -v).";
std::string without_reason = std::string(kInternalError) + "the program ended itself";

struct Command {
  const char* name;
  const char* summary;
  Action (*declare)(CLI::App&);
};

constexpr Command kCommands[] = {
    {"run", "Run the stages of a recipe; started again, go on where it stopped", declare_run},
    {"eval", "Perplexity, bits per byte and likeness to a teacher on text", declare_eval},
    {"generate", "Let a model continue texts", declare_generate},
    {"chat", "Talk with a model", declare_chat},
    {"export", "Write a model for transformers, vLLM, llama.cpp or Ollama, with proof", declare_export},
    {"verify", "Check what was exported against its certificate", declare_verify},
    {"tokenize", "Text to token ids", declare_tokenize},
    {"detokenize", "Token ids to text", declare_detokenize},
    {"info", "What a model, checkpoint or run is", declare_info},
    {"families", "Which families of models are read, and by which keys of config.json", declare_families},
    {"autopsy", "Which rank ended a job of several, and where each one was", declare_autopsy},
    {"doctor", "What this machine offers to a run, and what would go wrong", declare_doctor},
    {"bench", "How fast this machine is, and which sizes of a model run well on it", declare_bench},
    {"data", "What text holds, before anything learns from it", declare_data},
    {"recipe", "Keys of recipes; a recipe with all defaults", declare_recipe},
    {"help", "Help of the program or of one command", declare_help},
    {"version", "Which version this is, and what it was built with", declare_version},
    {"completion", "What a shell needs to complete commands and options", declare_completion},
};

int fail(base::ExitCode code, const std::string& message) {
  say("retort: ", message);
  return static_cast<int>(code);
}

/// Errors of libraries may go on with traces that help nobody at a terminal.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

int guarded(const Action& action) try {
  const base::ExitCode code = translated(action);
  std::cout.flush();
  base::require<base::StorageError>(std::cout.good(),
                                    "standard output: cannot be written; is the disk full?");
  return static_cast<int>(code);
} catch (const base::Error& error) {
  return fail(error.code(), base::join(kError, error.what()));
} catch (const std::bad_alloc&) {  // there was no memory for the sentence either
  spare_memory.reset();
  return fail(base::ExitCode::memory, base::join(kError, base::out_of_memory()));
} catch (const std::exception& error) {
  return fail(base::ExitCode::internal, base::join(kInternalError, first_line(error.what())));
}

/// What is wrong with a command line, and which help says more.
std::string advice(const CLI::ParseError& error) {
  const std::string first = arguments.size() > 1 ? arguments[1] : "";
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (known) return base::join(kError, first, ": ", error.what(), "; see retort ", first, " --help.");
  if (first.empty() || first.starts_with('-'))
    return base::join(kError, error.what(), "; see retort --help.");
  const std::string near = base::nearest(first, names);
  return base::join(kError, "unknown command '", first, "'",
                    near.empty() ? "" : "; did you mean '" + near + "'?",
                    near.empty() ? "; see retort --help." : "");
}

base::ExitCode parse_and_run(int argc, char** argv) {
  CLI::App app("Makes language models smaller: prunes, sparsifies, distils and measures them.", "retort");
  app.set_version_flag("--version", record::long_version());
  app.require_subcommand(1);
  app.footer(
      "retort COMMAND --help has options and examples.\nExit codes: 0 ok, 2 usage, 3 data, 4 model, 5 "
      "environment, "
      "6 memory, 7 storage, 17 validation, 75 another rank failed, 85 stopped and saved, 99 bug.");
  Action chosen;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->callback([&chosen, action = command.declare(*sub)] { chosen = action; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return static_cast<base::ExitCode>(app.exit(help));
  } catch (const CLI::ParseError& error) {
    return static_cast<base::ExitCode>(fail(base::ExitCode::usage, advice(error)));
  }
  return chosen();
}

/// Where no caller catches what is thrown: in a thread of its own, or while a library is loaded.
[[noreturn]] void end_uncaught() {
  spare_memory.reset();
  auto code = base::ExitCode::internal;
  std::string sentence;
  sentence.swap(without_reason);
  try {
    if (const auto thrown = std::current_exception())
      base::as_errors([&] { std::rethrow_exception(thrown); });
  } catch (const base::Error& error) {
    code = error.code();
    sentence = base::join(kError, error.what());
  } catch (const std::bad_alloc&) {
    code = base::ExitCode::memory;
    sentence.swap(without_memory);
  } catch (const std::exception& error) {
    sentence = base::join(kInternalError, first_line(error.what()));
  } catch (...) {
  }
  if (!end_other_ranks(sentence)) say("retort: ", sentence);
  ::_exit(static_cast<int>(code));
}

bool main_has_returned = false;

/// OpenMP ends the process with code 1, which is none of ours, where it gets no thread.
void end_by_a_library(int status, void*) {
  if (main_has_returned || status != EXIT_FAILURE) return;
  const auto sentence =
      base::join(kError,
                 "the system starts no more threads; raise the limit of processes (ulimit -u) "
                 "or of memory (ulimit -v).");
  if (!end_other_ranks(sentence)) say("retort: ", sentence);
  ::_exit(static_cast<int>(base::ExitCode::environment));
}

}  // namespace

base::ExitCode translated(const Action& act) {
  auto code = base::ExitCode::ok;
  base::as_errors([&] { code = act(); });
  return code;
}

const std::vector<std::string>& command_line() {
  return arguments;
}

}  // namespace retort::cli

int main(int argc, char** argv) {
  using namespace retort::cli;
  take_standard_streams();
  end_where_a_file_was_cut();
  std::set_terminate(end_uncaught);
  ::on_exit(end_by_a_library, nullptr);
  const int code = guarded([&] {
    arguments.assign(argv, argv + argc);
    return parse_and_run(argc, argv);
  });
  main_has_returned = true;
  return code;
}
