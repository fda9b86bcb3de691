# retort_test(layer SOURCES ... [LINKS ...] [APART ...] [SHARDS n] [THREADS n] [TIMEOUT seconds])
#   One test program for one layer, run by CTest with the environment below once the oracles are written.  A long one
#   is run in SHARDS, tests "layer.1", "layer.2", ..., which share its cases.
# retort_device_test(layer [FILTER cases] [TIMEOUT seconds])
#   The same program once more, with every operation on the path of an accelerator although its tensors lie on the CPU.
# retort_test_environment(name [THREADS n] [TIMEOUT seconds])
#   The same environment for a test that add_test() made.
#
# Tests run side by side, each with the THREADS that it is given: one, where more than one is not what it is about.

if(RETORT_SHARED_DATA STREQUAL "" AND DEFINED ENV{RETORT_SHARED_DATA})
  set(RETORT_SHARED_DATA $ENV{RETORT_SHARED_DATA})  # the tests would inherit it, the oracles not
endif()
if(RETORT_SHARED_DATA STREQUAL "" AND IS_DIRECTORY ${PROJECT_SOURCE_DIR}/../shared/data)
  get_filename_component(RETORT_SHARED_DATA ${PROJECT_SOURCE_DIR}/../shared/data ABSOLUTE)
elseif(RETORT_SHARED_DATA AND NOT IS_DIRECTORY "${RETORT_SHARED_DATA}")
  message(FATAL_ERROR "RETORT_SHARED_DATA: '${RETORT_SHARED_DATA}' is no directory.")
endif()

set(_retort_cache "$ENV{XDG_CACHE_HOME}")
if(_retort_cache STREQUAL "")
  set(_retort_cache "$ENV{HOME}/.cache")
endif()
set(_retort_fetched ${_retort_cache}/retort/models/SmolLM2-135M-Instruct.Q4_1.gguf)
if(RETORT_GGUF STREQUAL "" AND EXISTS ${_retort_fetched})
  set(RETORT_GGUF ${_retort_fetched})
elseif(RETORT_GGUF AND NOT EXISTS "${RETORT_GGUF}")
  message(FATAL_ERROR "RETORT_GGUF: there is no file '${RETORT_GGUF}'.")
endif()

set(_retort_test_environment RETORT_SOURCE=${PROJECT_SOURCE_DIR} RETORT_ORACLES=${RETORT_ORACLES}
                             RETORT_PROGRAM=${PROJECT_BINARY_DIR}/cli/retort RETORT_PYTHON=${RETORT_PYTHON}
                             OMP_WAIT_POLICY=passive)  # threads that spin slow each other down on a busy machine
if(RETORT_SHARED_DATA)
  list(APPEND _retort_test_environment RETORT_SHARED_DATA=${RETORT_SHARED_DATA})
endif()
if(RETORT_GGUF)
  list(APPEND _retort_test_environment RETORT_GGUF=${RETORT_GGUF})
endif()
set(_retort_oracle_arguments --out ${RETORT_ORACLES})
if(RETORT_SHARED_DATA)
  list(APPEND _retort_oracle_arguments --shared ${RETORT_SHARED_DATA})
endif()

# The outputs of all oracles are written before the first C++ test starts, on all processors.
add_test(NAME oracles COMMAND ${RETORT_PYTHON} ${PROJECT_SOURCE_DIR}/tools/make_oracles.py ${_retort_oracle_arguments})
# One thread, as in the tests: a matrix product with another number of them has other last bits.
set_tests_properties(oracles PROPERTIES FIXTURES_SETUP oracles TIMEOUT 1200 RUN_SERIAL ON ENVIRONMENT OMP_NUM_THREADS=1)

function(retort_test_environment name)
  cmake_parse_arguments(T "" "THREADS;TIMEOUT" "" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 600)
  endif()
  if(NOT T_THREADS)
    set(T_THREADS 1)
  endif()
  set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED oracles TIMEOUT ${T_TIMEOUT} PROCESSORS ${T_THREADS}
                                          ENVIRONMENT "${_retort_test_environment};OMP_NUM_THREADS=${T_THREADS}")
