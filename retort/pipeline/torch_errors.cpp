#include "retort/pipeline/torch_errors.h"

#include <ATen/ATen.h>

#include <string>

#include "retort/base/as_errors.h"
#include "retort/base/error.h"

namespace retort::pipeline {
namespace {

bool is_out_of_memory(const c10::Error& error) {
  // The processor's allocator has no error type of its own.
  const std::string text = error.what_without_backtrace();
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) ||
         text.find("not enough memory") != std::string::npos ||
         text.find("can't allocate memory") != std::string::npos;
}

}  // namespace

void translate_torch_errors(const std::function<void()>& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    base::require<base::MemoryError>(!is_out_of_memory(error), base::out_of_memory());
    const std::string text = error.what_without_backtrace();
    throw base::InternalError(base::join("libtorch: ", text.substr(0, text.find('\n'))));
  }
}

}  // namespace retort::pipeline
