#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "retort/architecture/description.h"

namespace retort::cli {

Action declare_families(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort families                               all families\n"
      "  retort info DIRECTORY                         what one model computes, and what may be pruned of "
      "it");
  return [] {
    std::cout << architecture::families_text();
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
