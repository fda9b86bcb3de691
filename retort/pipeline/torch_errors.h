#pragma once
// Errors of libtorch in Retort's words: they come with a stack trace, which says nothing to the person at the
// terminal.

#include <functional>

namespace retort::pipeline {

/// Runs `work`; what libtorch throws becomes MemoryError (an allocation failed) or InternalError of one
/// sentence.
void translate_torch_errors(const std::function<void()>& work);

}  // namespace retort::pipeline
