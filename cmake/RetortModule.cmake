# retort_module(name SOURCES ... DEPENDS ... [OPTIONS ...] [ROOMS ...] [LINKS ...] [APART ...] [TORCH])
#   One folder of retort/, one static library, one namespace.  DEPENDS names the layers that it may include; OPTIONS
#   those of which it includes options.h alone and links nothing.  ROOMS are its folders, lowest first, each of which
#   may include those before it.  tools/check_layers.py reads the same lines.  LINKS are outside libraries; APART as of retort_unity(); TORCH adds libtorch.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(retort_options INTERFACE)
target_compile_options(retort_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                                $<$<BOOL:${RETORT_WERROR}>:-Werror>)
# Clang takes libstdc++'s std::stable_sort for a use of what is deprecated, and the report's scripts are long constants.
target_compile_options(retort_options INTERFACE
                       "$<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations;-Wno-overlength-strings>")
target_include_directories(retort_options INTERFACE ${PROJECT_SOURCE_DIR})
if(RETORT_SANITIZE)
  target_compile_options(retort_options INTERFACE -fsanitize=${RETORT_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(retort_options INTERFACE -fsanitize=${RETORT_SANITIZE})
endif()

# Of tests and of the command line, where compiling takes longer than running.
set(RETORT_COLD_FLAGS $<$<CONFIG:Release>:-O1>)

# retort_precompiled(target [TORCH] [TEST])
#   Compiles a target with headers that are precompiled once for all targets of its kind: JSON and the standard library's,
#   with TORCH libtorch's, with TEST googletest's.  They are a quarter to two thirds of a file's time otherwise.  Every source
#   still includes what it uses: RETORT_PRECOMPILE=OFF builds without.
function(retort_precompiled target)
  cmake_parse_arguments(P "TORCH;TEST" "" "" ${ARGN})
  if(NOT RETORT_PRECOMPILE)
    return()
  endif()
  # GCC 12 takes what is inlined from a precompiled system header for code of ours, and warns falsely.
  set(flags -fPIC "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overread>")
  set(kind plain)
  set(own_flags "")
  set(headers <nlohmann/json.hpp> <algorithm> <filesystem> <fstream> <functional> <map> <optional> <span> <sstream> <string> <vector>)
  set(links retort_options nlohmann_json::nlohmann_json)
  if(NOT P_TORCH)
    list(APPEND flags "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>")
  else()
    set(kind torch)
    set(headers <ATen/ATen.h> <nlohmann/json.hpp>)
    list(APPEND links torch_wheel::torch)
  endif()
  if(P_TEST)
    string(APPEND kind _test)
    list(APPEND headers <gtest/gtest.h>)
    list(APPEND links GTest::gtest)
    set(own_flags ${RETORT_COLD_FLAGS})
  endif()
  set(shared retort_${kind}_headers)
  if(NOT TARGET ${shared})
    set(source ${PROJECT_BINARY_DIR}/${kind}_headers.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing but the precompiled headers.\n")
    add_library(${shared} OBJECT ${source})
    target_link_libraries(${shared} PRIVATE ${links})
    target_compile_options(${shared} PRIVATE ${own_flags} ${flags})
    target_precompile_headers(${shared} PRIVATE ${headers})
  endif()
  # A precompiled header serves only files with its own flags: executables are compiled as the libraries are.
  set_target_properties(${shared} ${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE ${flags})
  target_precompile_headers(${target} REUSE_FROM ${shared})
endfunction()

# retort_unity(target [APART files])
#   Compiles the files of a target eight at a time, which takes less than half the time: most of it goes into headers and
#   templates.  APART are files that each define the same private names, such as the stages with their run() and plan().
function(retort_unity target)
  cmake_parse_arguments(U "" "" "APART" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${RETORT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  set_source_files_properties(${U_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(retort_module name)
  cmake_parse_arguments(M "TORCH" "" "SOURCES;DEPENDS;OPTIONS;ROOMS;LINKS;APART" ${ARGN})
  if(M_TORCH AND RETORT_TORCH_FREE_ONLY)
    return()
  endif()
  add_library(retort_${name} STATIC ${M_SOURCES})
  add_library(retort::${name} ALIAS retort_${name})
  set_property(GLOBAL APPEND PROPERTY RETORT_LAYERS ${name})
  set_property(GLOBAL APPEND PROPERTY RETORT_LINKS ${M_LINKS})
  list(TRANSFORM M_DEPENDS PREPEND retort::)
  target_link_libraries(retort_${name} PUBLIC retort_options ${M_DEPENDS} PRIVATE ${M_LINKS})
  retort_unity(retort_${name} APART ${M_APART})
  if(M_TORCH)
    target_link_libraries(retort_${name} PUBLIC torch_wheel::torch)
    retort_precompiled(retort_${name} TORCH)
    set_property(GLOBAL APPEND PROPERTY RETORT_TORCH_LAYERS ${name})
  else()
    retort_precompiled(retort_${name})
  endif()
endfunction()

# retort_shared_library()
#   libretort.so with all layers: what the program loads, and what other programs link as retort::retort.
function(retort_shared_library)
  get_property(layers GLOBAL PROPERTY RETORT_LAYERS)
  get_property(links GLOBAL PROPERTY RETORT_LINKS)
  list(REMOVE_DUPLICATES links)
  list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_OBJECTS:retort_\\1>" OUTPUT_VARIABLE objects)
  add_library(libretort SHARED ${objects})
  target_link_libraries(libretort PUBLIC torch_wheel::torch nlohmann_json::nlohmann_json Threads::Threads PRIVATE retort_options ${links})
  target_link_options(libretort PRIVATE -Wl,--no-undefined)
  target_compile_features(libretort INTERFACE cxx_std_20)
  target_include_directories(libretort INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Before 1.0 every minor release may change every type.
  set_target_properties(libretort PROPERTIES OUTPUT_NAME retort EXPORT_NAME retort LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH_USE_LINK_PATH ON
    INSTALL_RPATH "$ORIGIN")  # where the modules lie
endfunction()
