# libtorch out of an installed torch package (CPU, CUDA or ROCm), without find_package(Torch): no nvcc, hipcc or
# CUDA toolkit is asked for.  Gives the target torch_wheel::torch and TORCH_WHEEL_{DIR,VERSION,CUDA,HIP}.
#
# RETORT_TORCH  the package's directory (the one that holds lib/ and include/), or empty to ask RETORT_PYTHON.

if(TARGET torch_wheel::torch)
  set(TorchWheel_FOUND TRUE)
  return()
endif()

# The version of the package and of its accelerator.  version.py is plain text, so torch need not be imported (a second
# saved, and no Python when RETORT_TORCH is set); its lines are `cuda = '13.0'` or `cuda: Optional[str] = '13.0'`.
# The libtorch archive has a file build-version ("2.13.0+cu130") in its place.
function(_torch_wheel_read_version)
  set(version_py "")
  if(EXISTS ${TORCH_WHEEL_DIR}/version.py)
    file(READ ${TORCH_WHEEL_DIR}/version.py version_py)
  endif()
  foreach(key version cuda hip)
    string(TOUPPER ${key} upper)
    string(REGEX MATCH "(^|\n)(__)?${key}(__)?[^=\n]*= *['\"]([^'\"]*)['\"]" _ "${version_py}")
    set(TORCH_WHEEL_${upper} "${CMAKE_MATCH_4}")
  endforeach()
  if(NOT TORCH_WHEEL_VERSION AND EXISTS ${TORCH_WHEEL_DIR}/build-version)
    file(STRINGS ${TORCH_WHEEL_DIR}/build-version TORCH_WHEEL_VERSION LIMIT_COUNT 1)
  endif()
  foreach(name VERSION CUDA HIP)
    set(TORCH_WHEEL_${name} "${TORCH_WHEEL_${name}}" PARENT_SCOPE)
  endforeach()
endfunction()

# Refuses what cannot work here, in one sentence rather than in a page of compile or link errors.
function(_torch_wheel_check)
  foreach(file lib/libtorch.so lib/libtorch_cpu.so lib/libc10.so include/ATen/ATen.h)
    if(NOT EXISTS ${TORCH_WHEEL_DIR}/${file})
      message(FATAL_ERROR "RETORT_TORCH: '${TORCH_WHEEL_DIR}' holds no ${file}; give the directory of an installed torch package.")
    endif()
  endforeach()
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" release "${TORCH_WHEEL_VERSION}")
  if(release STREQUAL "")
    message(FATAL_ERROR "torch at ${TORCH_WHEEL_DIR} does not state its version (found '${TORCH_WHEEL_VERSION}'); install a wheel of torch 2.11 to 2.13.")
  elseif(release VERSION_LESS 2.11)
    message(FATAL_ERROR "torch ${TORCH_WHEEL_VERSION} at ${TORCH_WHEEL_DIR} is too old: Retort builds with 2.11 to 2.13.")
  elseif(release VERSION_GREATER 2.13)
    message(WARNING "torch ${TORCH_WHEEL_VERSION} at ${TORCH_WHEEL_DIR} is newer than Retort is tested with (2.11 to 2.13).")
  endif()
  execute_process(COMMAND sh -c "nm -DC --defined-only '${TORCH_WHEEL_DIR}/lib/libc10.so' | grep -q '__cxx11'"
                  RESULT_VARIABLE no_cxx11)
  if(no_cxx11)
    message(FATAL_ERROR "torch at ${TORCH_WHEEL_DIR} was built with the old C++ ABI; install a wheel of torch 2.11 or newer.")
  endif()
endfunction()

if(RETORT_TORCH)
  get_filename_component(TORCH_WHEEL_DIR "${RETORT_TORCH}" ABSOLUTE)
else()
  execute_process(COMMAND ${RETORT_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                  OUTPUT_VARIABLE TORCH_WHEEL_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed ERROR_QUIET)
  if(_failed)
    message(FATAL_ERROR "${RETORT_PYTHON} has no torch package: run 'make setup', or set RETORT_TORCH to a torch directory.")
  endif()
endif()
_torch_wheel_read_version()
_torch_wheel_check()

add_library(torch_wheel::torch INTERFACE IMPORTED GLOBAL)
target_include_directories(torch_wheel::torch SYSTEM INTERFACE ${TORCH_WHEEL_DIR}/include
                                                               ${TORCH_WHEEL_DIR}/include/torch/csrc/api/include)
target_link_libraries(torch_wheel::torch INTERFACE ${TORCH_WHEEL_DIR}/lib/libtorch.so ${TORCH_WHEEL_DIR}/lib/libtorch_cpu.so
                                                   ${TORCH_WHEEL_DIR}/lib/libc10.so)

# Without -fopenmp at::parallel_for, a header function, is silently serial.  Exactly one OpenMP runtime may live in the
# process: one that the wheel has renamed is linked by its own file, a plain one is found through the run path.
file(GLOB _hashed_gomp ${TORCH_WHEEL_DIR}/lib/libgomp-*.so* ${TORCH_WHEEL_DIR}/../torch.libs/libgomp-*.so*)
target_compile_options(torch_wheel::torch INTERFACE -fopenmp)
if(_hashed_gomp)
  target_link_libraries(torch_wheel::torch INTERFACE ${_hashed_gomp})
else()
  target_link_options(torch_wheel::torch INTERFACE -fopenmp)
endif()

# The accelerator's libraries register themselves when loaded; nothing of ours refers to them, so keep the linker from
# dropping them.  What they need in turn is found at run time through their own run path.
foreach(_name cuda hip)
  if(EXISTS ${TORCH_WHEEL_DIR}/lib/libtorch_${_name}.so)
    set(_lib ${TORCH_WHEEL_DIR}/lib)
    target_link_options(torch_wheel::torch INTERFACE
      "SHELL:-Wl,--push-state,--no-as-needed ${_lib}/libtorch_${_name}.so ${_lib}/libc10_${_name}.so -Wl,--pop-state"
      -Wl,--allow-shlib-undefined)
  endif()
endforeach()

# CMake puts the folder into the run path by itself.  DT_RPATH (old tags) also serves the libraries' own look-ups, and
# LD_LIBRARY_PATH cannot put another torch before it.
target_link_options(torch_wheel::torch INTERFACE -Wl,--disable-new-dtags)

message(STATUS "torch ${TORCH_WHEEL_VERSION} (cuda '${TORCH_WHEEL_CUDA}', hip '${TORCH_WHEEL_HIP}') at ${TORCH_WHEEL_DIR}")
set(TorchWheel_FOUND TRUE)
