#pragma once
// The memory that Arrow takes for one file, which a file cannot talk into taking more than it was granted.

#include <arrow/memory_pool.h>

#include <atomic>
#include <string>

#include "retort/parquet/table.h"

namespace retort::parquet {

class LimitedPool : public arrow::MemoryPool {
 public:
  explicit LimitedPool(const Limits& limits) : limits_(limits), pool_(arrow::system_memory_pool()) {}

  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override;
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** bytes) override;
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override;
  std::int64_t bytes_allocated() const override { return held_; }
  std::int64_t total_bytes_allocated() const override { return pool_->total_bytes_allocated(); }
  std::int64_t num_allocations() const override { return pool_->num_allocations(); }
  std::string backend_name() const override { return pool_->backend_name(); }

  /// What was refused since it was asked last, for a message; empty if nothing was.
  std::string take_refusal();

 private:
  arrow::Status grant(std::int64_t more, std::int64_t whole);

  Limits limits_;
  arrow::MemoryPool* pool_;
  std::atomic<std::int64_t> held_ = 0;
  std::string refusal_;
};

}  // namespace retort::parquet
