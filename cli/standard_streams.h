#pragma once
// The three streams that a process begins with.  Nothing raw from a file reaches a terminal through them,
// none of them is taken for one of our files, and a run outlives those who listen to it.

#include <string_view>

namespace retort::cli {

/// Opens those that are closed on /dev/null, so that no file of ours gets their numbers; has a write beyond a
/// limit or to a reader who has gone fail instead of ending the process; and lets std::cout write printable
/// text only, with newlines and tabs.  Call it first of all.
void take_standard_streams();

/// From here on what nobody reads any more on standard output is dropped.  Otherwise the process ends by
/// SIGPIPE at its next write, as every filter does.
void go_on_without_reader();

/// std::cout writes bytes as they are, where standard output is no terminal.
void write_exact_text();

/// Writes text to std::cout that is told from what is around it: green on a terminal that shows colours
/// (NO_COLOR), else in [[ ]].
void write_marked(std::string_view text);

/// What stands before the sentence of an error, and before what is a mistake of ours.
inline constexpr const char *kError = "error: ", *kInternalError = "internal error, please report it: ";

/// Writes a line to standard error: the text printable, with its indented rows, between a beginning and an
/// end of ours.
void say(std::string_view beginning, std::string_view text, std::string_view end = "");

}  // namespace retort::cli
