#pragma once
// `retort bench generate`.

#include "cli/command.h"

namespace retort::cli {

Action declare_bench_generate(CLI::App& app);

}  // namespace retort::cli
