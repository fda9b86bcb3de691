#pragma once
// A file that another program cuts short while it is mapped has pages that cannot be read any more, and
// shared memory that is full has none to give.  The kernel says so by a signal, SIGBUS, in the middle of a
// computation, where nothing can be thrown.

namespace retort::cli {

/// From now on that ends the process with one sentence, and the code for a model that cannot be read or for
/// memory that does not suffice, as if it had been seen before.  Whatever else sends the signal is left to
/// the kernel.
void end_where_a_file_was_cut();

}  // namespace retort::cli
