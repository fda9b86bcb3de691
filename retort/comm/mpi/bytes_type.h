#pragma once
// A number of bytes as one MPI type: counts of MPI-3.1 are ints, buffers are not.

#include <mpi.h>

#include <cstdint>

namespace retort::comm {

class BytesType {
 public:
  /// `bytes` bytes, the next of which begin `extent` bytes later.  Blocks have at most `largest` bytes.
  BytesType(std::int64_t bytes, std::int64_t extent, std::int64_t largest);
  explicit BytesType(std::int64_t bytes) : BytesType(bytes, bytes, std::int64_t{1} << 30) {}
  ~BytesType() { MPI_Type_free(&type_); }
  BytesType(const BytesType&) = delete;
  BytesType& operator=(const BytesType&) = delete;

  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace retort::comm
