#pragma once
// Shared libraries that are in this process.

#include <filesystem>
#include <string_view>

namespace retort::base {

/// The file that holds a function of this process: its program, or a library.
std::filesystem::path file_of_function(const void* function);

/// The folder that the library of this file name was loaded from; empty where it is not in the process.
std::filesystem::path folder_of_library(std::string_view file_name);

}  // namespace retort::base
