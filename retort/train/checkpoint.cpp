#include "retort/train/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/machine.h"
#include "retort/comm/lead.h"
#include "retort/io/files_inside.h"
#include "retort/io/quote.h"
#include "retort/io/safetensors.h"
#include "retort/model/tensor_file.h"
#include "retort/record/checkpoint_manifest.h"
#include "retort/record/run_directory.h"

namespace retort::train {
namespace {

std::string step_name(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

struct NamedTensor {
  std::string name;
  at::Tensor values;
};

std::vector<NamedTensor> tensors_of(TrainedState& state, std::int64_t unit) {
  auto& moments = state.optimizer.units()[static_cast<std::size_t>(unit)];
  const auto prefix = base::join("unit.", unit, ".");
  return {{prefix + "master", state.parameters.master(unit)},
          {prefix + "m", moments.m},
          {prefix + "v", moments.v}};
}

// [begin, count] of this rank in each unit.
using Ranges = std::vector<std::array<std::int64_t, 2>>;

Ranges ranges_of(const shard::Parameters& parameters) {
  Ranges ranges;
  for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit) {
    const auto range = parameters.range(unit);
    ranges.push_back({range.begin, range.count});
  }
  return ranges;
}

std::string part_name(int rank, int size) {
  if (size == 1) return "state.safetensors";
  char name[40];
  std::snprintf(name, sizeof name, "state-%05d.safetensors", rank);
  return name;
}

// Others may have put a file beside the checkpoints, an archive of one for example.
bool holds_files(const base::Path& path) {
  std::error_code error;
  const bool found = std::filesystem::is_directory(path, error);
  base::require<base::StorageError>(!error || error == std::errc::no_such_file_or_directory, path.string(),
                                    ": cannot be looked at: ", error.message(), ".");
  return found;
}

// Of what lies in a directory; none where that is gone.
std::vector<std::string> names_in(const base::Path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  base::require<base::StorageError>(!error || error == std::errc::no_such_file_or_directory,
                                    directory.string(), ": cannot be listed: ", error.message(), ".");
  return names;
}

// The names that rank 0 finds.
std::vector<std::string> agreed_names(comm::Group& group,
                                      const std::function<std::vector<std::string>()>& find) {
  const auto text = comm::led(group, [&] {
    std::string lines;
    for (const auto& name : find()) lines += name + "\n";
    return lines;
  });
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return names;
}

// A copy of one that the user keeps beside them has another name, and is none.
bool is_step_name(const std::string& name) {
  constexpr std::string_view kStep = "step-";
  constexpr std::size_t kLeastDigits = 8;
  return name.starts_with(kStep) && name.size() >= kStep.size() + kLeastDigits &&
         name.find_first_not_of("0123456789", kStep.size()) == std::string::npos;
}

// Complete checkpoints, newest first.
std::vector<std::string> list(const base::Path& directory) {
  auto found = names_in(directory);
  std::erase_if(
      found, [&](const std::string& name) { return !is_step_name(name) || !holds_files(directory / name); });
  std::sort(found.rbegin(), found.rend());
  return found;
}

void write_part(const base::Path& path, TrainedState& state) {
  std::vector<NamedTensor> tensors;
  for (std::int64_t unit = 0; unit < state.parameters.layout().num_units(); ++unit)
    std::ranges::move(tensors_of(state, unit), std::back_inserter(tensors));
  std::vector<io::TensorToWrite> to_write;
  for (const auto& [name, values] : tensors) to_write.push_back(model::to_write(name, values));
  io::write_safetensors(path, to_write);
}

// What a part has of this rank's ranges.
void read_part(const base::Path& path, const Ranges& theirs, TrainedState& state) {
  const auto file = io::SafetensorsFile::open(path);
  const auto own = ranges_of(state.parameters);
  for (std::size_t unit = 0; unit < own.size(); ++unit) {
    const auto [begin, count] = own[unit];
    const auto [their_begin, their_count] = theirs[unit];
    const auto from = std::max(begin, their_begin);
    const auto common = std::min(begin + count, their_begin + their_count) - from;
    if (common <= 0) continue;
    for (const auto& [name, values] : tensors_of(state, static_cast<std::int64_t>(unit)))
      model::read_part(file, name, {their_count}, from - their_begin, values.narrow(0, from - begin, common));
  }
}

// What is gone is damage.  What cannot be read now, or not from this machine, may be sound.
void require_there(const base::Path& file, const std::vector<std::string>& names, const comm::Group& group) {
  std::error_code error;
  if (std::filesystem::exists(file, error) || error) return;
  base::require<base::StorageError>(std::ranges::count(names, file.filename().string()) == 0, file.string(),
                                    ": rank ", group.rank(), " on ", base::host_name(),
                                    " does not see it, rank 0 does; start again when all machines see the "
                                    "same directory.");
  throw base::ModelError(base::join(file.string(), ": is missing."));
}

// The manifest, once everything that it promises is there; of its files every `group.size()`-th is looked at
// here, and `names` are there.  Throws ModelError for damage, and StorageError where a file cannot be read.
base::Json verified_manifest(const base::Path& checkpoint, const std::vector<std::string>& names,
                             const comm::Group& group) {
  require_there(checkpoint / record::kManifest, names, group);
  auto manifest = record::read_manifest(checkpoint);
  int number = 0;
  try {
    for (const auto& [name, hash] : manifest.at("files").items()) {
      base::require<base::ModelError>(io::is_basename(name), checkpoint.string(), ": names the file ",
                                      io::quote(name), ", expected one of its own directory.");
      if (number++ % group.size() == group.rank()) {
        require_there(checkpoint / name, names, group);
        base::require<base::ModelError>(base::hash_file(checkpoint / name) == hash.get<std::string>(),
                                        (checkpoint / name).string(),
                                        ": the checksum does not fit, the file is damaged.");
      }
    }
    for (const char* count : {"step", "tokens"}) (void)manifest.at(count).get<std::int64_t>();
    (void)manifest.at("seconds").get<double>();
    for (const char* part : {"identity", "cursor"}) (void)manifest.at(part);
  } catch (const nlohmann::json::exception& error) {
    throw base::ModelError(
        base::join(checkpoint.string(), ": not a checkpoint's manifest (", error.what(), ")."));
  }
  return manifest;
}

// A step beyond the one just written was passed over as damaged; counted as kept, it would cost a sound one.
void remove_others(const CheckpointPlace& place, std::int64_t step) {
  auto keep = std::max<std::int64_t>(1, place.keep);
  for (const auto& name : list(place.directory))
    if (name > step_name(step) || keep-- <= 0) base::remove_all(place.directory / name);
}

std::vector<record::CheckpointPart> all_parts(comm::Group& group, const std::string& hash,
                                              const Ranges& ranges) {
  std::vector<record::CheckpointPart> parts;
  for (const auto& of_rank : group.all_texts(base::Json{{"hash", hash}, {"ranges", ranges}}.dump())) {
    const auto json = base::Json::parse(of_rank);
    const auto rank = static_cast<int>(parts.size());
    parts.push_back({part_name(rank, group.size()), json.at("hash"), json.at("ranges")});
  }
  return parts;
}

base::Json head_of(const CheckpointPlace& place, const Progress& progress) {
  return {{"step", progress.step},
          {"tokens", progress.tokens},
          {"seconds", progress.seconds},
          {"cursor", progress.cursor},
          {"identity", place.identity}};
}

// What a part holds of each unit.
Ranges ranges_of_part(const base::Path& checkpoint, const base::Json& manifest, const std::string& name,
                      const architecture::Layout& layout) {
  Ranges ranges;
  if (manifest.at("format") == record::kWholeCheckpoint) {
    for (const auto& unit : layout.units) ranges.push_back({0, unit.size});
    return ranges;
  }
  try {
    ranges = manifest.at("ranges").at(name).get<Ranges>();
  } catch (const nlohmann::json::exception& error) {
    throw base::ModelError(
        base::join(checkpoint.string(), ": not a checkpoint's manifest (", error.what(), ")."));
  }
  base::require<base::ModelError>(std::ssize(ranges) == layout.num_units(), checkpoint.string(), ": has ",
                                  ranges.size(), " units, expected ", layout.num_units(), ".");
  for (std::size_t unit = 0; unit < ranges.size(); ++unit) {
    const auto [begin, count] = ranges[unit];
    const auto size = layout.units[unit].size;
    base::require<base::ModelError>(begin >= 0 && count >= 0 && begin <= size && count <= size - begin,
                                    checkpoint.string(), ": ", io::quote(name), " holds ", count,
                                    " parameters from ", begin, " on of unit ", unit,
                                    ", expected some of its ", size, "; the manifest is damaged.");
  }
  return ranges;
}

void read_state(const base::Path& checkpoint, const base::Json& manifest, TrainedState& state) {
  for (const auto& [name, hash] : manifest.at("files").items())
    read_part(checkpoint / name, ranges_of_part(checkpoint, manifest, name, state.parameters.layout()),
              state);
  for (std::int64_t unit = 0; unit < state.parameters.layout().num_units(); ++unit)
    if (auto copy = state.parameters.compute_copy(unit); copy.defined())
      copy.copy_(state.parameters.master(unit));
}

}  // namespace

void CheckpointWriter::begin(const Progress& progress) {
  auto& group = state_.group;
  progress_ = progress;
  directory_.reset();
  const auto target = comm::led(group, [&] {
    base::make_directories(place_.directory);
    directory_ = std::make_unique<base::UnfinishedDirectory>(place_.directory / step_name(progress.step));
    return directory_->path().string();
  });
  part_ = std::async(std::launch::async,
                     [this, path = base::Path(target) / part_name(group.rank(), group.size())] {
                       write_part(path, state_);
                       return base::hash_file(path);
                     });
}

void CheckpointWriter::finish() {
  auto& group = state_.group;
  const auto directory = std::move(directory_);
  std::string hash;
  group.agree([&] { hash = part_.get(); });
  const auto parts = all_parts(group, hash, ranges_of(state_.parameters));
  comm::lead(group, [&] {
    record::write_manifest(directory->path(), head_of(place_, progress_), parts);
    directory->commit();
  });
}

void CheckpointWriter::remove_earlier() {
  comm::lead(state_.group, [&] { remove_others(place_, progress_.step); });
}

namespace {

void require_of_stage(const base::Path& checkpoint, const base::Json& identity, const base::Json& found) {
  const auto differing = record::differing_keys(identity, found);
  base::require<base::UsageError>(differing.empty(), checkpoint.string(), ": belongs to something else (",
                                  differing.empty() ? "" : differing.front(),
                                  " differs); choose another --run-dir or remove this one's checkpoints.");
}

}  // namespace

std::optional<Progress> load_checkpoint(const CheckpointPlace& place, TrainedState state,
                                        record::Observer& observer) {
  auto& group = state.group;
  const auto checkpoints = agreed_names(group, [&] {
    base::remove_leftovers(place.directory);
    return list(place.directory);
  });
  for (const auto& name : checkpoints) {
    const auto checkpoint = place.directory / name;
    const auto names = agreed_names(group, [&] { return names_in(checkpoint); });
    base::Json manifest;
    try {
      group.agree([&] { manifest = verified_manifest(checkpoint, names, group); });
    } catch (const base::ModelError& error) {
      group.recovered();
      observer.message(record::Level::warning, base::join("checkpoint passed over: ", error.what()));
      continue;
    }
    group.agree([&] {
      if (group.rank() == 0) require_of_stage(checkpoint, place.identity, manifest.at("identity"));
      read_state(checkpoint, manifest, state);
    });
    for (std::int64_t unit = 0; unit < state.parameters.layout().num_units(); ++unit)
      state.parameters.updated(unit);
    return Progress{.step = manifest.at("step"),
                    .tokens = manifest.at("tokens"),
                    .seconds = manifest.at("seconds"),
                    .cursor = manifest.at("cursor")};
  }
  group.together([&] {
    base::require<base::ModelError>(
        checkpoints.empty(), place.directory.string(), ": all checkpoints (", checkpoints.size(),
        ") are damaged or of another version of this program, expected a sound one; put a copy of one ",
        "there, or remove this directory to train from the beginning.");
  });
  return {};
}

}  // namespace retort::train
