#include "retort/pipeline/library.h"

extern "C" const retort::pipeline::Library* retort_library() {
  static constexpr retort::pipeline::Library kLibrary{&retort::pipeline::run,
                                                      &retort::pipeline::evaluate,
                                                      &retort::pipeline::evaluate_tasks,
                                                      &retort::pipeline::generate,
                                                      &retort::pipeline::generate_file,
                                                      &retort::pipeline::generate_corpus,
                                                      &retort::pipeline::chat,
                                                      &retort::pipeline::bench_gemm,
                                                      &retort::pipeline::bench_kernels,
                                                      &retort::pipeline::bench_generation,
                                                      &retort::pipeline::export_model,
                                                      &retort::pipeline::foresee,
                                                      &retort::pipeline::verify};
  return &kLibrary;
}