endfunction()

# retort_add_test(name program [SHARDS n] [THREADS n] [TIMEOUT seconds]): the cases of a test program.
function(retort_add_test name program)
  cmake_parse_arguments(T "" "SHARDS" "" ${ARGN})
  if(NOT T_SHARDS)
    add_test(NAME ${name} COMMAND ${program})
    retort_test_environment(${name} ${T_UNPARSED_ARGUMENTS})
    return()
  endif()
  foreach(shard RANGE 1 ${T_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND ${program})
    retort_test_environment(${name}.${shard} ${T_UNPARSED_ARGUMENTS})
    set_property(TEST ${name}.${shard} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${T_SHARDS} GTEST_SHARD_INDEX=${index})
    set_property(TEST ${name}.${shard} PROPERTY COST 1000)  # the long ones first: nothing waits for one at the end
  endforeach()
endfunction()

function(retort_test layer)
  cmake_parse_arguments(T "" "SHARDS;THREADS;TIMEOUT" "SOURCES;LINKS;APART" ${ARGN})
  if(NOT TARGET retort_${layer})
    return()
  endif()
  add_executable(${layer}_test ${T_SOURCES})
  target_include_directories(${layer}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${layer}_test PRIVATE retort::${layer} GTest::gtest_main ${T_LINKS})
  target_compile_options(${layer}_test PRIVATE ${RETORT_COLD_FLAGS})
  retort_unity(${layer}_test APART ${T_APART})
  get_property(torch_layers GLOBAL PROPERTY RETORT_TORCH_LAYERS)
  if(layer IN_LIST torch_layers)
    target_link_libraries(${layer}_test PRIVATE retort_ops_reference)
    retort_precompiled(${layer}_test TORCH TEST)
  else()
    retort_precompiled(${layer}_test TEST)
  endif()
  set(settings "")
  foreach(setting SHARDS THREADS TIMEOUT)
    if(T_${setting})
      list(APPEND settings ${setting} ${T_${setting}})
    endif()
  endforeach()
  retort_add_test(${layer} ${layer}_test ${settings})
endfunction()

function(retort_device_test layer)
  cmake_parse_arguments(T "" "FILTER;TIMEOUT" "" ${ARGN})
  retort_path_test(${layer} device device_path_on_cpu.cpp "${T_FILTER}" "${T_TIMEOUT}")
endfunction()

# retort_kernels_test(LAYER [FILTER filter] [TIMEOUT seconds])
# The same with the kernels for NVIDIA's accelerators, of which a CPU runs one thread after the other.
function(retort_kernels_test layer)
  cmake_parse_arguments(T "" "FILTER;TIMEOUT" "" ${ARGN})
  retort_path_test(${layer} kernels kernels_on_cpu.cpp "${T_FILTER}" "${T_TIMEOUT}")
endfunction()

function(retort_path_test layer path source filter timeout)
  if(NOT TARGET ${layer}_test)
    return()
  endif()
  add_executable(${layer}_${path}_test $<TARGET_OBJECTS:${layer}_test> ${PROJECT_SOURCE_DIR}/tests/support/${source})
  target_include_directories(${layer}_${path}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})
  target_link_libraries(${layer}_${path}_test PRIVATE $<TARGET_PROPERTY:${layer}_test,LINK_LIBRARIES>)
  # Which takes a jump from one stack to another for an error.
  target_compile_options(${layer}_${path}_test PRIVATE -U_FORTIFY_SOURCE)
  if(NOT filter)
    set(filter *)
  endif()
  add_test(NAME ${layer}_${path} COMMAND ${layer}_${path}_test --gtest_filter=${filter})
  retort_test_environment(${layer}_${path} TIMEOUT ${timeout})
endfunction()
