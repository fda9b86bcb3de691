#pragma once
// The part of NVRTC's and of the CUDA driver's interface that is used here, declared anew: to build and to
// start, the program needs neither.  Names and values are NVIDIA's.

#include <cstddef>

namespace retort::kernels::cuda {

using nvrtcProgram = struct NvrtcProgram*;
using CUmodule = struct CudaModule*;
using CUfunction = struct CudaFunction*;
using CUcontext = struct CudaContext*;
using CUstream = void*;
using CUdevice = int;

constexpr int kSuccess = 0;
constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_...

struct Functions {
  int (*nvrtcVersion)(int* major, int* minor);
  int (*nvrtcGetNumSupportedArchs)(int* count);
  int (*nvrtcGetSupportedArchs)(int* archs);
  int (*nvrtcCreateProgram)(nvrtcProgram*, const char* source, const char* name, int headers,
                            const char* const* header_texts, const char* const* header_names);
  int (*nvrtcAddNameExpression)(nvrtcProgram, const char* name);
  int (*nvrtcGetLoweredName)(nvrtcProgram, const char* name, const char** lowered);
  int (*nvrtcCompileProgram)(nvrtcProgram, int options, const char* const* values);
  int (*nvrtcGetProgramLogSize)(nvrtcProgram, std::size_t*);
  int (*nvrtcGetProgramLog)(nvrtcProgram, char*);
  int (*nvrtcGetCUBINSize)(nvrtcProgram, std::size_t*);
  int (*nvrtcGetCUBIN)(nvrtcProgram, char*);
  int (*nvrtcDestroyProgram)(nvrtcProgram*);
  int (*cuInit)(unsigned flags);
  int (*cuGetErrorString)(int error, const char** text);
  int (*cuDeviceGetAttribute)(int* value, int attribute, CUdevice);
  int (*cuDevicePrimaryCtxRetain)(CUcontext*, CUdevice);
  int (*cuCtxGetCurrent)(CUcontext*);
  int (*cuCtxSetCurrent)(CUcontext);
  int (*cuModuleLoadData)(CUmodule*, const void* image);
  int (*cuModuleGetFunction)(CUfunction*, CUmodule, const char* name);
  int (*cuLaunchKernel)(CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream, void** arguments,
                        void** extra);
};

}  // namespace retort::kernels::cuda
