#include "retort/comm/mpi/module.h"

#include "retort/comm/mpi/mpi_group.h"

const char* retort_mpi_release() {
  return RETORT_RELEASE;
}

retort::comm::Group* retort_mpi_world(int launched_ranks, retort::comm::LastWords last_words) {
  using namespace retort::comm;
  return mpi_world(std::make_shared<MpiRuntime>(launched_ranks, last_words)).release();
}
