#pragma once
// Ctrl-C, SIGTERM and SIGUSR1 ask a run to finish its step and save.  The same signal again, half a second
// later or more, ends the process at once.

namespace retort::cli {

/// Installs the handlers; call it once, before threads start.
void catch_interrupts(bool tell = true);
bool interrupted();

}  // namespace retort::cli
