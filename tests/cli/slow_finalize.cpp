// Loaded before MPI, it has a rank stay a while where its group is ended and its process is not.

#include <time.h>

extern "C" {

int PMPI_Finalize();

int MPI_Finalize() {
  const int result = PMPI_Finalize();
  timespec rest{.tv_sec = 2, .tv_nsec = 0};
  while (::nanosleep(&rest, &rest) != 0) {  // a signal of the launcher wakes it
  }
  return result;
}
}
