#include "retort/model/weights.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/hf_layers.h"
#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/random.h"
#include "retort/io/model_directory.h"
#include "retort/model/dtype.h"
#include "retort/model/modeling_retort.h"
#include "retort/model/saved_units.h"
#include "retort/model/tensor_file.h"

namespace retort::model {
namespace {

UnitSource source_for(architecture::Config config) {
  UnitSource source;
  source.layout = architecture::make_layout(config);
  source.lineage = whole_lineage(config);
  source.config = std::move(config);
  return source;
}

// What of a tensor lies in a part of its unit: elements of the tensor, from `begin` up to `end`.
struct Piece {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

Piece piece_in(const architecture::Tensor& tensor, std::int64_t begin, const at::Tensor& part) {
  return {std::max<std::int64_t>(0, begin - tensor.offset),
          std::min(tensor.numel, begin + part.numel() - tensor.offset)};
}

at::Tensor place_of(const Piece& piece, const architecture::Tensor& tensor, std::int64_t begin,
                    const at::Tensor& part) {
  return part.narrow(0, tensor.offset + piece.begin - begin, piece.end - piece.begin);
}

// Rows of a tensor as a file has them, maybe among those of others; a row of a vector is a value.
at::Tensor rows_in(const io::ModelDirectory& files, const architecture::Tensor& tensor, std::int64_t first,
                   std::int64_t count) {
  const auto view = files.find(tensor.stored.name);
  const auto row_bytes = view.bytes.size() / static_cast<std::size_t>(view.shape.front());
  auto shape = tensor.shape;
  shape.front() = count;
  return tensor_of(view.dtype, shape,
                   view.bytes.subspan(static_cast<std::size_t>(tensor.stored.first_row + first) * row_bytes,
                                      static_cast<std::size_t>(count) * row_bytes));
}

at::Tensor tensor_in(const at::Tensor& flat, const architecture::Tensor& tensor) {
  return flat.narrow(0, tensor.offset, tensor.numel).view(tensor.shape);
}

// What a file gets of a tensor.
at::Tensor to_store(const SavedUnits& model, const at::Tensor& flat, const architecture::Tensor& tensor) {
  auto values = tensor_in(flat, tensor).to(at::kCPU);
  if (tensor.stored.subtracted != 0) values = values - tensor.stored.subtracted;
  return values.to(scalar_type(model.file_dtype)).contiguous();
}

// The tensors of a unit that share a place in the file with the one given, which is the first of them.
io::TensorToWrite to_write(const SavedUnits& model, std::size_t unit, const architecture::Tensor& first) {
  return {first.stored.name, model.file_dtype, first.stored_shape(),
          [&model, unit, &first](const io::ByteSink& sink) {
            const auto flat = model.values(unit);
            for (const auto& tensor : model.layout.units[unit].tensors) {
              if (tensor.stored.name != first.stored.name) continue;
              const auto values = to_store(model, flat, tensor);
              base::require<base::ValidationError>(values.isfinite().all().item<bool>(), tensor.name,
                                                   ": holds values that are not finite; nothing was saved.");
              sink(bytes_of(values));
            }
          }};
}

// The code by which transformers loads blocks that differ, for the family of a model.
std::string modeling_script(const architecture::Family& family) {
  constexpr std::string_view kBase = "BASE_MODEL_TYPE = \"of_config_json\"";
  std::string script(kModelingScript);
  const auto place = script.find(kBase);
  base::ensure(place != std::string::npos, "the script names a base");
  return script.replace(place, kBase.size(), base::join("BASE_MODEL_TYPE = \"", family.model_type, "\""));
}

void check_saved(const SavedUnits& model, const base::Path& directory) {
  const auto again = io::ModelDirectory::open(directory);
  const auto config = architecture::read_config(directory);
  architecture::check_tensors(config, again);
  for (std::size_t unit = 0; unit < model.layout.units.size(); ++unit) {
    const auto flat = model.values(unit);
    for (const auto& tensor : model.layout.units[unit].tensors)
      base::require<base::ValidationError>(
          at::equal(rows_in(again, tensor, 0, tensor.shape.front()), to_store(model, flat, tensor)),
          directory.string(), ": ", tensor.name, " read back differs from what was written; check the disk.");
  }
}

}  // namespace

at::Tensor Weights::tensor(std::size_t unit, const architecture::Tensor& tensor) const {
  return tensor_in(units[unit], tensor);
}

at::Tensor Weights::tensor(std::string_view name) const {
  const auto place = layout.find(name);
  base::require<base::ModelError>(place.has_value(), "the model has no tensor named ", name, ".");
  return tensor(place->unit, layout.at(*place));
}

std::int64_t Weights::item_bytes() const {
  return static_cast<std::int64_t>(units.front().element_size());
}

at::TensorOptions Weights::options() const {
  const auto options = units.front().options();
  return offload ? options.device(offload->device()) : options;
}

at::Tensor Weights::on_device(const at::Tensor& values) const {
  return offload ? values.to(offload->device()) : values;
}

at::Tensor Weights::unit_on_device(std::size_t unit) const {
  return offload ? offload->copy_of(unit, units[unit]) : units[unit];
}

at::Tensor Weights::head_on_device() const {
  return unit_on_device(static_cast<std::size_t>(layout.head_unit()));
}

void Weights::blocks_changed() const {
  if (offload) offload->forget_blocks();
}

void Weights::forget_copies() const {
  if (offload) offload->forget_all();
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

UnitSource open_weights(const base::Path& directory) {
  auto source = source_for(architecture::read_config(directory));
  const auto files = std::make_shared<io::ModelDirectory>(io::ModelDirectory::open(directory));
  architecture::check_tensors(source.config, *files);
  source.lineage = read_lineage(directory, source.config);
  source.file_dtype = architecture::weight_dtype(source.config, *files);
  source.read = [files, directory, units = source.layout.units, dtype = source.file_dtype](
                    std::size_t unit, std::int64_t begin, const at::Tensor& part) {
    for (const auto& tensor : units[unit].tensors) {
      const auto piece = piece_in(tensor, begin, part);
      if (piece.empty()) continue;
      const auto row = tensor.numel / tensor.shape.front(), first = piece.begin / row;
      const auto values = rows_in(*files, tensor, first, (piece.end + row - 1) / row - first);
      base::require<base::ModelError>(
          values.isfinite().all().item<bool>(), directory.string(), ": ", tensor.name,
          " holds values that are not finite (NaN or infinity); the file is damaged or the "
          "model diverged, use another one.");
      if (const auto saved = scalar_type(dtype); saved != values.scalar_type())
        base::require<base::ModelError>(values.to(saved).isfinite().all().item<bool>(), directory.string(),
                                        ": ", tensor.name, " holds values beyond ", io::long_name(dtype),
                                        ", in which the model would be saved; correct dtype in config.json.");
      auto place = place_of(piece, tensor, begin, part);
      place.copy_(values.flatten().narrow(0, piece.begin - first * row, place.numel()));
      if (tensor.stored.subtracted != 0) place.add_(tensor.stored.subtracted);
    }
  };
  return source;
}

UnitSource random_source(const architecture::Config& config, std::uint64_t seed) {
  auto source = source_for(config);
  source.read = [units = source.layout.units, seed, range = config.initializer_range](
                    std::size_t unit, std::int64_t begin, const at::Tensor& part) {
    for (const auto& tensor : units[unit].tensors) {
      const auto piece = piece_in(tensor, begin, part);
      if (piece.empty()) continue;
      auto place = place_of(piece, tensor, begin, part);
      if (architecture::is_norm(tensor.role) || architecture::is_bias(tensor.role)) {
        place.fill_(architecture::is_norm(tensor.role) ? 1 : 0);
        continue;
      }
      auto values = at::empty({place.numel()}, at::kFloat);
      auto* out = values.mutable_data_ptr<float>();
      at::parallel_for(0, place.numel(), std::int64_t{1} << 14, [&](std::int64_t from, std::int64_t to) {
        base::Random random(seed, base::stream_of(tensor.name));
        random.set_position(static_cast<std::uint64_t>(piece.begin + from) * base::Random::kDrawsOfNormal);
        for (std::int64_t i = from; i < to; ++i) out[i] = static_cast<float>(random.next_normal() * range);
      });
      place.copy_(values);
    }
  };
  return source;
}

UnitSource source_of(const Weights& weights) {
  return {weights.config, weights.layout, weights.lineage, weights.file_dtype,
          [&weights](std::size_t unit, std::int64_t begin, const at::Tensor& part) {
            if (part.numel() > 0) part.copy_(weights.units[unit].narrow(0, begin, part.numel()));
          }};
}

at::Tensor read_unit(const UnitSource& source, std::size_t unit, at::ScalarType dtype, at::Device device) {
  auto flat = at::zeros({source.layout.units[unit].size}, at::TensorOptions().dtype(dtype).device(device));
  source.read(unit, 0, flat);
  return flat;
}

Weights collected(const UnitSource& source, at::ScalarType dtype, at::Device device) {
  Weights weights{source.config, source.layout, source.lineage, source.file_dtype, {}};
  for (std::size_t unit = 0; unit < source.layout.units.size(); ++unit)
    weights.units.push_back(read_unit(source, unit, dtype, device));
  return weights;
}

Weights load_weights(const base::Path& directory, at::ScalarType dtype, at::Device device) {
  return collected(open_weights(directory), dtype, device);
}

Weights random_weights(const architecture::Config& config, std::uint64_t seed, at::ScalarType dtype,
                       at::Device device) {
  return collected(random_source(config, seed), dtype, device);
}

void compute_with_copies(Weights& weights, at::Device device) {
  weights.offload = std::make_shared<Offload>(device, static_cast<std::size_t>(weights.layout.head_unit()));
}

void compute_like(const Weights& model, Weights& weights) {
  if (model.offload) compute_with_copies(weights, model.offload->device());
}

Weights converted(const Weights& weights, at::ScalarType dtype) {
  auto copy = weights;
  compute_like(weights, copy);
  for (auto& unit : copy.units) unit = unit.to(dtype, /*non_blocking=*/false, /*copy=*/true);
  return copy;
}

void save_model(const Weights& weights, const base::Path& directory, const base::Path& tokenizer_from,
                const base::Json& provenance) {
  const SavedUnits units{weights.config, weights.layout, weights.lineage, weights.file_dtype,
                         [&](std::size_t unit) { return weights.units[unit]; }};
  save_model(units, directory, tokenizer_from, provenance);
}

void save_model(const SavedUnits& model, const base::Path& directory, const base::Path& tokenizer_from,
                const base::Json& provenance) {
  base::write_directory_atomically(directory, [&](const base::Path& target) {
    std::vector<io::TensorToWrite> tensors;
    for (std::size_t unit = 0; unit < model.layout.units.size(); ++unit)
      for (const auto& tensor : model.layout.units[unit].tensors)
        if (tensor.stored.first_row == 0) tensors.push_back(to_write(model, unit, tensor));
    io::write_weights(target, tensors);
    base::write_file_atomically(
        target / "config.json",
        architecture::hf_config_json(model.config, {.dtype = model.file_dtype, .additional = {}}));
    if (const auto form = architecture::written_form(model.config); form.is_own)
      base::write_file_atomically(target / architecture::kModelingFile, modeling_script(*form.family));
    if (!tokenizer_from.empty()) io::copy_files(io::accompanying_files(tokenizer_from), target);
    const base::Json about = {
        {"format", kLineageFormat}, {"lineage", to_json(model.lineage)}, {"provenance", provenance}};
    base::write_file_atomically(target / kLineageFile, about.dump(1) + "\n");
    check_saved(model, target);
  });
}

}  // namespace retort::model
