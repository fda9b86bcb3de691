#define RETORT_ISA baseline
#define RETORT_ISA_NAME "baseline"
#include "retort/ops/cpu/vector_kernels_impl.h"
