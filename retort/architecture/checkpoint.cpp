#include "retort/architecture/checkpoint.h"

#include <algorithm>
#include <map>
#include <optional>

#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

using base::ModelError;
using base::require;

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

bool is_weight_dtype(io::Dtype dtype) {
  return dtype == io::Dtype::f32 || dtype == io::Dtype::f16 || dtype == io::Dtype::bf16;
}

// Old files carry the rotary frequencies, which follow from the configuration; a tied head may be saved
// twice.
bool is_ignorable(std::string_view tensor, bool tied) {
  constexpr std::string_view kFrequencies = "rotary_emb.inv_freq";
  const bool frequencies = tensor.size() >= kFrequencies.size() &&
                           tensor.substr(tensor.size() - kFrequencies.size()) == kFrequencies;
  return frequencies || (tied && tensor == "lm_head.weight");
}

struct DtypeCounts {
  std::map<io::Dtype, std::int64_t> tensors, elements;
  bool dequantised = false;  ///< any of them

  io::Dtype most() const {
    return std::max_element(elements.begin(), elements.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
  std::string text() const {
    std::string list;
    for (const auto& [dtype, count] : tensors)
      list += base::join(list.empty() ? "" : ", ", count, " tensors of ", io::long_name(dtype));
    return list;
  }
};

DtypeCounts count_dtypes(const Config& config, const io::ModelDirectory& directory) {
  DtypeCounts counts;
  for (const Unit& unit : make_layout(config).units)
    for (const Tensor& tensor : unit.tensors) {
      const io::TensorHeader header = directory.header(tensor.stored.name);
      counts.tensors[header.dtype] += 1;
      counts.elements[header.dtype] += tensor.numel;
      counts.dequantised = counts.dequantised || header.dequantised;
    }
  return counts;
}

// "Q4_1 (106168320 values), ..."
std::string stored_text(const io::ModelDirectory& directory) {
  std::string list;
  for (const auto& [type, values] : directory.stored_types())
    list += base::join(list.empty() ? "" : ", ", type, " (", values, " values)");
  return list;
}

// What config.json says of the weights, under the name of transformers 5 or 4.
std::optional<io::Dtype> declared_dtype(const io::ModelDirectory& directory) {
  base::Json config;
  try {
    config = base::parse_json(directory.config_text());
  } catch (const base::JsonFault&) {
    return std::nullopt;  // whoever reads the configuration says so
  }
  for (const char* key : {"dtype", "torch_dtype"}) {
    const auto said = config.find(key);
    if (said == config.end() || !said->is_string()) continue;
    const auto dtype = io::parse_long_dtype(said->get_ref<const std::string&>());
    if (dtype && is_weight_dtype(*dtype)) return dtype;
  }
  return std::nullopt;
}

void check_tensor(const Tensor& tensor, const io::ModelDirectory& directory, bool is_gguf) {
  const std::string& name = tensor.stored.name;
  const std::string who = base::join(directory.path().string(), ": tensor ", io::quote(name));
  const std::string described = is_gguf ? "the metadata" : "config.json";
  const auto foreign = base::join("; the weights do not belong to ", described, " beside them.");
  require<ModelError>(directory.contains(name), who, " is missing",
                      tensor.role == Role::head && !is_gguf
                          ? "; if the head is the embedding, config.json needs \"tie_word_embeddings\": true."
                          : foreign);
  const auto expected = tensor.stored_shape();
  const io::TensorHeader found = directory.header(name);
  require<ModelError>(std::vector<std::int64_t>(found.shape.begin(), found.shape.end()) == expected, who,
                      " has shape ", shape_text(found.shape), ", expected ", shape_text(expected), " from ",
                      described, foreign);
  require<ModelError>(is_weight_dtype(found.dtype), who, " has dtype ", io::name(found.dtype),
                      ", expected F32, F16 or BF16; export the model without quantization.");
}

}  // namespace

void check_tensors(const Config& config, const io::ModelDirectory& directory) {
  const Layout layout = make_layout(config);
  const bool is_gguf = io::is_gguf(directory.path());
  std::map<std::string_view, const Tensor*> expected;
  for (const Unit& unit : layout.units)
    for (const Tensor& tensor : unit.tensors) {
      check_tensor(tensor, directory, is_gguf);
      expected[tensor.stored.name] = &tensor;
    }
  for (const std::string& tensor : directory.names())
    require<ModelError>(
        expected.count(tensor) == 1 || is_ignorable(tensor, layout.tied), directory.path().string(),
        ": tensor ", io::quote(tensor), " has no place in a ", config.architecture, " with ",
        config.blocks.size(),
        " blocks; ignoring it would change what the model computes, so use a model of a supported "
        "architecture.");
}

io::Dtype weight_dtype(const Config& config, const io::ModelDirectory& directory,
                       std::vector<std::string>* notes) {
  const DtypeCounts found = count_dtypes(config, directory);
  const std::optional<io::Dtype> declared = declared_dtype(directory);
  const bool alike = found.elements.size() == 1 && !found.dequantised;
  const io::Dtype dtype = alike ? found.elements.begin()->first : declared.value_or(found.most());
  if (notes == nullptr) return dtype;
  const std::string where = directory.path().string();
  if (found.dequantised)
    notes->push_back(base::join(where, ": weights are values dequantised from ", stored_text(directory),
                                ", and are saved in ", io::long_name(dtype), "."));
  else if (!alike)
    notes->push_back(base::join(where, ": weights of several types: ", found.text(), "; ",
                                declared ? "config.json says " : "most values are ", io::long_name(dtype),
                                ", in which all of them are saved."));
  else if (declared && *declared != dtype)
    notes->push_back(base::join(where, ": config.json says ", io::long_name(*declared),
                                ", but all weights are ", io::long_name(dtype),
                                ", in which they are saved."));
  return dtype;
}

}  // namespace retort::architecture
