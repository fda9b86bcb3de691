#pragma once
// A unit of a model's parameters that is acquired for as long as an object lives.

#include "retort/shard/parameters.h"

namespace retort::shard {

class AcquiredUnit {
 public:
  /// `parameters` outlive it.
  AcquiredUnit(Parameters& parameters, std::int64_t unit)
      : parameters_(parameters), unit_(unit), flat_(parameters.acquire(unit)) {}
  ~AcquiredUnit() { parameters_.release(unit_); }
  AcquiredUnit(const AcquiredUnit&) = delete;
  AcquiredUnit& operator=(const AcquiredUnit&) = delete;

  /// The whole unit, as Parameters::acquire gives it.
  const at::Tensor& flat() const { return flat_; }

 private:
  Parameters& parameters_;
  std::int64_t unit_;
  at::Tensor flat_;
};

}  // namespace retort::shard
