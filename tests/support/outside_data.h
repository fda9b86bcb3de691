#pragma once
// Where the tests find what they do not make themselves.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace retort::test {

/// The directory that an environment variable names; empty when it names none.
inline std::filesystem::path directory_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::filesystem::path() : std::filesystem::path(value);
}

/// Outputs of the oracle module `part`; a test without them fails.
inline std::filesystem::path oracles(const std::string& part) {
  const std::filesystem::path directory = directory_of("RETORT_ORACLES") / part;
  if (!std::filesystem::is_directory(directory))
    throw std::runtime_error("RETORT_ORACLES: no directory '" + directory.string() +
                             "'; run the tests through ctest.");
  return directory;
}

/// The repository.
inline std::filesystem::path source() {
  const std::filesystem::path directory = directory_of("RETORT_SOURCE");
  if (directory.empty()) throw std::runtime_error("RETORT_SOURCE is not set; run the tests through ctest.");
  return directory;
}

}  // namespace retort::test

/// Ends a test early where the file of a model that people use is not on this machine.
#define RETORT_GGUF_OR_SKIP(variable)                      \
  const char* const variable = std::getenv("RETORT_GGUF"); \
  if (variable == nullptr) GTEST_SKIP() << "needs extra data: RETORT_GGUF is not set"

/// Ends a test early where the extra data set is not on this machine.  This and support/own_disk.h have the
/// only reasons for which a test may be skipped; tools/run_tests refuses any other.
#define RETORT_SHARED_DATA_OR_SKIP(variable)                                               \
  const std::filesystem::path variable = retort::test::directory_of("RETORT_SHARED_DATA"); \
  if (variable.empty()) GTEST_SKIP() << "needs extra data: RETORT_SHARED_DATA is not set"
