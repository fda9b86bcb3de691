#pragma once
// README.md of what is handed out: what the model is, how it was made, how far it is the one it was made
// from, and how it is loaded.

#include <string>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::publish {

/// Writes README.md into `directory`.  `certificate`: its keys program, type, seen, model and checks;
/// `model`: what was exported, called `name`, whose retort.json says where it comes from; `measured`: tables
/// of text, or none.  Throws StorageError.
void write_card(const base::Json& certificate, const architecture::Config& config, const std::string& name,
                const base::Path& model, const std::string& measured, const base::Path& directory);

}  // namespace retort::publish
