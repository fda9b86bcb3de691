#pragma once
// What a teacher makes of text, kept, so that it reads the text once however many models are compared with
// it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "retort/model/packed_text.h"

namespace retort::eval {

/// Hidden states of one teacher, by the windows that they are of.  What does not fit is not kept.
class TeacherStates {
 public:
  explicit TeacherStates(std::int64_t most_bytes) : free_bytes_(most_bytes) {}

  /// Those of the same windows, [N, D]; undefined where they were not kept.
  at::Tensor find(const model::PackedText& packed) const;
  void keep(const model::PackedText& packed, const at::Tensor& hidden_ND);

 private:
  std::int64_t free_bytes_;
  std::map<std::string, at::Tensor> states_;  ///< by a checksum of ids and segments
};

}  // namespace retort::eval
