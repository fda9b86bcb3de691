#pragma once
// Options of the commands that make text.

#include "retort/pipeline/pipeline.h"

namespace CLI {
class App;
}

namespace retort::cli {

/// --max-new-tokens, --temperature, --top-k and so on.
void add_sampling_options(CLI::App& app, pipeline::TextRequest& text);

}  // namespace retort::cli
