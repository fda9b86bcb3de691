#pragma once
// Errors: one type per party at fault.  A message is one sentence: who, what was expected, what was found,
// what to do. The library throws; only the program prints and exits, with the code that belongs to the type
// (docs/exit-codes.md).

#include <sstream>
#include <stdexcept>
#include <string>

namespace retort::base {

/// Process exit codes; job scripts branch on them, so a value never changes its meaning.
enum class ExitCode : int {
  ok = 0,
  usage = 2,        ///< command line or recipe
  data = 3,         ///< a text source is not what it claims
  model = 4,        ///< a model or tokenizer file is invalid or not supported
  environment = 5,  ///< device, library or machine
  memory = 6,       ///< the plan does not fit
  storage = 7,      ///< disk full, read-only, locked
  validation = 17,  ///< a result failed its own check, for example a non-finite loss
  temporary = 75,   ///< another rank or the machine failed; start again to go on
  stopped = 85,     ///< stopped on request, state saved, start again to go on
  internal = 99,    ///< a bug in Retort
};

/// Base of all errors that Retort throws.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

template <ExitCode kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message) : Error(kCode, message) {}
};

using UsageError = ErrorOf<ExitCode::usage>;
using DataError = ErrorOf<ExitCode::data>;
using ModelError = ErrorOf<ExitCode::model>;
using EnvironmentError = ErrorOf<ExitCode::environment>;
using MemoryError = ErrorOf<ExitCode::memory>;
using StorageError = ErrorOf<ExitCode::storage>;
using ValidationError = ErrorOf<ExitCode::validation>;
using PeerError = ErrorOf<ExitCode::temporary>;
using InternalError = ErrorOf<ExitCode::internal>;

/// What all say of memory that ran out in the middle of work.
inline constexpr const char* kOutOfMemory = "out of memory; use shorter sequences or smaller micro-batches.";

/// Throws the error type that belongs to `code`, for one that came from elsewhere.
[[noreturn]] void throw_error(ExitCode code, const std::string& message);

/// Concatenates anything that streams.
template <typename... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return out.str();
}

/// Throws `E` with the joined parts as message unless `ok`.
template <typename E, typename... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw E(join(parts...));
}

/// Throws InternalError unless `ok`: for what only a bug of ours can break; kept in release builds.
void ensure(bool ok, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// The sentence of errno `code`, for example "No space left on device".
std::string system_message(int code);

}  // namespace retort::base
