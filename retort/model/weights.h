#pragma once
// The weights of one decoder in memory: a flat buffer per unit, filled from and written to Hugging Face
// directories.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/architecture/layout.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/dtype.h"
#include "retort/model/lineage.h"
#include "retort/model/offload.h"

namespace retort::model {

struct Weights {
  architecture::Config config;
  architecture::Layout layout;
  Lineage lineage;
  io::Dtype file_dtype = io::Dtype::bf16;  ///< of the matrices in the file that it came from, and goes to
  std::vector<at::Tensor> units;           ///< flat, one per unit of the layout
  /// Null: they lie on the device that computes with them.
  std::shared_ptr<Offload> offload = {};

  /// One tensor as a view of its unit, in its own shape.
  at::Tensor tensor(std::size_t unit, const architecture::Tensor& tensor) const;
  /// The view of the tensor with this Hugging Face name; throws ModelError when there is none.
  at::Tensor tensor(std::string_view name) const;
  /// Of one value in memory.
  std::int64_t item_bytes() const;
  /// Of tensors that are computed with: type and device.
  at::TensorOptions options() const;
  /// These values on that device: themselves, or a copy.
  at::Tensor on_device(const at::Tensor& values) const;
  /// The same of a whole unit.  Of an offloaded model a copy lives until another unit is asked for.
  at::Tensor unit_on_device(std::size_t unit) const;
  /// The same of the unit with the head, whose copy stays.
  at::Tensor head_on_device() const;
  /// Copies of blocks are not the values any more.
  void blocks_changed() const;
  /// Nothing computes with them for now, so copies go.
  void forget_copies() const;
  /// XXH3 128-bit of config and values, the same wherever it is computed.
  std::string content_hash() const;
};

/// A model that is read in parts of units, so that nobody has to hold all of it.
struct UnitSource {
  architecture::Config config;
  architecture::Layout layout;
  Lineage lineage;
  io::Dtype file_dtype = io::Dtype::bf16;  ///< of the matrices in the file, and of what is made of it
  /// Fills `part`, zeros of any floating type on any device, with the elements of a unit from `begin` on.
  /// Reads no more of a file than the rows that they lie in; of quantised tensors all values are made.
  /// Throws ModelError.
  std::function<void(std::size_t unit, std::int64_t begin, const at::Tensor& part)> read;
};

/// A model directory.  Throws as load_weights() does; values are looked at when they are read.
UnitSource open_weights(const base::Path& directory);
/// Weights of normal(0, initializer_range), norms 1, each tensor from its own stream of `seed`.
UnitSource random_source(const architecture::Config& config, std::uint64_t seed);
/// Weights that are in memory, which outlive it.
UnitSource source_of(const Weights& weights);
/// A unit, flat, in `dtype`.
at::Tensor read_unit(const UnitSource& source, std::size_t unit, at::ScalarType dtype, at::Device device);
/// All units, in `dtype`.
Weights collected(const UnitSource& source, at::ScalarType dtype, at::Device device);

/// Reads a model directory; every value is converted to `dtype`.
/// Throws ModelError: unsound files, unsupported architecture, wrong shapes, values that are not finite.
Weights load_weights(const base::Path& directory, at::ScalarType dtype, at::Device device);

/// random_source(), collected.
Weights random_weights(const architecture::Config& config, std::uint64_t seed, at::ScalarType dtype,
                       at::Device device);

/// The units stay where they are, and `device` computes with copies of them.
void compute_with_copies(Weights& weights, at::Device device);
/// `weights`, which lie where those of `model` do, are computed with in the same way.
void compute_like(const Weights& model, Weights& weights);

/// A deep copy in another type.
Weights converted(const Weights& weights, at::ScalarType dtype);

/// Writes a complete Hugging Face directory as a whole: config, weights in weights.file_dtype, tokenizer
/// files of `tokenizer_from`, lineage and provenance in retort.json.  Throws StorageError; ValidationError
/// when a value is not finite or the file read back differs.
void save_model(const Weights& weights, const base::Path& directory, const base::Path& tokenizer_from,
                const base::Json& provenance);

}  // namespace retort::model
