#pragma once
// Hidden states of all batches of a text, in memory or, where there is not enough of it, in a file.
//
// Shape legend: N tokens of a batch, D hidden.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "retort/base/files.h"

namespace retort::prune {

class HiddenStates {
 public:
  /// In memory.
  HiddenStates();
  /// In a file that has no name any more once this returns, so nothing of it stays, whatever ends the
  /// process. Throws StorageError.
  explicit HiddenStates(const base::Path& directory);
  ~HiddenStates();
  HiddenStates(HiddenStates&&) noexcept;
  HiddenStates& operator=(HiddenStates&&) noexcept;

  /// Of batch 0, then 1 and so on; again with the same shape.  Throws StorageError.
  void set(std::size_t batch, const at::Tensor& hidden_ND);
  at::Tensor get(std::size_t batch) const;

 private:
  struct File;
  std::vector<at::Tensor> kept_;
  std::unique_ptr<File> file_;
};

}  // namespace retort::prune
