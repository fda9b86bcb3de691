#define RETORT_ISA avx2
#define RETORT_ISA_NAME "avx2"
#include "retort/kernels/cpu/vector_kernels_impl.h"
