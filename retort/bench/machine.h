#pragma once
// What a measurement is true of: the processor, its threads and the libraries.

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "retort/base/json.h"

namespace retort::bench {

struct Machine {
  std::string processor;              ///< its model
  std::vector<std::string> features;  ///< vector instructions that decide which kernels run
  std::string device;                 ///< "cpu", "cuda"
  int threads = 0;
  std::string float32_products;  ///< "amx" or "vectors", by which float32 is multiplied; empty: not known
  std::string retort, torch, mkl, onednn;  ///< versions

  /// What differs from `other` and changes rates: a phrase such as "2 threads instead of 8", or nothing.
  /// Versions do not count.
  std::string difference(const Machine& other) const;
  /// Whether device, processor and vector instructions are the same, however many threads there are.
  bool is_like(const Machine& other) const;
  /// For people: the processor, or the device beside it.
  std::string name() const;
};

/// The machine of this process.
Machine this_machine(c10::Device device);

base::Json to_json(const Machine& machine);
/// Throws base::Json::exception for a key that is missing or of another type.
Machine machine_of_json(const base::Json& json);

}  // namespace retort::bench
