#pragma once
// Runs the program as a person or script does.

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace retort::test {

struct Finished {
  int code = -1;  ///< exit code; 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

/// The program while it runs; killed with the object.
class Running {
 public:
  /// Starts RETORT_PROGRAM with these arguments, in the repository unless `directory` says otherwise;
  /// `prepare` runs in the new process first, for limits and variables.
  Running(const std::vector<std::string>& arguments, const std::string& input = "",
          const std::filesystem::path& directory = {}, const std::function<void()>& prepare = {});
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// What it has said on standard error so far.
  std::string err() const;
  bool ended();
  Finished wait();

 private:
  TemporaryDirectory files_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

/// The processes that a parent started, in their order.
std::vector<pid_t> children_of(pid_t parent);

/// Starts the program and waits for its end.
Finished run(const std::vector<std::string>& arguments, const std::string& input = "",
             const std::filesystem::path& directory = {}, const std::function<void()>& prepare = {});

/// True as soon as `condition` holds; false when the program ended or a minute passed without.
template <typename Condition>
bool wait_until(Running& running, Condition condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (running.ended() || std::chrono::steady_clock::now() > limit) return condition();
    ::usleep(1000);
  }
  return true;
}

}  // namespace retort::test
