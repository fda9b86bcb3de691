#include "retort/sparsify/finished_blocks.h"

#include <cstdio>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/io/safetensors.h"
#include "retort/model/tensor_file.h"
#include "retort/record/scratch.h"

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

}  // namespace

FinishedBlocks::FinishedBlocks(base::Path directory, base::Json identity)
    : directory_(std::move(directory)),
      identity_(std::move(identity)),
      goes_on_(keep_any() && record::is_scratch_of(directory_, identity_)) {}

base::Path FinishedBlocks::path(const char* pass, std::int64_t block) const {
  char name[64];
  std::snprintf(name, sizeof name, "%s-%05lld.safetensors", pass, static_cast<long long>(block));
  return directory_ / name;
}

std::optional<base::Json> FinishedBlocks::read(const char* pass, std::int64_t block,
                                               const at::Tensor& weights_W) const {
  std::error_code ignored;
  if (!goes_on_ || !std::filesystem::is_regular_file(path(pass, block), ignored)) return {};
  try {
    const auto file = io::SafetensorsFile::open(path(pass, block));
    const auto& report = file.metadata().at(kReport);
    const auto weights = weights_W.defined() ? file.bytes(kWeights) : std::span<const std::byte>();
    if (file.metadata().at(kChecksum) != checksum(report, weights)) return {};
    if (weights_W.defined()) model::read_tensor(file, kWeights, weights_W);
    return base::Json::parse(report);
  } catch (const base::ModelError&) {
    return {};
  } catch (const std::out_of_range&) {
    return {};
  }
}

void FinishedBlocks::write(const char* pass, std::int64_t block, const base::Json& report,
                           const at::Tensor& weights_W) {
  if (!keep_any()) return;
  if (!std::exchange(entered_, true)) record::enter_scratch(directory_, identity_);
  const auto on_host = weights_W.defined() ? weights_W.to(at::kCPU).contiguous() : at::Tensor();
  std::vector<io::TensorToWrite> tensors;
  if (on_host.defined()) tensors.push_back(model::to_write(kWeights, on_host));
  const auto text = report.dump();
  io::write_safetensors(path(pass, block), tensors,
                        {{kReport, text}, {kChecksum, checksum(text, model::bytes_of(on_host))}});
}

}  // namespace retort::sparsify
