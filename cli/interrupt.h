#pragma once
// Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP (the terminal is gone) ask a run to finish its step and save.  The same
// signal again, half a second later or more, ends the process at once; SIGHUP does not, because a shell and
// the system send one each.

namespace retort::cli {

/// Installs the handlers; call it once, before threads start.
void catch_interrupts(bool tell = true);
bool interrupted();

}  // namespace retort::cli
