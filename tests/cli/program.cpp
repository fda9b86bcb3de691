#include "cli/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/outside_data.h"

namespace retort::test {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void redirect(const std::filesystem::path& path, int flags, int descriptor) {
  const int file = ::open(path.c_str(), flags, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
}

}  // namespace

Running::Running(const std::vector<std::string>& arguments, const std::string& input,
                 const std::filesystem::path& directory, const std::function<void()>& prepare) {
  const char* program = std::getenv("RETORT_PROGRAM");
  if (!program) throw std::runtime_error("RETORT_PROGRAM is not set; run the tests through ctest.");
  const std::filesystem::path place = directory.empty() ? source() : directory;
  std::ofstream(files_ / "in", std::ios::binary) << input;
  std::vector<char*> argv{const_cast<char*>("retort")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  redirect(files_ / "in", O_RDONLY, STDIN_FILENO);
  redirect(files_ / "out", O_WRONLY | O_CREAT, STDOUT_FILENO);
  redirect(files_ / "err", O_WRONLY | O_CREAT, STDERR_FILENO);
  if (prepare) prepare();
  if (::chdir(place.c_str()) == 0) ::execv(program, argv.data());
  ::_exit(127);
}

Running::~Running() {
  if (pid_ <= 0 || ended()) return;
  signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  std::vector<pid_t> found;
  for (pid_t child; list >> child;) found.push_back(child);
  return found;
}

void Running::signal(int number) const {
  ::kill(pid_, number);
}

std::string Running::err() const {
  return content(files_ / "err");
}

bool Running::ended() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

Finished Running::wait() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, 0) == pid_;
  return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), content(files_ / "out"),
          err()};
}

Finished run(const std::vector<std::string>& arguments, const std::string& input,
             const std::filesystem::path& directory, const std::function<void()>& prepare) {
  return Running(arguments, input, directory, prepare).wait();
}

}  // namespace retort::test
