# libtorch out of an installed torch package (CPU, CUDA or ROCm), without find_package(Torch): no nvcc, hipcc or
# CUDA toolkit is asked for.  Gives the target torch_wheel::torch and TORCH_WHEEL_{DIR,VERSION,CUDA,HIP}.
#
# RETORT_TORCH  the package's directory (the one that holds lib/ and include/), or empty to ask RETORT_PYTHON.

if(RETORT_TORCH)
  set(TORCH_WHEEL_DIR ${RETORT_TORCH})
else()
  execute_process(COMMAND ${RETORT_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                  OUTPUT_VARIABLE TORCH_WHEEL_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed ERROR_QUIET)
  if(_failed)
    message(FATAL_ERROR "${RETORT_PYTHON} has no torch package: run 'make setup', or set RETORT_TORCH to a torch directory.")
  endif()
endif()
if(NOT EXISTS ${TORCH_WHEEL_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "RETORT_TORCH: '${TORCH_WHEEL_DIR}' holds no lib/libtorch_cpu.so; give the directory of an installed torch package.")
endif()

# version.py is plain text: torch itself need not be imported (a second saved, and no python when RETORT_TORCH is set).
file(READ ${TORCH_WHEEL_DIR}/version.py _version_py)
foreach(_key version cuda hip)
  string(TOUPPER ${_key} _upper)
  string(REGEX MATCH "(^|\n)(__)?${_key}(__)?[^=\n]*= *'([^']*)'" _ "${_version_py}")
  set(TORCH_WHEEL_${_upper} "${CMAKE_MATCH_4}")
endforeach()
if(TORCH_WHEEL_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "torch ${TORCH_WHEEL_VERSION} at ${TORCH_WHEEL_DIR} is too old: Retort builds with 2.11 to 2.13.")
endif()

# Wheels of today use the C++11 ABI of Debian's compiler; say so here rather than in a page of link errors.
execute_process(COMMAND sh -c "nm -DC --defined-only '${TORCH_WHEEL_DIR}/lib/libc10.so' | grep -q '__cxx11'" RESULT_VARIABLE _no_cxx11)
if(_no_cxx11)
  message(FATAL_ERROR "torch at ${TORCH_WHEEL_DIR} was built with the old C++ ABI; install a wheel of torch 2.11 or newer.")
endif()

# Exactly one OpenMP runtime may live in the process: a renamed one inside the wheel has to be linked by its own name.
file(GLOB _hashed_gomp ${TORCH_WHEEL_DIR}/lib/libgomp-*.so*)

add_library(torch_wheel::torch INTERFACE IMPORTED GLOBAL)
target_include_directories(torch_wheel::torch SYSTEM INTERFACE ${TORCH_WHEEL_DIR}/include
                                                               ${TORCH_WHEEL_DIR}/include/torch/csrc/api/include)
target_compile_options(torch_wheel::torch INTERFACE -fopenmp)
target_link_libraries(torch_wheel::torch INTERFACE ${TORCH_WHEEL_DIR}/lib/libtorch.so ${TORCH_WHEEL_DIR}/lib/libtorch_cpu.so
                                                   ${TORCH_WHEEL_DIR}/lib/libc10.so)
if(_hashed_gomp)
  target_link_libraries(torch_wheel::torch INTERFACE ${_hashed_gomp})
else()
  target_link_options(torch_wheel::torch INTERFACE -fopenmp)
endif()

# The accelerator's libraries register themselves when loaded; nothing of ours refers to them, so keep the linker from
# dropping them.  What they need in turn is found at run time through their own run path.
set(_accelerator)
if(TORCH_WHEEL_CUDA)
  set(_accelerator ${TORCH_WHEEL_DIR}/lib/libtorch_cuda.so ${TORCH_WHEEL_DIR}/lib/libc10_cuda.so)
elseif(TORCH_WHEEL_HIP)
  set(_accelerator ${TORCH_WHEEL_DIR}/lib/libtorch_hip.so ${TORCH_WHEEL_DIR}/lib/libc10_hip.so)
endif()
if(_accelerator)
  target_link_options(torch_wheel::torch INTERFACE -Wl,--no-as-needed ${_accelerator} -Wl,--as-needed
                                                   -Wl,--allow-shlib-undefined)
endif()
target_link_options(torch_wheel::torch INTERFACE -Wl,-rpath,${TORCH_WHEEL_DIR}/lib -Wl,--disable-new-dtags)

message(STATUS "torch ${TORCH_WHEEL_VERSION} (cuda '${TORCH_WHEEL_CUDA}', hip '${TORCH_WHEEL_HIP}') at ${TORCH_WHEEL_DIR}")
set(TorchWheel_FOUND TRUE)
