#include "cli/cut_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "retort/base/error.h"
#include "retort/base/printable.h"

namespace retort::cli {
namespace {

// All below runs within a signal: system calls and the stack, nothing else.

struct MapsFile {
  int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  char bytes[512];
  ssize_t size = 0, at = 0;
  ~MapsFile() {
    if (file >= 0) ::close(file);
  }
  int next() {
    if (at == size) {
      size = ::read(file, bytes, sizeof bytes);
      at = 0;
    }
    return size > 0 ? static_cast<unsigned char>(bytes[at++]) : -1;
  }
};

std::uintptr_t hexadecimal(const char*& text) {
  std::uintptr_t value = 0;
  for (;; ++text) {
    const char c = *text;
    if (c >= '0' && c <= '9')
      value = value * 16 + static_cast<std::uintptr_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value * 16 + static_cast<std::uintptr_t>(c - 'a' + 10);
    else
      return value;
  }
}

// "begin-end rw-p offset device inode   /path"; null where the line is of another place or has no path.
const char* path_of(const char* line, std::uintptr_t address) {
  const auto begin = hexadecimal(line);
  if (*line++ != '-') return nullptr;
  const auto end = hexadecimal(line);
  return begin <= address && address < end ? std::strchr(line, '/') : nullptr;
}

void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void say_path(std::string_view path) {
  while (!path.empty()) {
    const auto bytes = base::printable_bytes(path);
    if (::write(STDERR_FILENO, bytes > 0 ? path.data() : "?", std::max<std::size_t>(1, bytes)) < 0) return;
    path.remove_prefix(std::max<std::size_t>(1, bytes));
  }
}

[[noreturn]] void end(const char* path) {
  const bool shared = std::strncmp(path, "/dev/shm/", 9) == 0 || std::strncmp(path, "/memfd:", 7) == 0;
  say("retort: error: ");
  say_path(path);
  say(shared ? ": shared memory is full; enlarge /dev/shm or start fewer ranks on this machine.\n"
             : ": it was cut short by another program while it was read, or its disk failed; start again "
               "with a complete file.\n");
  ::_exit(static_cast<int>(shared ? base::ExitCode::memory : base::ExitCode::model));
}

bool is_device(const char* path) {
  return std::strncmp(path, "/dev/", 5) == 0 && std::strncmp(path, "/dev/shm/", 9) != 0;
}

extern "C" void on_bus_error(int signal, siginfo_t* information, void*) {
  if (information->si_code != BUS_ADRERR) {  // of a process, or of broken memory
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  char line[4608];  // a path has at most 4096 bytes
  std::size_t length = 0;
  for (MapsFile maps; maps.file >= 0;) {
    const int c = maps.next();
    if (c >= 0 && c != '\n') {
      if (length + 1 < sizeof line) line[length++] = static_cast<char>(c);
      continue;
    }
    line[length] = '\0';
    if (const char* path = path_of(line, address); path && !is_device(path)) end(path);
    if (c < 0) break;
    length = 0;
  }
  ::signal(signal, SIG_DFL);  // the same place faults again, as without us
}

}  // namespace

void end_where_a_file_was_cut() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace retort::cli
