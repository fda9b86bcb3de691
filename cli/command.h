#pragma once
// A subcommand: declares its options on a CLI::App and returns what to do once they are parsed.

#include <functional>
#include <string>
#include <vector>

#include "retort/base/error.h"

namespace CLI {
class App;
}

namespace retort::cli {

/// Runs the command; results go to standard output, everything else to standard error.
using Action = std::function<base::ExitCode()>;

Action declare_run(CLI::App& app);
Action declare_eval(CLI::App& app);
Action declare_generate(CLI::App& app);
Action declare_chat(CLI::App& app);
Action declare_export(CLI::App& app);
Action declare_verify(CLI::App& app);
Action declare_tokenize(CLI::App& app);
Action declare_detokenize(CLI::App& app);
Action declare_info(CLI::App& app);
Action declare_families(CLI::App& app);
Action declare_autopsy(CLI::App& app);
Action declare_doctor(CLI::App& app);
Action declare_bench(CLI::App& app);
Action declare_recipe(CLI::App& app);
Action declare_data(CLI::App& app);
Action declare_help(CLI::App& app);
Action declare_version(CLI::App& app);
Action declare_completion(CLI::App& app);

/// Runs it, with the errors of the system as StorageError and MemoryError: what their user is told.
base::ExitCode translated(const Action& act);

/// The command line that started this process.
const std::vector<std::string>& command_line();

}  // namespace retort::cli
