#include "cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <streambuf>
#include <string>

#include "retort/base/printable.h"
#include "retort/base/utf8.h"

namespace retort::cli {
namespace {

// Of UTF-8, told from its first byte.
std::size_t wanted_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
}

// Bytes at the end of a text that the next ones may make a character.
std::size_t begun_bytes(std::string_view text) {
  for (std::size_t count = 1; count <= 3 && count <= text.size(); ++count) {
    const char first = text[text.size() - count];
    if (!base::is_utf8_continuation(first)) return wanted_bytes(first) > count ? count : 0;
  }
  return 0;
}

class StandardOutput : public std::streambuf {
 public:
  StandardOutput() : is_terminal_(::isatty(STDOUT_FILENO) != 0) {}

  bool goes_on = false;  ///< without a reader
  void write_exact_text() { exact_ = !is_terminal_; }
  bool shows_colors() const {
    const char* no_color = std::getenv("NO_COLOR");
    return is_terminal_ && (!no_color || !*no_color);
  }
  // An escape sequence of ours.
  bool write_sequence(std::string_view sequence) { return write(0) && write_all(sequence); }

 protected:
  int_type overflow(int_type next) override {
    if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
    const char one = traits_type::to_char_type(next);
    return xsputn(&one, 1) == 1 ? next : traits_type::eof();
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    text_.append(bytes, static_cast<std::size_t>(count));
    const bool due = text_.size() >= kBufferBytes || (is_terminal_ && text_.ends_with('\n'));
    return !due || write(begun_bytes(text_)) ? count : 0;
  }
  int sync() override { return write(0) ? 0 : -1; }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

  // All but the last `kept` bytes.
  bool write(std::size_t kept) {
    const auto whole = std::string_view(text_).substr(0, text_.size() - kept);
    const bool written = write_all(exact_ ? std::string(whole) : base::printable(whole, base::Newlines::all));
    text_.erase(0, whole.size());
    return written;
  }
  bool write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return (errno == EPIPE || (errno == EIO && is_terminal_)) && without_reader();
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool without_reader() const {
    if (goes_on) return true;
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
    return false;
  }

  const bool is_terminal_;
  bool exact_ = false;
  std::string text_;
};

// Never destroyed: std::cout writes its last bytes after all else is gone.
StandardOutput& standard_output() {
  static auto& output = *new StandardOutput;
  return output;
}

void open_closed_ones() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDWR) < 0) return;
}

}  // namespace

void take_standard_streams() {
  open_closed_ones();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  std::cout.rdbuf(&standard_output());
}

void go_on_without_reader() {
  standard_output().goes_on = true;
}

void write_exact_text() {
  standard_output().write_exact_text();
}

void write_marked(std::string_view text) {
  if (!standard_output().shows_colors()) {
    std::cout << "[[" << text << "]]";
    return;
  }
  std::cout.flush();
  standard_output().write_sequence("\033[32m");
  std::cout << text << std::flush;
  standard_output().write_sequence("\033[m");
}

void say(std::string_view beginning, std::string_view text, std::string_view end) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string line(beginning);
  line += base::printable(text, base::Newlines::indented);
  line.append(end).append("\n");
  std::fputs(line.c_str(), stderr);
}

}  // namespace retort::cli
