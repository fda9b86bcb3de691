#pragma once
// Ctrl-C and SIGTERM ask a run to finish its step and save; a second one ends the process at once.

namespace retort::cli {

/// Installs the handlers; call it once, before threads start.
void catch_interrupts(bool tell = true);
bool interrupted();

}  // namespace retort::cli
