#include "retort/publish/gguf_tensors.h"

#include <algorithm>
#include <set>
#include <tuple>

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

// Under which tensors lie in files; several may share one.
std::set<std::string> stored_names(const Config& config) {
  std::set<std::string> names;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors) names.insert(tensor.stored.name);
  return names;
}

// Embedding, blocks by number, norm, head.
std::tuple<int, std::uint32_t, std::string> place_of(const std::string& name) {
  if (const auto block = io::gguf_block(name)) return {1, *block, name};
  return {name.starts_with("token_embd") ? 0 : 2, 0, name};
}

io::GgufTensorToWrite divisors_tensor(const RopeDivisors& divisors) {
  return {divisors.name,
          io::GgmlType::f32,
          {std::ssize(divisors.values)},
          [values = divisors.values](const io::ByteSink& sink) { sink(std::as_bytes(std::span(values))); }};
}

}  // namespace

std::vector<io::GgufTensorToWrite> gguf_tensors(const Config& config, const io::WeightFiles& weights,
                                                const io::GgufArchitecture& architecture,
                                                const GgufTypeOf& type_of, const std::string& where) {
  std::vector<io::GgufTensorToWrite> tensors;
  for (const std::string& own : stored_names(config)) {
    const auto name = io::gguf_name(architecture, own);
    require<ModelError>(name.has_value(), where, ": GGUF architecture \"", architecture.name,
                        "\" has no tensor for ", io::quote(own), "; write the model for transformers.");
    const auto shape = weights.header(own).shape;
    const std::vector<std::int64_t> extents(shape.begin(), shape.end());
    const RowChange change = change_of(*name, config, architecture);
    const io::GgmlType type = type_of(*name, extents);
    tensors.push_back({*name, type, extents, [&weights, own, change, type](const io::ByteSink& sink) {
                         write_rows(weights, own, change, type, sink);
                       }});
  }
  for (const RopeDivisors& divisors : rope_divisors(config)) tensors.push_back(divisors_tensor(divisors));
  std::ranges::sort(tensors, {}, [](const io::GgufTensorToWrite& tensor) { return place_of(tensor.name); });
  return tensors;
}

}  // namespace retort::publish
