#include "retort/record/scratch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "retort/base/json_file.h"

namespace retort::record {
namespace {

constexpr const char* kIdentity = "identity.json";
// Names of what stages keep to go on with; behind these a number follows.
constexpr const char *kTokenTimes = "token_times.json", *kTimes = "times", *kOf = "of";
constexpr std::array kFiles = {kIdentity, "search.jsonl", "profile.json", kTokenTimes};
constexpr std::array kNumbered = {"step-", "hidden-", "block-", "measured-", "sparse-"};

// Nothing where there are none, of another identity, or damaged ones.
std::optional<base::Json> times_in(const base::Path& file, const base::Json& identity) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  try {
    auto json = base::read_own_json(file);
    if (json.is_object() && json.contains(kTimes) && json.value(kOf, base::Json()) == identity)
      return std::move(json.at(kTimes));
  } catch (const base::JsonFault&) {
  }
  return {};
}

bool is_of_stages(const std::string& name) {
  const auto is_numbered = [&](std::string_view prefix) {
    return name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= '0' &&
           name[prefix.size()] <= '9';
  };
  return std::ranges::count(kFiles, name) > 0 || std::ranges::any_of(kNumbered, is_numbered);
}

}  // namespace

void remove_ours(const base::Path& directory, const std::function<bool(const std::string& name)>& is_ours) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(directory, ignored))) return;
  std::vector<base::Path> ours;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (is_ours(entry.path().filename().string())) ours.push_back(entry.path());
  for (const auto& path : ours) base::remove_all(path);
  std::filesystem::remove(directory, ignored);  // one that holds anything stays
}

bool is_scratch_of(const base::Path& scratch, const base::Json& identity) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(scratch / kIdentity, ignored)) return false;
  try {
    return base::read_own_json(scratch / kIdentity) == identity;
  } catch (const base::JsonFault&) {
    return false;
  }
}

void enter_scratch(const base::Path& scratch, const base::Json& identity,
                   const std::vector<base::Path>& results) {
  const bool same = is_scratch_of(scratch, identity);
  auto directories = results;
  directories.push_back(scratch);
  for (const auto& directory : directories) {
    if (!same) remove_ours(directory, is_of_stages);
    base::make_directories(directory);
    base::remove_leftovers(directory);
  }
  if (!same) base::write_file_atomically(scratch / kIdentity, identity.dump() + "\n");
}

base::Json kept_times(const base::Path& directory, const base::Json& identity,
                      const std::function<base::Json()>& measure) {
  if (directory.empty()) return measure();
  const auto file = directory / kTokenTimes;
  if (auto kept = times_in(file, identity)) return *std::move(kept);
  auto times = measure();
  base::make_directories(directory);
  base::write_file_atomically(file, base::Json({{kOf, identity}, {kTimes, times}}).dump() + "\n");
  return times;
}

void remove_scratch(const base::Path& scratch) {
  base::remove_leftovers(scratch);
  remove_ours(scratch, is_of_stages);
}

}  // namespace retort::record
