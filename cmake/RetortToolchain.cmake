# Defaults that a plain `cmake -S . -B build` gets too: a release build, through ccache where it is installed.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

# CCACHE_BASEDIR lets a second clone at another path reuse the first one's objects.
find_program(RETORT_CCACHE ccache)
mark_as_advanced(RETORT_CCACHE)
if(RETORT_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                                  ${RETORT_CCACHE})
endif()
