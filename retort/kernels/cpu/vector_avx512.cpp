#define RETORT_ISA avx512
#define RETORT_ISA_NAME "avx512"
#include "retort/kernels/cpu/vector_kernels_impl.h"
