#include "retort/publish/gguf_tensors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/io/gguf_names.h"
#include "retort/io/quote.h"
#include "retort/publish/gguf_keys.h"
#include "retort/publish/rows.h"

namespace retort::publish {
namespace {

using architecture::Config;
using base::ModelError;
using base::require;

RowChange change_of(const std::string& name, const Config& config, const io::GgufArchitecture& architecture) {
  const auto head = static_cast<std::size_t>(attention_of(config).head_dim);
  if (architecture.norms_plus_one && name.ends_with("norm.weight")) return {.added = 1};
  const bool turned = name.ends_with(".attn_q.weight") || name.ends_with(".attn_k.weight");
  return {.rows_of_head = architecture.rows_reordered && turned ? head : 0};
}

// Embedding, blocks by number, norm, head.
std::tuple<int, std::uint32_t, std::string> place_of(const std::string& name) {
  if (const auto block = io::gguf_block(name)) return {1, *block, name};
  return {name.starts_with("token_embd") ? 0 : 2, 0, name};
}

// Those of a file differ by how they were rounded.
constexpr float kDivisorTolerance = 1e-5F;

// As in the file that the model came from, where these mean the same.
std::vector<float> as_in_file(const RopeDivisors& divisors, const GgufTypes& types) {
  const auto stored = types.like ? types.like->divisors(divisors.name) : std::vector<float>{};
  const bool same = std::ranges::equal(stored, divisors.values, [](float a, float b) {
    return std::abs(a - b) <= kDivisorTolerance * std::abs(b);
  });
  return same ? stored : divisors.values;
}

io::GgufTensorToWrite divisors_tensor(const std::string& name, std::vector<float> values) {
  const std::int64_t count = std::ssize(values);
  return {name, io::GgmlType::f32, {count}, [values = std::move(values)](const io::ByteSink& sink) {
            sink(std::as_bytes(std::span(values)));
          }};
}

// A tensor of the model, as it is to be written.
struct Written {
  std::string own, name;  // of the model, in the file
  std::vector<std::int64_t> shape;
  RowChange change;
  io::Dtype dtype = io::Dtype::f32;

  std::optional<StoredBlocks> blocks_in(const LikeFile& like) const {
    return like.blocks(name, shape.back(), {.dtype = dtype, .added = change.added});
  }
};

// A type that is only read stays where all blocks do.
io::GgmlType type_of(const Written& tensor, const io::WeightFiles& weights, const GgufTypes& types) {
  const io::GgmlType type = types.of(tensor.name, tensor.shape);
  if (!types.like || types.like->type(tensor.name) == type) return type;
  auto stored = tensor.blocks_in(*types.like);
  const bool all =
      stored && io::is_quantised(stored->type()) && are_stored(weights, tensor.own, tensor.change, *stored);
  return all ? stored->type() : type;
}

void write(const Written& tensor, const io::WeightFiles& weights, io::GgmlType type, const LikeFile* like,
           QuantisedValues& counted, const io::ByteSink& sink) {
  auto stored = like ? tensor.blocks_in(*like) : std::nullopt;
  const bool of_type = stored && stored->type() == type;
  const auto kept = write_rows(weights, tensor.own, tensor.change, type, of_type ? &*stored : nullptr, sink);
  if (!io::is_quantised(type)) return;
  counted.kept += kept;
  counted.all +=
      std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies());
}

}  // namespace

std::map<std::string, std::string> gguf_names(const Config& config, const io::GgufArchitecture& architecture,
                                              const std::string& where) {
  std::map<std::string, std::string> names;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors) {  // several may lie in one
      const std::string& own = tensor.stored.name;
      const auto name = io::gguf_name(architecture, own);
      require<ModelError>(name.has_value(), where, ": GGUF architecture \"", architecture.name,
                          "\" has no tensor for ", io::quote(own), "; write the model for transformers.");
      names[own] = *name;
    }
  return names;
}

std::vector<io::GgufTensorToWrite> gguf_tensors(const Config& config, const io::WeightFiles& weights,
                                                const io::GgufArchitecture& architecture,
                                                const GgufTypes& types, QuantisedValues& counted,
                                                const std::string& where) {
  std::vector<io::GgufTensorToWrite> tensors;
  for (const auto& [own, name] : gguf_names(config, architecture, where)) {
    const auto header = weights.header(own);
    const Written tensor{.own = own,
                         .name = name,
                         .shape = {header.shape.begin(), header.shape.end()},
                         .change = change_of(name, config, architecture),
                         .dtype = header.dtype};
    const io::GgmlType type = type_of(tensor, weights, types);
    tensors.push_back({name, type, tensor.shape,
                       [&weights, &counted, tensor, type, like = types.like](const io::ByteSink& sink) {
                         write(tensor, weights, type, like.get(), counted, sink);
                       }});
  }
  for (const RopeDivisors& divisors : rope_divisors(config))
    tensors.push_back(divisors_tensor(divisors.name, as_in_file(divisors, types)));
  std::ranges::sort(tensors, {}, [](const io::GgufTensorToWrite& tensor) { return place_of(tensor.name); });
  return tensors;
}

}  // namespace retort::publish
