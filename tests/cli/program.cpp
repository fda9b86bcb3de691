#include "cli/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/outside_data.h"
#include "support/temporary_directory.h"

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

Finished run(const std::vector<std::string>& arguments, const std::string& input,
             const std::filesystem::path& directory) {
  const char* program = std::getenv("RETORT_PROGRAM");
  if (!program) throw std::runtime_error("RETORT_PROGRAM is not set; run the tests through ctest.");
  const TemporaryDirectory files;
  const std::filesystem::path place = directory.empty() ? source() : directory;
  std::ofstream(files.path() / "in", std::ios::binary) << input;
  std::vector<char*> argv{const_cast<char*>("retort")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    redirect(files.path() / "in", O_RDONLY, STDIN_FILENO);
    redirect(files.path() / "out", O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(files.path() / "err", O_WRONLY | O_CREAT, STDERR_FILENO);
    if (::chdir(place.c_str()) == 0) ::execv(program, argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content(files.path() / "out"),
          content(files.path() / "err"), seconds.count()};
}

}  // namespace retort::test
