#pragma once
// Models whose blocks differ, padded with zeros until all blocks are alike: a stock class of other programs
// loads them, and they compute the same.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/architecture/layout.h"
#include "retort/io/model_directory.h"
#include "retort/io/weight_files.h"

namespace retort::publish {

/// The configuration with all blocks alike: each has as many KV groups and channels as the block that has
/// most of them, and keeps what it computes otherwise.  Heads are more than that where no class takes their
/// number. What is alike already stays as it is.  Throws ModelError where zeros would change what the model
/// computes.
architecture::Config padded(const architecture::Config& config);

/// The configuration where each block has an MLP: one of zeros where it was lost, as narrow as blocks of GGUF
/// allow. For programs that take blocks of several sizes and none without an MLP.
architecture::Config with_mlps(architecture::Config config);

/// The tensors of an open model as a padded configuration has them: heads and channels that were lost are
/// zeros behind the others, and the norms of halves that were lost are 1.  Each tensor is made when it is
/// asked for.
class PaddedWeights final : public io::WeightFiles {
 public:
  /// `directory` is the model of `config`, and outlives this; `shown` is what padded() or with_mlps() made of
  /// it. Throws ModelError where the files are not those of `config`.
  PaddedWeights(const architecture::Config& config, architecture::Config shown,
                const io::ModelDirectory& directory);

  const architecture::Config& config() const { return config_; }

  std::vector<std::string> names() const override;
  bool contains(std::string_view name) const override;
  io::TensorHeader header(std::string_view name) const override;
  io::TensorView find(std::string_view name) const override;
  std::map<std::string, std::string> metadata() const override;
  /// Of what is shown, zeros included; so are stored_types().
  std::size_t total_bytes() const override;
  io::StoredTypes stored_types() const override;
  std::vector<base::Path> paths() const override;
  io::UnreadTensors unread() const override { return unread_; }

 private:
  // One of the tensors that lie in a file as one, and what the model has of it.
  struct Part {
    architecture::Tensor tensor;
    std::optional<architecture::Tensor> source;
  };
  struct Entry {
    io::Dtype dtype = io::Dtype::f32;
    bool dequantised = false;
    std::vector<std::int64_t> shape;
    std::vector<Part> parts;
  };

  const Entry& entry(std::string_view name) const;

  const io::ModelDirectory& directory_;
  architecture::Config config_;
  io::UnreadTensors unread_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace retort::publish
