#include "retort/sparsify/finished_blocks.h"

#include <cstdio>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/comm/lead.h"
#include "retort/io/safetensors.h"
#include "retort/model/tensor_file.h"
#include "retort/record/scratch.h"
#include "retort/shard/tensor_buffer.h"

namespace retort::sparsify {
namespace {

constexpr const char* kWeights = "weights";
constexpr const char* kReport = "report";
constexpr const char* kChecksum = "xxh128";

std::string checksum(const std::string& report, std::span<const std::byte> weights) {
  base::Hasher hasher;
  hasher.update(report.data(), report.size());
  hasher.update(weights.data(), weights.size());
  return hasher.hex();
}

using Names = std::vector<std::string>;

base::Json row_of(const LayerResult& layer, const Names& /*source_names*/) {
  return saved(layer);
}
base::Json row_of(const LayerDamage& layer, const Names& source_names) {
  return to_json(layer, source_names);
}

void read_row(const base::Json& row, const Names& /*source_names*/, LayerResult& layer) {
  layer = layer_from_json(row);
}
void read_row(const base::Json& row, const Names& source_names, LayerDamage& layer) {
  layer = layer_damage_from_json(row, source_names);
}

}  // namespace

FinishedBlocks::FinishedBlocks(base::Path directory, base::Json identity,
                               std::vector<std::string> source_names, comm::Group& group)
    : directory_(std::move(directory)),
      identity_(std::move(identity)),
      source_names_(std::move(source_names)),
      group_(group),
      goes_on_(keep_any() && record::is_scratch_of(directory_, identity_)) {}

base::Path FinishedBlocks::path(const char* pass, std::int64_t block) const {
  char name[64];
  std::snprintf(name, sizeof name, "%s-%05lld.safetensors", pass, static_cast<long long>(block));
  return directory_ / name;
}

std::optional<base::Json> FinishedBlocks::read_json(const base::Path& path, const at::Tensor& like_W,
                                                    at::Tensor& weights_W) const {
  std::error_code ignored;
  if (!goes_on_ || !std::filesystem::is_regular_file(path, ignored)) return {};
  try {
    const auto file = io::SafetensorsFile::open(path);
    const auto& report = file.metadata().at(kReport);
    const auto weights = like_W.defined() ? file.bytes(kWeights) : std::span<const std::byte>();
    if (file.metadata().at(kChecksum) != checksum(report, weights)) return {};
    if (like_W.defined()) model::read_tensor(file, kWeights, weights_W = at::empty_like(like_W));
    return base::parse_json(report, {.max_bytes = report.size()});
  } catch (const base::ModelError&) {
    return {};
  } catch (const base::JsonFault&) {
    return {};
  } catch (const std::out_of_range&) {
    return {};
  }
}

void FinishedBlocks::write_json(const base::Path& path, const base::Json& found,
                                const at::Tensor& weights_W) {
  if (!keep_any()) return;
  if (!std::exchange(entered_, true)) record::enter_scratch(directory_, identity_);
  const auto on_host = weights_W.defined() ? weights_W.to(at::kCPU).contiguous() : at::Tensor();
  std::vector<io::TensorToWrite> tensors;
  if (on_host.defined()) tensors.push_back(model::to_write(kWeights, on_host));
  const auto text = found.dump();
  io::write_safetensors(path, tensors,
                        {{kReport, text}, {kChecksum, checksum(text, model::bytes_of(on_host))}});
}

template <typename Layer>
std::optional<KeptBlock<Layer>> FinishedBlocks::read(const char* pass, std::int64_t block,
                                                     const at::Tensor& like_W) const {
  KeptBlock<Layer> kept;
  auto& [found, weights_W] = kept;
  const auto text = comm::led(group_, [&] {
    const auto json = read_json(path(pass, block), like_W, kept.weights_W);
    return json ? json->dump() : std::string();
  });
  if (text.empty()) return {};
  if (group_.size() > 1 && like_W.defined()) {
    if (!weights_W.defined()) weights_W = at::empty_like(like_W);
    group_.broadcast(shard::buffer_of(weights_W), 0).wait();
  }
  try {
    const auto json = base::Json::parse(text);
    found.seconds = json.at("seconds");
    for (const auto& row : json.at("layers")) read_row(row, source_names_, found.layers.emplace_back());
    if (const auto& damage = json.at("damage"); !damage.is_null())
      found.damage = cumulative_damage_from_json(damage, source_names_);
    return kept;
  } catch (const nlohmann::json::exception&) {  // what is not as it was written is made again
    return {};
  }
}

template <typename Layer>
void FinishedBlocks::write(const char* pass, std::int64_t block, const FoundBlock<Layer>& found,
                           const at::Tensor& weights_W) {
  base::Json json = {{"layers", base::Json::array()}, {"damage", nullptr}, {"seconds", found.seconds}};
  for (const auto& layer : found.layers) json["layers"].push_back(row_of(layer, source_names_));
  if (found.damage) json["damage"] = to_json(*found.damage, source_names_);
  comm::lead(group_, [&] { write_json(path(pass, block), json, weights_W); });
}

template std::optional<KeptBlock<LayerDamage>> FinishedBlocks::read(const char*, std::int64_t,
                                                                    const at::Tensor&) const;
template std::optional<KeptBlock<LayerResult>> FinishedBlocks::read(const char*, std::int64_t,
                                                                    const at::Tensor&) const;
template void FinishedBlocks::write(const char*, std::int64_t, const FoundBlock<LayerDamage>&,
                                    const at::Tensor&);
template void FinishedBlocks::write(const char*, std::int64_t, const FoundBlock<LayerResult>&,
                                    const at::Tensor&);

}  // namespace retort::sparsify
