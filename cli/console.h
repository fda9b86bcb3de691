#pragma once
// What a person sees while something runs: messages and one live line on a terminal, plain lines elsewhere.

#include <chrono>
#include <string>
#include <string_view>

#include "retort/record/observer.h"

namespace CLI {
class App;
}

namespace retort::cli {

enum class Verbosity { quiet, normal, verbose };

/// Adds --quiet and --verbose.
void add_verbosity(CLI::App& app, Verbosity& verbosity);

class Console : public record::Observer {
 public:
  /// Messages go to standard error; colours only on a terminal and without NO_COLOR.
  explicit Console(Verbosity verbosity);
  ~Console() override;

  void message(record::Level level, std::string_view text) override;
  void step(const record::StepReport& report) override;
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override;
  /// True after Ctrl-C or SIGTERM.
  bool stop_requested() const override;

 private:
  using Clock = std::chrono::steady_clock;

  void show(const std::string& line, bool last);
  void print_line(record::Level level, const std::string& line);
  void clear_live_line();

  Verbosity verbosity_;
  bool terminal_;
  bool color_;
  bool live_ = false;  ///< the cursor stands behind a live line
  Clock::time_point last_shown_{};

  /// What progress() tells of at present, and where it began.
  struct Course {
    std::string what = {};
    std::int64_t first = 0;
    Clock::time_point begin = {};
  };
  Course course_;
};

/// "prune: blocks compensated  [######--------------]  9/30  1 min 12 s left".  The time left follows from
/// how long it took from `first` to `done`; below a second it is not said.  Of tokens the rate is said too.
std::string progress_line(std::string_view what, std::int64_t first, std::int64_t done, std::int64_t total,
                          double seconds);

/// "teacher  12/120  loss 2.3456 (cross_entropy 2.1)  1.2 k tokens/s  61 % of peak  3 min 20 s left"
std::string step_line(const record::StepReport& report);

}  // namespace retort::cli
