#include "retort/comm/mpi/bytes_type.h"

namespace retort::comm {

BytesType::BytesType(std::int64_t bytes, std::int64_t extent, std::int64_t largest) {
  const auto blocks = bytes / largest, rest = bytes % largest;
  MPI_Datatype block = MPI_DATATYPE_NULL, whole = MPI_DATATYPE_NULL, joined = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(largest), MPI_BYTE, &block);
  MPI_Type_contiguous(static_cast<int>(blocks), block, &whole);
  const int counts[] = {1, static_cast<int>(rest)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>(blocks * largest)};
  const MPI_Datatype parts[] = {whole, MPI_BYTE};
  MPI_Type_create_struct(2, counts, places, parts, &joined);
  MPI_Type_create_resized(joined, 0, static_cast<MPI_Aint>(extent), &type_);
  MPI_Type_commit(&type_);
  MPI_Type_free(&block);
  MPI_Type_free(&whole);
  MPI_Type_free(&joined);
}

}  // namespace retort::comm
