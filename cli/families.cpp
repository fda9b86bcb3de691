#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "retort/architecture/description.h"

namespace retort::cli {

Action declare_families(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort families                               all families\n"
      "  retort families --keys                        what each reads of config.json\n"
      "  retort info DIRECTORY                         what one model computes, and what may be pruned of "
      "it");
  const auto keys = std::make_shared<bool>(false);
  app.add_flag("--keys", *keys, "Print the keys of config.json instead, with what an absent one means");
  return [keys] {
    std::cout << (*keys ? architecture::family_keys_text() : architecture::families_text());
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
