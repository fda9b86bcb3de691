#define RETORT_ISA baseline
#define RETORT_ISA_NAME "baseline"
#include "retort/kernels/cpu/vector_kernels_impl.h"
