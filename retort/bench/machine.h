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
};

/// The machine of this process.
Machine this_machine(c10::Device device);

base::Json to_json(const Machine& machine);

}  // namespace retort::bench
