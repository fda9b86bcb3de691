#include "retort/base/loaded_library.h"

#include <dlfcn.h>
#include <link.h>

namespace retort::base {
namespace {

struct Search {
  std::string_view file_name;
  std::filesystem::path folder;
};

}  // namespace

std::filesystem::path file_of_function(const void* function) {
  Dl_info info{};
  if (::dladdr(function, &info) == 0 || !info.dli_fname) return {};
  return info.dli_fname;
}

std::filesystem::path folder_of_library(std::string_view file_name) {
  Search search{file_name, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* pointer) {
        auto& of = *static_cast<Search*>(pointer);
        const std::filesystem::path file(info->dlpi_name);
        if (file.filename() != of.file_name) return 0;
        of.folder = file.parent_path();
        return 1;
      },
      &search);
  return search.folder;
}

}  // namespace retort::base
