# cmake -D SOURCE=directory -D HEADER=file -P write_git_hash.cmake
#   Writes what git says of the source's commit into a header, and only where that has changed.  Run on every build, as
#   a commit needs no other file to change.  A source archive without git says "unknown".
cmake_minimum_required(VERSION 3.25)

if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
                  OUTPUT_VARIABLE hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT hash)
  set(hash unknown)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define RETORT_GIT_HASH \"@hash@\"\n" @ONLY)
