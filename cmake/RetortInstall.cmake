# What `cmake --install` puts where: the program, libretort.so, its headers, a package for find_package(retort), and
# recipes with the model that the quickstart begins with, and files of evaluation tasks.
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/retort)
set(_share ${CMAKE_INSTALL_DATADIR}/retort)

install(TARGETS retort RUNTIME)
install(TARGETS libretort EXPORT retort LIBRARY NAMELINK_COMPONENT development)
get_property(_modules GLOBAL PROPERTY RETORT_MPI_MODULES)
if(TARGET retort_parquet_arrow)
  list(APPEND _modules retort_parquet_arrow)
endif()
if(_modules)
  install(TARGETS ${_modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY retort DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*_impl.h" EXCLUDE PATTERN "retort/parquet/arrow" EXCLUDE)
install(DIRECTORY recipes tasks models DESTINATION ${_share})
install(FILES LICENSE DESTINATION ${_share})

install(EXPORT retort NAMESPACE retort:: DESTINATION ${_package} FILE retortTargets.cmake COMPONENT development)
configure_package_config_file(cmake/retortConfig.cmake.in ${PROJECT_BINARY_DIR}/retortConfig.cmake
                              INSTALL_DESTINATION ${_package})
# Before 1.0 every minor release may change every type.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/retortConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/retortConfig.cmake ${PROJECT_BINARY_DIR}/retortConfigVersion.cmake
              cmake/FindTorchWheel.cmake
        DESTINATION ${_package} COMPONENT development)
