#pragma once
// What was measured, as JSON and as a file: docs/formats/sizing.md.  Other parts read what a file advises.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/bench/kernels.h"
#include "retort/bench/machine.h"
#include "retort/bench/memory_rate.h"
#include "retort/bench/products.h"
#include "retort/bench/sweep.h"

namespace retort::bench {

inline constexpr std::int64_t kSizingFormat = 1;

/// The conditions of a measurement.
struct Conditions {
  Machine machine;
  std::string model;  ///< as it was named; empty: a shape that stands for models of some hundred million
  architecture::Config config;
  std::int64_t tokens = 0;  ///< that go through a product together
  MemoryRate memory;
};

/// Products and sizes in one compute type.
struct GemmRates {
  double square_flops = 0;  ///< of a product of 1024 x 1024 x 1024, operations per second
  std::vector<ProductRate> products;
  Sweep mlp_width, hidden_size;
  std::vector<ValueRate> kv_groups, head_dim;

  /// The fastest product of all.
  double ceiling_flops() const;
};

struct KernelRates {
  double square_flops = 0;
  std::vector<KernelRate> kernels;
};

/// By the name of the compute type, "fp32" or "bf16".
base::Json gemm_json(const Conditions& conditions, const std::map<std::string, GemmRates>& by_dtype);
base::Json kernels_json(const Conditions& conditions, const std::map<std::string, KernelRates>& by_dtype);

/// What a file of `retort bench gemm` advises.
struct Sizing {
  struct Sweeps {
    double square_flops = 0;  ///< as GemmRates has it
    Sweep mlp_width, hidden_size;
  };
  Machine machine;
  std::int64_t hidden_size = 0;  ///< of the model that was measured
  std::map<std::string, Sweeps> by_dtype;
};

/// Reads a file; throws UsageError where there is none, DataError with the file and what is wrong in it,
/// StorageError where it cannot be read.
Sizing read_sizing(const base::Path& path);

}  // namespace retort::bench
