#pragma once
// What every refusal has in common.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/tiny_project.h"

namespace retort::test {

/// The lines of standard error that are not log lines.
inline std::string said(const std::string& err) {
  const auto at = err.find("retort: ");
  return at == std::string::npos ? err : err.substr(at);
}

/// The program ended with this code, said one sentence that names the culprit, and the project is as it was.
inline void expect_refusal(const TinyProject& project, const std::vector<std::string>& arguments, int code,
                           const std::string& culprit) {
  const auto before = files_below(project.path());
  const Finished finished = project.run(arguments);
  EXPECT_EQ(finished.code, code) << finished.err;
  EXPECT_EQ(finished.out, "");
  const std::string message = said(finished.err);
  EXPECT_EQ(message.rfind("retort: error: ", 0), 0U) << finished.err;
  EXPECT_NE(message.find(culprit), std::string::npos) << "expected " << culprit << " in\n" << finished.err;
  EXPECT_TRUE(code == 6 || std::count(message.begin(), message.end(), '\n') == 1)
      << message;  // 6 has a table
  EXPECT_TRUE(files_below(project.path()) == before) << "something was left or changed";
}

}  // namespace retort::test
