#pragma once
// The door of a module that links one MPI library.  The program looks for it only when a launcher of that
// library has started it, so it runs where there is no MPI.

#include "retort/comm/group.h"

/// The release that the module belongs to; another one's has other types.
extern "C" const char* retort_mpi_release();

/// Starts MPI and gives the group of all ranks, to be deleted by the caller; the last group ends MPI.
/// `launched_ranks`: as the launcher says.  `last_words`, which may be null, is told why a process is ended
/// from within, where nothing can be thrown.  Throws EnvironmentError, where MPI does not know the ranks.
extern "C" retort::comm::Group* retort_mpi_world(int launched_ranks, retort::comm::LastWords last_words);
