#pragma once
// By what a process multiplies float32 on a CPU with AMX: settled once, before anything is computed, because
// results have other bits.

#include <functional>
#include <optional>
#include <string>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/bench/matrix_product.h"
#include "retort/comm/group.h"
#include "retort/record/observer.h"

namespace retort::pipeline {

/// What a choice depends on.
struct Float32Question {
  bool has_amx = false;  ///< on every rank
  std::string asked;     ///< by RETORT_FLOAT32_PRODUCTS: "amx", "vectors", or "auto" or nothing
  std::string begun;     ///< by what the run began; empty: there is none, or it does not say
  std::function<bench::Float32Rates()> measure = bench::measure_float32_products;
};

struct Float32Choice {
  ops::Float32Products products = ops::Float32Products::vectors;
  std::optional<bench::Float32Rates> measured;  ///< what it was chosen by, where it was chosen here
  std::string differs;                          ///< a sentence, where the run began with the other
};

/// What is asked for, else as the run began, else what is faster.  Throws UsageError for another word, and
/// EnvironmentError where AMX is asked for and a rank has none.
Float32Choice choose_float32_products(const Float32Question& question);

/// Settles it on all ranks as rank 0 chooses, for the run in `run_directory` if one began there, and says by
/// what.  On an accelerator nothing is chosen.  Collective.
Float32Choice settle_float32_products(const base::Path& run_directory, at::Device device,
                                      record::Observer& observer, comm::Group& group);
/// The same of a process alone, for a command that has no run; said where details are.
void settle_float32_products(at::Device device, record::Observer& observer);

/// Adds "float32_products", and "float32_auto" with "vectors_flops" and "amx_flops" where they were measured.
void add_to_start(base::Json& start, const Float32Choice& choice);

}  // namespace retort::pipeline
