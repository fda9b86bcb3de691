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
  set_property(GLOBAL APPEND PROPERTY RETORT_LAYERS ${name})
  set_property(GLOBAL APPEND PROPERTY RETORT_LINKS ${M_LINKS})
  list(TRANSFORM M_DEPENDS PREPEND retort::)
  target_link_libraries(retort_${name} PUBLIC retort_options ${M_DEPENDS} PRIVATE ${M_LINKS})
  if(M_TORCH)
    target_link_libraries(retort_${name} PUBLIC torch_wheel::torch)
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
