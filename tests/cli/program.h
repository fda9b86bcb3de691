#pragma once
// Runs the program as a person or script does.

#include <filesystem>
#include <string>
#include <vector>

namespace retort::test {

struct Finished {
  int code = -1;  ///< exit code; 128 + signal when a signal ended it
  std::string out;
  std::string err;
  double seconds = 0;
};

/// Runs RETORT_PROGRAM with these arguments, in the repository unless `directory` says otherwise.
Finished run(const std::vector<std::string>& arguments, const std::string& input = "",
             const std::filesystem::path& directory = {});

}  // namespace retort::test
