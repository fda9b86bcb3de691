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

function(retort_module name)
  cmake_parse_arguments(M "TORCH" "" "SOURCES;DEPENDS;OPTIONS;LINKS" ${ARGN})
  if(M_TORCH AND RETORT_TORCH_FREE_ONLY)
    return()
  endif()
  add_library(retort_${name} STATIC ${M_SOURCES})
  add_library(retort::${name} ALIAS retort_${name})
  list(TRANSFORM M_DEPENDS PREPEND retort::)
  target_link_libraries(retort_${name} PUBLIC retort_options ${M_DEPENDS} PRIVATE ${M_LINKS})
  if(M_TORCH)
    target_link_libraries(retort_${name} PUBLIC torch_wheel::torch)
    set_property(GLOBAL APPEND PROPERTY RETORT_TORCH_LAYERS ${name})
  endif()
endfunction()
