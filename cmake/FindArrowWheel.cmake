# Apache Arrow's C++ library with Parquet, out of an installed pyarrow package, which has its headers and libraries.
# Gives the target arrow_wheel::parquet and ARROW_WHEEL_{DIR,VERSION}.
#
# RETORT_ARROW  the package's directory (the one that holds include/ and libparquet.so.*), or empty to ask RETORT_PYTHON.

if(TARGET arrow_wheel::parquet)
  set(ArrowWheel_FOUND TRUE)
  return()
endif()

# What is wrong with the package, for the two answers below; empty if nothing is.
function(_arrow_wheel_fault out)
  set(fault "")
  if(NOT ARROW_WHEEL_PARQUET OR NOT ARROW_WHEEL_ARROW OR NOT EXISTS ${ARROW_WHEEL_DIR}/include/parquet/arrow/reader.h)
    set(fault "'${ARROW_WHEEL_DIR}' holds no headers and libraries of Apache Arrow with Parquet")
  elseif(NOT ARROW_WHEEL_VERSION MATCHES "^26\\.")
    set(fault "Apache Arrow ${ARROW_WHEEL_VERSION} at ${ARROW_WHEEL_DIR} is none of the releases 26 that Retort builds with")
  else()
    execute_process(COMMAND sh -c "nm -DC --defined-only '${ARROW_WHEEL_PARQUET}' | grep -q '__cxx11'" RESULT_VARIABLE no_cxx11)
    if(no_cxx11)
      set(fault "Apache Arrow at ${ARROW_WHEEL_DIR} was built with the old C++ ABI")
    endif()
  endif()
  set(${out} "${fault}" PARENT_SCOPE)
endfunction()

set(ARROW_WHEEL_DIR "")
if(RETORT_ARROW)
  get_filename_component(ARROW_WHEEL_DIR "${RETORT_ARROW}" ABSOLUTE)
else()
  execute_process(COMMAND ${RETORT_PYTHON} -c "import importlib.util as u; print(u.find_spec('pyarrow').submodule_search_locations[0])"
                  OUTPUT_VARIABLE ARROW_WHEEL_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(_fault "${RETORT_PYTHON} has no pyarrow package")
if(ARROW_WHEEL_DIR)
  # The names carry the release: libparquet.so.2600.
  file(GLOB ARROW_WHEEL_PARQUET ${ARROW_WHEEL_DIR}/libparquet.so.[0-9]*)
  file(GLOB ARROW_WHEEL_ARROW ${ARROW_WHEEL_DIR}/libarrow.so.[0-9]*)
  set(ARROW_WHEEL_VERSION "")
  if(EXISTS ${ARROW_WHEEL_DIR}/include/arrow/util/config.h)
    file(STRINGS ${ARROW_WHEEL_DIR}/include/arrow/util/config.h ARROW_WHEEL_VERSION REGEX "define ARROW_VERSION_STRING ")
    string(REGEX REPLACE ".*\"(.*)\".*" "\\1" ARROW_WHEEL_VERSION "${ARROW_WHEEL_VERSION}")
  endif()
  _arrow_wheel_fault(_fault)
endif()

if(_fault)
  set(ArrowWheel_FOUND FALSE)
  # A directory that was named is meant, whether or not Parquet is asked for.
  if(RETORT_ARROW OR ArrowWheel_FIND_REQUIRED)
    message(FATAL_ERROR "${_fault}: run 'make setup' or pip install pyarrow==${RETORT_PYARROW}, and set RETORT_ARROW to the directory of this package.")
  endif()
  message(STATUS "no Apache Arrow (${_fault}): Parquet files are refused")
  return()
endif()

add_library(arrow_wheel::parquet INTERFACE IMPORTED GLOBAL)
target_include_directories(arrow_wheel::parquet SYSTEM INTERFACE ${ARROW_WHEEL_DIR}/include)
target_link_libraries(arrow_wheel::parquet INTERFACE ${ARROW_WHEEL_PARQUET} ${ARROW_WHEEL_ARROW})
# As of torch: also for the libraries' own look-ups, and before LD_LIBRARY_PATH.
target_link_options(arrow_wheel::parquet INTERFACE -Wl,--disable-new-dtags)
message(STATUS "Apache Arrow ${ARROW_WHEEL_VERSION} at ${ARROW_WHEEL_DIR}")
set(ArrowWheel_FOUND TRUE)
