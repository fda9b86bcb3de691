#pragma once
// The kernels of AMX in plain C++, with its arithmetic: so the order of its sums is tested on every
// processor.

#include "retort/kernels/cpu/amx_kernels.h"

namespace retort::test {

/// What kernels::amx_kernels() computes where there is AMX.  Products of pairs are added in two sums in
/// float32, of even and of odd elements, and both to what was there; each is rounded to the nearest.  What is
/// below 2^-126 is zero before and after (Intel's manual of instruction sets, TDPBF16PS), but not in between.
const kernels::AmxKernels& emulated_amx();

}  // namespace retort::test
