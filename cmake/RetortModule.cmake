# retort_module(name SOURCES ... DEPENDS ... [OPTIONS ...] [LINKS ...] [TORCH])
#   One folder of retort/, one static library, one namespace.  DEPENDS names the layers that it may include; OPTIONS
#   those of which it includes options.h alone and links nothing.  tools/check_layers.py reads the same lines.  LINKS
#   are outside libraries; TORCH adds libtorch.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(retort_options INTERFACE)
target_compile_options(retort_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                                $<$<BOOL:${RETORT_WERROR}>:-Werror>)
target_include_directories(retort_options INTERFACE ${PROJECT_SOURCE_DIR})
if(RETORT_SANITIZE)
  target_compile_options(retort_options INTERFACE -fsanitize=${RETORT_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(retort_options INTERFACE -fsanitize=${RETORT_SANITIZE})
endif()

# retort_precompiled(target)
#   Compiles a target that uses libtorch with one precompiled ATen/ATen.h, which is two thirds of a file's time otherwise.
#   Every source still includes what it uses: RETORT_PRECOMPILE=OFF builds without.
function(retort_precompiled target)
  if(NOT RETORT_PRECOMPILE)
    return()
  endif()
  # GCC 12 takes what is inlined from a precompiled system header for code of ours, and warns falsely.
  set(flags -fPIC "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overread>")
  if(NOT TARGET retort_torch_headers)
    set(source ${PROJECT_BINARY_DIR}/torch_headers.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing but the precompiled header.\n")
    add_library(retort_torch_headers OBJECT ${source})
    target_link_libraries(retort_torch_headers PRIVATE retort_options torch_wheel::torch)
    target_compile_options(retort_torch_headers PRIVATE ${flags})
    target_precompile_headers(retort_torch_headers PRIVATE <ATen/ATen.h> <nlohmann/json.hpp>)
  endif()
  # A precompiled header serves only files with its own flags: executables are compiled as the libraries are.
  set_target_properties(retort_torch_headers ${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE ${flags})
  target_precompile_headers(${target} REUSE_FROM retort_torch_headers)
endfunction()

function(retort_module name)
  cmake_parse_arguments(M "TORCH" "" "SOURCES;DEPENDS;OPTIONS;LINKS" ${ARGN})
  if(M_TORCH AND RETORT_TORCH_FREE_ONLY)
    return()
  endif()
  add_library(retort_${name} STATIC ${M_SOURCES})
  add_library(retort::${name} ALIAS retort_${name})
  set_property(GLOBAL APPEND PROPERTY RETORT_LAYERS ${name})
  set_property(GLOBAL APPEND PROPERTY RETORT_LINKS ${M_LINKS})
  list(TRANSFORM M_DEPENDS PREPEND retort::)
  target_link_libraries(retort_${name} PUBLIC retort_options ${M_DEPENDS} PRIVATE ${M_LINKS})
  if(M_TORCH)
    target_link_libraries(retort_${name} PUBLIC torch_wheel::torch)
    retort_precompiled(retort_${name})
    set_property(GLOBAL APPEND PROPERTY RETORT_TORCH_LAYERS ${name})
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
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()
