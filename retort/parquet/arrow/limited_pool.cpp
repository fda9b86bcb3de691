#include "retort/parquet/arrow/limited_pool.h"

#include <utility>

#include "retort/base/error.h"

namespace retort::parquet {
namespace {

// Beside the values of a page stand their levels and lengths.
constexpr std::int64_t kBesideValues = std::int64_t{1} << 20;

}  // namespace

arrow::Status LimitedPool::grant(std::int64_t more, std::int64_t whole) {
  if (whole > static_cast<std::int64_t>(limits_.value_bytes) + kBesideValues)
    refusal_ =
        base::join("a page or a value of ", whole, " bytes where at most ", limits_.value_bytes, " are read");
  else if (held_ + more > static_cast<std::int64_t>(limits_.memory_bytes))
    refusal_ = base::join("rows that take more than ", limits_.memory_bytes, " bytes of memory at a time");
  else
    return arrow::Status::OK();
  return arrow::Status::OutOfMemory(refusal_);
}

arrow::Status LimitedPool::Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
  ARROW_RETURN_NOT_OK(grant(size, size));
  ARROW_RETURN_NOT_OK(pool_->Allocate(size, alignment, out));
  held_ += size;
  return arrow::Status::OK();
}

arrow::Status LimitedPool::Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                                      std::uint8_t** bytes) {
  ARROW_RETURN_NOT_OK(grant(new_size - old_size, new_size));
  ARROW_RETURN_NOT_OK(pool_->Reallocate(old_size, new_size, alignment, bytes));
  held_ += new_size - old_size;
  return arrow::Status::OK();
}

void LimitedPool::Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) {
  pool_->Free(buffer, size, alignment);
  held_ -= size;
}

std::string LimitedPool::take_refusal() {
  return std::exchange(refusal_, {});
}

}  // namespace retort::parquet
