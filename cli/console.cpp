#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/standard_streams.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/base/units.h"

namespace retort::cli {
namespace {

using record::Level;

constexpr std::chrono::milliseconds kLiveInterval{100};
constexpr std::chrono::seconds kPlainInterval{5};

Level least_level(Verbosity verbosity) {
  if (verbosity == Verbosity::quiet) return Level::warning;
  return verbosity == Verbosity::verbose ? Level::debug : Level::info;
}

const char* color_of(Level level) {
  switch (level) {
    case Level::debug:
      return "\033[36m";
    case Level::info:
      return "\033[32m";
    case Level::warning:
      return "\033[33m\033[1m";
    case Level::error:
      return "\033[31m\033[1m";
  }
  return "";
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char text[16];
  return {text, std::strftime(text, sizeof text, "%H:%M:%S", ::localtime_r(&now, &local))};
}

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return (!no_color || !*no_color) && ::isatty(STDERR_FILENO) != 0;
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

void add_verbosity(CLI::App& app, Verbosity& verbosity) {
  app.add_flag_callback(
      "-q,--quiet", [&verbosity] { verbosity = Verbosity::quiet; }, "Warnings and errors only");
  app.add_flag_callback(
      "-v,--verbose", [&verbosity] { verbosity = Verbosity::verbose; }, "Tell more");
}

Console::Console(Verbosity verbosity)
    : verbosity_(verbosity),
      terminal_(verbosity != Verbosity::quiet && ::isatty(STDERR_FILENO) != 0),
      color_(wants_color()) {}

Console::~Console() {
  clear_live_line();
}

void Console::clear_live_line() {
  if (live_) std::fputs("\r\033[K", stderr);
  live_ = false;
}

void Console::message(Level level, std::string_view text) {
  if (level < least_level(verbosity_)) return;
  clear_live_line();
  const char* mark = level == Level::warning ? "warning: " : level == Level::error ? "error: " : "";
  print_line(level, base::join(mark, text));
}

void Console::print_line(Level level, const std::string& line) {
  say(base::join(time_of_day(), " ", color_ ? color_of(level) : ""), line, color_ ? "\033[m" : "");
}

void Console::show(const std::string& line, bool last) {
  if (verbosity_ == Verbosity::quiet) return;
  const auto now = Clock::now();
  const bool due =
      now - last_shown_ >= (terminal_ ? Clock::duration(kLiveInterval) : Clock::duration(kPlainInterval));
  if (!last && !due) return;
  last_shown_ = now;
  clear_live_line();
  if (last || !terminal_) {
    print_line(Level::info, line);
    return;
  }
  std::fprintf(stderr, "\r%s", base::printable(line).substr(0, terminal_width() - 1).c_str());
  std::fflush(stderr);
  live_ = true;
}

void Console::step(const record::StepReport& report) {
  show(step_line(report), report.step == report.steps || report.held_out_loss);
}

void Console::progress(std::string_view what, std::int64_t done, std::int64_t total) {
  const auto now = Clock::now();
  if (course_.what != what || done < course_.first) course_ = {std::string(what), done, now};
  const double seconds = std::chrono::duration<double>(now - course_.begin).count();
  show(progress_line(what, course_.first, done, total, seconds), total > 0 && done == total);
}

bool Console::stop_requested() const {
  return interrupted();
}

std::string progress_line(std::string_view what, std::int64_t first, std::int64_t done, std::int64_t total,
                          double seconds) {
  if (total <= 0) return base::join(what, "  ", done);
  constexpr std::int64_t kCells = 20;
  const auto filled = static_cast<std::size_t>(std::clamp<std::int64_t>(done * kCells / total, 0, kCells));
  std::string line = base::join(what, "  [", std::string(filled, '#'), std::string(kCells - filled, '-'),
                                "]  ", done, "/", total);
  // Texts become tokens at a rate that says whether to wait.
  if (done > first && what.ends_with("tokens") && seconds >= 1)
    line += "  " + base::human_count(static_cast<double>(done - first) / seconds) + " tokens/s";
  if (done > first && done < total && seconds >= 1)
    line +=
        "  " +
        base::human_seconds(seconds * static_cast<double>(total - done) / static_cast<double>(done - first)) +
        " left";
  return line;
}

std::string step_line(const record::StepReport& report) {
  std::string line =
      base::join(report.stage, "  ", report.step, "/", report.steps, "  loss ", fixed(report.loss, 4));
  if (report.parts.size() > 1) {
    line += " (";
    for (const auto& [name, value] : report.parts)
      line += base::join(line.back() == '(' ? "" : ", ", name, " ", fixed(value, 3));
    line += ")";
  }
  if (!report.written_parts.empty()) {
    line += "  written (";
    for (const auto& [name, value] : report.written_parts)
      line += base::join(line.back() == '(' ? "" : ", ", name, " ", fixed(value, 3));
    line += ")";
  }
  if (report.held_out_loss) line += "  held-out " + fixed(*report.held_out_loss, 4);
  line += "  " + base::human_count(report.tokens_per_second) + " tokens/s";
  if (report.peak_fraction) line += "  " + fixed(100 * *report.peak_fraction, 0) + " % of peak";
  if (report.writing_fraction) line += "  " + fixed(100 * *report.writing_fraction, 0) + " % writing";
  if (report.eta_seconds) line += "  " + base::human_seconds(*report.eta_seconds) + " left";
  return line;
}

}  // namespace retort::cli
