#include "retort/model/weights.h"

#include <ATen/ATen.h>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/hf_layers.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/random.h"
#include "retort/io/model_directory.h"
#include "retort/model/dtype.h"
#include "retort/model/modeling_retort.h"
#include "retort/model/tensor_file.h"

namespace retort::model {
namespace {

at::Tensor tensor_of(const io::TensorView& view) {
  return model::tensor_of(view.dtype, view.shape, view.bytes);
}

Weights empty_weights(architecture::Config config, at::ScalarType dtype, at::Device device) {
  Weights weights;
  weights.layout = architecture::make_layout(config);
  weights.lineage = whole_lineage(config);
  weights.config = std::move(config);
  for (const auto& unit : weights.layout.units)
    weights.units.push_back(at::zeros({unit.size}, at::TensorOptions().dtype(dtype).device(device)));
  return weights;
}

template <typename Visit>
void for_each_tensor(const Weights& weights, Visit visit) {
  for (std::size_t unit = 0; unit < weights.layout.units.size(); ++unit)
    for (const auto& tensor : weights.layout.units[unit].tensors) visit(tensor, weights.tensor(unit, tensor));
}

io::TensorToWrite to_write(const Weights& weights, std::size_t unit, const architecture::Tensor& tensor) {
  const auto type = scalar_type(weights.file_dtype);
  return {tensor.name, weights.file_dtype, tensor.shape,
          [&weights, unit, &tensor, type](const io::ByteSink& sink) {
            const auto values = weights.tensor(unit, tensor).to(at::kCPU).to(type).contiguous();
            base::require<base::ValidationError>(values.isfinite().all().item<bool>(), tensor.name,
                                                 ": holds values that are not finite; nothing was saved.");
            sink(bytes_of(values));
          }};
}

void check_saved(const Weights& weights, const base::Path& directory) {
  const auto again = io::ModelDirectory::open(directory);
  const auto config = architecture::read_config(directory);
  architecture::check_tensors(config, again);
  const auto type = scalar_type(weights.file_dtype);
  for_each_tensor(weights, [&](const architecture::Tensor& tensor, const at::Tensor& values) {
    base::require<base::ValidationError>(
        at::equal(tensor_of(again.find(tensor.name)), values.to(at::kCPU).to(type)), directory.string(), ": ",
        tensor.name, " read back differs from what was written; check the disk.");
  });
}

}  // namespace

at::Tensor Weights::tensor(std::size_t unit, const architecture::Tensor& tensor) const {
  return units[unit].narrow(0, tensor.offset, tensor.numel).view(tensor.shape);
}

at::Tensor Weights::tensor(std::string_view name) const {
  const auto place = layout.find(name);
  base::require<base::ModelError>(place.has_value(), "the model has no tensor named ", name, ".");
  return tensor(place->unit, layout.at(*place));
}

std::int64_t Weights::item_bytes() const {
  return static_cast<std::int64_t>(units.front().element_size());
}

std::string Weights::content_hash() const {
  base::Hasher hasher;
  const auto text = architecture::hf_config_json(config);
  hasher.update(text.data(), text.size());
  for (const auto& unit : units) {
    const auto values = unit.to(at::kCPU).contiguous();
    hasher.update(values.const_data_ptr(), values.nbytes());
  }
  return hasher.hex();
}

Weights load_weights(const base::Path& directory, at::ScalarType dtype, at::Device device) {
  auto weights = empty_weights(architecture::read_config(directory), dtype, device);
  const auto files = io::ModelDirectory::open(directory);
  architecture::check_tensors(weights.config, files);
  weights.lineage = read_lineage(directory, weights.config);
  weights.file_dtype = architecture::weight_dtype(weights.config, files);
  for_each_tensor(weights, [&](const architecture::Tensor& tensor, at::Tensor target) {
    const auto values = tensor_of(files.find(tensor.name));
    base::require<base::ModelError>(
        values.isfinite().all().item<bool>(), directory.string(), ": ", tensor.name,
        " holds values that are not finite (NaN or infinity); the file is damaged or the "
        "model diverged, use another one.");
    if (const auto saved = scalar_type(weights.file_dtype); saved != values.scalar_type())
      base::require<base::ModelError>(values.to(saved).isfinite().all().item<bool>(), directory.string(),
                                      ": ", tensor.name, " holds values beyond ",
                                      io::long_name(weights.file_dtype),
                                      ", in which the model would be saved; correct dtype in config.json.");
    target.copy_(values);
  });
  return weights;
}

Weights random_weights(const architecture::Config& config, std::uint64_t seed, at::ScalarType dtype,
                       at::Device device) {
  auto weights = empty_weights(config, dtype, device);
  for_each_tensor(weights, [&](const architecture::Tensor& tensor, at::Tensor target) {
    if (architecture::is_norm(tensor.role)) {
      target.fill_(1);
      return;
    }
    base::Random random(seed, base::stream_of(tensor.name));
    auto values = at::empty(tensor.shape, at::kFloat);
    auto* out = values.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel; ++i)
      out[i] = static_cast<float>(random.next_normal() * config.initializer_range);
    target.copy_(values);
  });
  return weights;
}

Weights converted(const Weights& weights, at::ScalarType dtype) {
  auto copy = weights;
  for (auto& unit : copy.units) unit = unit.to(dtype, /*non_blocking=*/false, /*copy=*/true);
  return copy;
}

void save_model(const Weights& weights, const base::Path& directory, const base::Path& tokenizer_from,
                const base::Json& provenance) {
  base::write_directory_atomically(directory, [&](const base::Path& target) {
    std::vector<io::TensorToWrite> tensors;
    for (std::size_t unit = 0; unit < weights.layout.units.size(); ++unit)
      for (const auto& tensor : weights.layout.units[unit].tensors)
        tensors.push_back(to_write(weights, unit, tensor));
    io::write_weights(target, tensors);
    base::write_file_atomically(
        target / "config.json",
        architecture::hf_config_json(weights.config, {.dtype = weights.file_dtype, .additional = {}}));
    if (!weights.config.uniform())
      base::write_file_atomically(target / architecture::kModelingFile, std::string(kModelingScript));
    if (!tokenizer_from.empty()) io::copy_files(io::accompanying_files(tokenizer_from), target);
    const base::Json about = {
        {"format", 1}, {"lineage", to_json(weights.lineage)}, {"provenance", provenance}};
    base::write_file_atomically(target / kLineageFile, about.dump(1) + "\n");
    check_saved(weights, target);
  });
}

}  // namespace retort::model
