#include "retort/pipeline/library.h"

extern "C" const retort::pipeline::Library* retort_library() {
  static constexpr retort::pipeline::Library kLibrary{&retort::pipeline::run, &retort::pipeline::evaluate,
                                                      &retort::pipeline::generate};
  return &kLibrary;
}
