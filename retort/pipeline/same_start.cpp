#include "retort/pipeline/same_start.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/hash.h"
#include "retort/base/loaded_library.h"
#include "retort/base/machine.h"
#include "retort/comm/lead.h"
#include "retort/comm/watchdog.h"
#include "retort/pipeline/input_files.h"

namespace retort::pipeline {
namespace {

// The program may be a small one that loads the library, which loads others.
void add_program(base::Json& has) {
  has["the program"] = base::hash_file("/proc/self/exe");
  const auto own = base::file_of_function(reinterpret_cast<const void*>(&start_of_rank));
  has[own.filename().string()] = base::hash_file(own);
  for (const char* library : {"libretort_openmpi.so", "libretort_mpich.so", "libtorch_cpu.so"})
    if (const auto folder = base::folder_of_library(library); !folder.empty())
      has[library] = sampled_checksum(folder / library);
}

bool appears(const base::Path& path) {
  constexpr double kSeconds = 30;  // where ranks are waited for without end
  const double patience = comm::least_patience_seconds();
  const double end = base::monotonic_seconds() + (patience > 0 ? patience : kSeconds);
  std::error_code ignored;
  while (!std::filesystem::exists(path, ignored)) {
    if (base::monotonic_seconds() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

std::string word(const base::Json& has, const std::string& what) {
  return has.contains(what) ? has.at(what).get<std::string>() : "none";
}

}  // namespace

base::Json start_of_rank(const recipe::Recipe& recipe) {
  base::Json has{{"the recipe", base::join(base::hash64(recipe::to_json(recipe).dump()))}};
  add_program(has);
  for (const auto& stage : recipe.stages) add_outside_models(recipe, stage, has);
  add_outside_writers(recipe, has);
  return {{"host", base::host_name()}, {"has", has}};
}

std::string difference_of_starts(const std::vector<base::Json>& ranks) {
  const auto& first = ranks.front().at("has");
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const auto& has = ranks[rank].at("has");
    for (const auto* side : {&first, &has})
      for (const auto& [what, ignored] : side->items())
        if (word(has, what) != word(first, what))
          return base::join(what, ": rank ", rank, " on ", ranks[rank].at("host").get<std::string>(), " has ",
                            word(has, what), ", expected what rank 0 on ",
                            ranks.front().at("host").get<std::string>(), " has, ", word(first, what),
                            "; give all machines the same.");
  }
  return {};
}

void require_same_start(const recipe::Recipe& recipe, comm::Group& group) {
  if (group.size() == 1) return;
  std::string own;
  // Names of files may be any bytes.
  group.agree(
      [&] { own = start_of_rank(recipe).dump(-1, ' ', false, base::Json::error_handler_t::replace); });
  std::vector<base::Json> ranks;
  for (const auto& text : group.all_texts(own)) ranks.push_back(base::Json::parse(text));
  const auto difference = difference_of_starts(ranks);
  group.together([&] { base::require<base::UsageError>(difference.empty(), difference); });
}

void require_same_directory(const base::Path& directory, comm::Group& group) {
  std::optional<base::UnfinishedDirectory> mark;  // of a name that no earlier run has left elsewhere
  const auto name = comm::led(group, [&] {
    mark.emplace(directory /
                 base::join("ranks-", std::chrono::system_clock::now().time_since_epoch().count()));
    return mark->path().filename().string();
  });
  group.agree([&] {
    base::require<base::StorageError>(appears(directory / name), "rank ", group.rank(), " on ",
                                      base::host_name(), ": the run directory ", directory.string(),
                                      " is not the one that rank 0 has opened; use a directory that all "
                                      "machines share.");
  });
}

}  // namespace retort::pipeline
