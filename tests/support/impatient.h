#pragma once
// An observer that wants a stage to stop before its end.

#include <cstdint>
#include <string_view>

#include "retort/record/observer.h"

namespace retort::test {

/// Asks to stop once it was told of so many pieces of work.
class Impatient : public record::Observer {
 public:
  explicit Impatient(std::int64_t pieces) : left_(pieces) {}
  void progress(std::string_view, std::int64_t, std::int64_t) override { --left_; }
  bool stop_requested() const override { return left_ <= 0; }

 private:
  std::int64_t left_;
};

/// Asks to stop when it was asked so many times whether to.
class AskedTooOften : public record::Observer {
 public:
  explicit AskedTooOften(std::int64_t questions) : left_(questions) {}
  bool stop_requested() const override { return left_-- <= 0; }

 private:
  mutable std::int64_t left_;
};

}  // namespace retort::test
