#pragma once
// Tensors by number, such as the hidden states of all batches of a text, in memory or, where there is not
// enough of it, in a file.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "retort/base/files.h"

namespace retort::model {

class StoredTensors {
 public:
  /// In memory.
  StoredTensors();
  /// In a file that has no name any more once this returns, so nothing of it stays, whatever ends the
  /// process; in memory where `directory` is empty.  Throws StorageError.
  explicit StoredTensors(const base::Path& directory);
  ~StoredTensors();
  StoredTensors(StoredTensors&&) noexcept;
  StoredTensors& operator=(StoredTensors&&) noexcept;

  /// Number 0, then 1 and so on; again with the same shape.  Throws StorageError.
  void set(std::size_t number, const at::Tensor& tensor);
  at::Tensor get(std::size_t number) const;

 private:
  struct File;
  std::vector<at::Tensor> kept_;
  std::unique_ptr<File> file_;
};

}  // namespace retort::model
