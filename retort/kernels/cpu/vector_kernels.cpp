#include "retort/kernels/cpu/vector_kernels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "retort/kernels/cpu/amx_kernels.h"

namespace retort::kernels {

namespace baseline {
const VectorTables& tables();
}
#ifdef __x86_64__
namespace avx2 {
const VectorTables& tables();
}
namespace avx512 {
const VectorTables& tables();
const PairKernels& pair_kernels();
}  // namespace avx512
namespace amx {
const AmxKernels& kernels();
}
#endif

const VectorTables* const* all_vector_tables() {
  static const VectorTables* list[4] = {};
  static const bool filled = [] {
    int count = 0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      list[count++] = &avx512::tables();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list[count++] = &avx2::tables();
#endif
    list[count] = &baseline::tables();
    return true;
  }();
  (void)filled;
  return list;
}

const VectorTables& vector_tables() {
  return *all_vector_tables()[0];
}

const PairKernels* pair_kernels() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512bf16"))
    return &avx512::pair_kernels();
#endif
  return nullptr;
}

#if defined(__x86_64__) && defined(__linux__)
namespace {

// Linux keeps the registers of AMX for processes that ask for them.
bool may_use_amx() {
  constexpr long kAskForRegisters = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kAskForRegisters, kTileData) == 0;
}

}  // namespace
#endif

const AmxKernels* amx_kernels() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool has = pair_kernels() && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
                          may_use_amx();
  if (has) return &amx::kernels();
#endif
  return nullptr;
}

}  // namespace retort::kernels
