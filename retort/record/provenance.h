#pragma once
// Where a result comes from: program, compiler, machine, command.  Stages add the hashes of what they read.

#include <string>
#include <vector>

#include "retort/base/json.h"

namespace retort::record {

/// "0.1.0"
std::string version();
/// "0.1.0 (git 3364fcc, g++ 12.2.0)"
std::string long_version();

struct Provenance {
  std::vector<std::string> command;  ///< program and arguments
  std::string torch_version;         ///< of the library in use; empty: none was loaded
  int threads = 0;                   ///< used for computing; 0: not set
};

/// version, git, compiler, torch, command, directory, host, processor with its vector features, cores,
/// threads, memory_bytes, system, started (UTC).
base::Json describe(const Provenance& provenance);

}  // namespace retort::record
