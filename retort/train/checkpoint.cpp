#include "retort/train/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/io/safetensors.h"
#include "retort/model/tensor_file.h"
#include "retort/record/run_directory.h"

namespace retort::train {
namespace {

constexpr const char* kState = "state.safetensors";
constexpr const char* kManifest = "manifest.json";
constexpr int kFormat = 1;

std::string step_name(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

struct NamedTensor {
  std::string name;
  at::Tensor values;
};

std::vector<NamedTensor> state_tensors(shard::Parameters& parameters, optim::AdamW& optimizer) {
  std::vector<NamedTensor> tensors;
  for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit) {
    auto& moments = optimizer.units()[static_cast<std::size_t>(unit)];
    const auto prefix = base::join("unit.", unit, ".");
    tensors.push_back({prefix + "master", parameters.master(unit)});
    tensors.push_back({prefix + "m", moments.m});
    tensors.push_back({prefix + "v", moments.v});
  }
  return tensors;
}

// Complete checkpoints, newest first.
std::vector<base::Path> list(const base::Path& directory) {
  std::vector<base::Path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.path().filename().string().rfind("step-", 0) == 0) found.push_back(entry.path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

void write_state(const base::Path& path, const std::vector<NamedTensor>& tensors) {
  std::vector<io::TensorToWrite> to_write;
  for (const auto& [name, values] : tensors) to_write.push_back(model::to_write(name, values));
  io::write_safetensors(path, to_write);
}

void read_state(const base::Path& path, const std::vector<NamedTensor>& tensors) {
  const auto file = io::SafetensorsFile::open(path);
  for (const auto& [name, values] : tensors) model::read_tensor(file, name, values);
}

// Of everything else that the manifest says; of the values, not of how they are written.
std::string checksum_of(base::Json manifest) {
  manifest.erase("checksum");
  base::Hasher hasher;
  const auto text = manifest.dump();
  hasher.update(text.data(), text.size());
  return hasher.hex();
}

// The manifest, once everything that it promises is there.
base::Json verified_manifest(const base::Path& checkpoint) {
  const auto path = checkpoint / kManifest;
  base::Json manifest;
  try {
    manifest = base::parse_json(base::read_file(path));
    base::require<base::ModelError>(manifest.at("format") == kFormat, path.string(), ": format ",
                                    manifest.at("format").dump(), ", expected ", kFormat, ".");
    base::require<base::ModelError>(manifest.at("checksum").get<std::string>() == checksum_of(manifest),
                                    path.string(), ": the checksum does not fit, the file is damaged.");
    for (const auto& [name, hash] : manifest.at("files").items())
      base::require<base::ModelError>(base::hash_file(checkpoint / name) == hash.get<std::string>(),
                                      (checkpoint / name).string(),
                                      ": the checksum does not fit, the file is damaged.");
    (void)manifest.at("step").get<std::int64_t>();
    (void)manifest.at("identity");
  } catch (const base::JsonFault& fault) {
    throw base::ModelError(
        base::join(path.string(), ": not JSON at byte ", fault.byte, ": ", fault.reason, "."));
  } catch (const nlohmann::json::exception& error) {
    throw base::ModelError(base::join(path.string(), ": not a checkpoint's manifest (", error.what(), ")."));
  }
  return manifest;
}

// A step beyond the one just written was passed over as damaged; counted as kept, it would cost a sound one.
void remove_others(const CheckpointPlace& place, std::int64_t step) {
  auto keep = std::max<std::int64_t>(1, place.keep);
  for (const auto& checkpoint : list(place.directory))
    if (checkpoint.filename() > step_name(step) || keep-- <= 0) base::remove_all(checkpoint);
}

}  // namespace

void save_checkpoint(const CheckpointPlace& place, const Progress& progress, shard::Parameters& parameters,
                     optim::AdamW& optimizer) {
  base::make_directories(place.directory);
  const auto tensors = state_tensors(parameters, optimizer);
  base::write_directory_atomically(place.directory / step_name(progress.step), [&](const base::Path& target) {
    write_state(target / kState, tensors);
    base::Json manifest = {{"format", kFormat},
                           {"step", progress.step},
                           {"tokens", progress.tokens},
                           {"seconds", progress.seconds},
                           {"cursor", progress.cursor},
                           {"identity", place.identity},
                           {"files", {{kState, base::hash_file(target / kState)}}}};
    manifest["checksum"] = checksum_of(manifest);
    base::write_file_atomically(target / kManifest, manifest.dump(1) + "\n");
  });
  remove_others(place, progress.step);
}

std::optional<Progress> load_checkpoint(const CheckpointPlace& place, shard::Parameters& parameters,
                                        optim::AdamW& optimizer, record::Observer& observer) {
  base::remove_leftovers(place.directory);
  for (const auto& checkpoint : list(place.directory)) {
    base::Json manifest;
    try {
      manifest = verified_manifest(checkpoint);
    } catch (const base::Error& error) {
      observer.message(record::Level::warning, base::join("checkpoint passed over: ", error.what()));
      continue;
    }
    const auto differing = record::differing_keys(place.identity, manifest.at("identity"));
    base::require<base::UsageError>(differing.empty(), checkpoint.string(), ": belongs to something else (",
                                    differing.empty() ? "" : differing.front(),
                                    " differs); choose another --run-dir or remove this one's checkpoints.");
    read_state(checkpoint / kState, state_tensors(parameters, optimizer));
    for (std::int64_t unit = 0; unit < parameters.layout().num_units(); ++unit)
      if (auto copy = parameters.compute_copy(unit); copy.defined()) copy.copy_(parameters.master(unit));
    return Progress{.step = manifest.at("step"),
                    .tokens = manifest.at("tokens"),
                    .seconds = manifest.at("seconds"),
                    .cursor = manifest.at("cursor")};
  }
  return {};
}

}  // namespace retort::train
