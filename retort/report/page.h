#pragma once
// A page that holds all that it needs: style, script and Chart.js.

#include <string>

#include "retort/report/html.h"

namespace retort::report {

/// The whole file.  It loads nothing, from the network or from disk.  `generator` names the command that
/// wrote it, near the beginning; empty: nothing does.
std::string page_of(const std::string& title, const Html& body, const std::string& generator = "");

/// The last line of every page.
Html page_footer();

}  // namespace retort::report
