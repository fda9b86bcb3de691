#pragma once
// What an error says.

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace retort::test {

/// The message of the `E` that `action` throws; anything else fails the test.
template <typename E, typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace retort::test

#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(part), std::string::npos) << (message)
