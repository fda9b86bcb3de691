#pragma once
// Ranks that one command starts on its own machine: the program once for each rank, with an arena in common.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "retort/comm/group.h"

namespace retort::comm {

/// How a rank ended.
struct RankEnd {
  int code = 0;          ///< exit code, where it ended by itself
  std::string sentence;  ///< of one that a signal ended: what the first of all ended with; else empty
};

/// Where a rank was when its process ended, as last_place() says it; empty where that is not known.  Throws
/// nothing.
using LastPlace = std::function<std::string(int rank, int process)>;

/// Starts this program `ranks` times with the same command line and returns when all have ended.  A signal to
/// this process that asks to stop goes on to all.  Each rank has its share of the processors, unless
/// OMP_NUM_THREADS says otherwise.  Throws UsageError, EnvironmentError.
std::vector<RankEnd> run_local_ranks(int ranks, const std::vector<std::string>& command,
                                     const LastPlace& last_place = {});

/// Whether run_local_ranks() started this process.
bool is_local_rank();

/// The group of all ranks, in a process that run_local_ranks() started.  Throws EnvironmentError.
std::unique_ptr<Group> local_group();

}  // namespace retort::comm
