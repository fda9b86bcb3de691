#include "retort/pipeline/same_start.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/hash.h"
#include "retort/base/loaded_library.h"
#include "retort/base/machine.h"
#include "retort/comm/watchdog.h"
#include "retort/data/source_files.h"

namespace retort::pipeline {
namespace {

constexpr std::size_t kHeadBytes = std::size_t{1} << 20, kSampleBytes = std::size_t{1} << 12, kSamples = 64;

// Files that a model is read from; notes and pictures beside them may differ.
bool is_read(const base::Path& file) {
  constexpr std::array kKinds{".safetensors", ".gguf", ".model", ".jinja", ".index.json"};
  constexpr std::array kNames{"config.json",
                              "generation_config.json",
                              "tokenizer.json",
                              "tokenizer_config.json",
                              "special_tokens_map.json",
                              "added_tokens.json",
                              "vocab.json",
                              "tekken.json"};
  const auto name = file.filename().string();
  return std::ranges::any_of(kKinds, [&](const char* kind) { return name.ends_with(kind); }) ||
         std::ranges::any_of(kNames, [&](const char* known) { return name == known; });
}

// Of the head, where names and shapes are, and of samples of the values: models of one shape differ in most.
std::string checksum(const base::Path& file) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  if (failed) return "none";
  std::ifstream in(file, std::ios::binary);
  base::Hasher hasher;
  const auto add = [&](std::size_t begin, std::size_t count) {
    std::string bytes(count, '\0');
    in.seekg(static_cast<std::streamoff>(begin));
    in.read(bytes.data(), static_cast<std::streamsize>(count));
    hasher.update(bytes.data(), count);
  };
  add(0, std::min<std::size_t>(size, kHeadBytes));
  if (size > kHeadBytes)
    for (std::size_t sample = 1; sample <= kSamples; ++sample)
      add(sample * ((size - kSampleBytes) / kSamples), kSampleBytes);
  return in ? base::join(size, " bytes, ", hasher.hex()) : base::join(size, " bytes that cannot be read");
}

void add_files(const base::Path& model, base::Json& has) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) {
    has[model.string()] = checksum(model);
    return;
  }
  for (const auto& entry : std::filesystem::directory_iterator(model, ignored))
    if (is_read(entry.path())) has[entry.path().string()] = checksum(entry.path());
}

// The program may be a small one that loads the library, which loads others.
void add_program(base::Json& has) {
  has["the program"] = base::hash_file("/proc/self/exe");
  const auto own = base::file_of_function(reinterpret_cast<const void*>(&start_of_rank));
  has[own.filename().string()] = base::hash_file(own);
  for (const char* library : {"libretort_openmpi.so", "libretort_mpich.so", "libtorch_cpu.so"})
    if (const auto folder = base::folder_of_library(library); !folder.empty())
      has[library] = checksum(folder / library);
}

// Text that teams on several machines read, which is that of select stages; rank 0 alone reads all other
// text.
void add_text(const recipe::Recipe& recipe, const recipe::Stage& stage, base::Json& has) {
  if (stage.kind != recipe::StageKind::select) return;
  for (const auto& source : recipe.sources(stage))
    for (const auto* paths : {&source.paths, &source.held_out.paths})
      if (!paths->empty())
        for (const auto& file : data::expand_paths(source.name, *paths)) has[file.string()] = checksum(file);
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
  for (const auto& stage : recipe.stages) {
    auto paths = stage.models_read();
    paths.insert(paths.end(), {stage.config, stage.tokenizer});
    for (const auto& path : paths)
      if (!path.empty() && !recipe.find_stage(path)) add_files(path, has);
    add_text(recipe, stage, has);
  }
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
  group.agree([&] {
    if (group.rank() == 0)
      mark.emplace(directory /
                   base::join("ranks-", std::chrono::system_clock::now().time_since_epoch().count()));
  });
  std::string name = mark ? mark->path().filename().string() : "";
  group.share(name);
  group.agree([&] {
    base::require<base::StorageError>(appears(directory / name), "rank ", group.rank(), " on ",
                                      base::host_name(), ": the run directory ", directory.string(),
                                      " is not the one that rank 0 has opened; use a directory that all "
                                      "machines share.");
  });
}

}  // namespace retort::pipeline
