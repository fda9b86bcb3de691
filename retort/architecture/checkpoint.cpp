#include "retort/architecture/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
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

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

// Why the model computes the same without a tensor that has no place in it; empty where it does not.
std::string_view why_unread(std::string_view tensor, bool tied) {
  if (tensor.ends_with("rotary_emb.inv_freq")) return "the rotary frequencies follow from the configuration";
  if (tied && tensor == kHead) return "the head is the embedding, whose values it has";
  return {};
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

// Words before the names of Hugging Face, and who puts them there.
struct Prefix {
  std::string_view words, writer;
};
constexpr std::array kPrefixes{Prefix{"_orig_mod.", "torch.compile"},
                               Prefix{"module.", "data parallel training"},
                               Prefix{"_fsdp_wrapped_module.", "FSDP"},
                               Prefix{"base_model.model.", "peft, of a model whose adapter is not merged"}};

// The embedding under the names of other writers.
struct ForeignName {
  const char *name, *writer;
};
constexpr std::array kForeign{ForeignName{"tok_embeddings.weight", "Meta's and Mistral's own files"},
                              ForeignName{"transformer.wte.weight", "GPT-2 and its kin"}};

// What a quantised matrix has in the place of its weight.
constexpr std::array<std::string_view, 6> kQuantised{
    "qweight", "weight_packed", "weight.absmax", "weight_scale", "weight_scale_inv", "weight.quant_state"};

bool is_quantised(const io::ModelDirectory& directory, std::string_view name) {
  constexpr std::string_view kWeight = "weight";
  if (!name.ends_with(kWeight)) return false;
  const std::string stem(name.substr(0, name.size() - kWeight.size()));
  return std::ranges::any_of(
      kQuantised, [&](std::string_view ending) { return directory.contains(stem + std::string(ending)); });
}

// What the files have in the place of a tensor: the rest of a sentence.
std::string in_place_of(const io::ModelDirectory& directory, const std::string& name) {
  if (is_quantised(directory, name))
    return "; its values are quantised there, which Retort does not read in safetensors: use the model that "
           "was "
           "quantised, or dequantise it with transformers.";
  for (const auto& [foreign, writer] : kForeign)
    if (name == kEmbedding && directory.contains(foreign))
      return base::join(", but ", io::quote(foreign), " is there, as in ", writer,
                        "; use the same model in Hugging Face's form.");
  for (const std::string& there : directory.names()) {
    if (there.size() <= name.size() || !there.ends_with("." + name)) continue;
    const std::string_view words = std::string_view(there).substr(0, there.size() - name.size());
    const auto known = std::ranges::find(kPrefixes, words, &Prefix::words);
    return base::join(", but ", io::quote(there), " is there",
                      known == kPrefixes.end() ? "" : base::join(", as written by ", known->writer),
                      "; take ", io::quote(words), " off the names of the tensors.");
  }
  return {};
}

void check_tensor(const Tensor& tensor, const io::ModelDirectory& directory, bool is_gguf) {
  const std::string& name = tensor.stored.name;
  const std::string who = base::join(directory.path().string(), ": tensor ", io::quote(name));
  const std::string described = is_gguf ? "the metadata" : "config.json";
  const auto foreign = base::join("; the weights do not belong to ", described, " beside them.");
  if (!directory.contains(name)) {
    const std::string instead = in_place_of(directory, name);
    throw ModelError(base::join(who, " is missing",
                                !instead.empty() ? instead
                                : tensor.role == Role::head && !is_gguf
                                    ? "; if the head is the embedding, config.json needs "
                                      "\"tie_word_embeddings\": true."
                                    : foreign));
  }
  const auto expected = tensor.stored_shape();
  const io::TensorHeader found = directory.header(name);
  require<ModelError>(is_weight_dtype(found.dtype) || !is_quantised(directory, name), who, " has dtype ",
                      io::name(found.dtype), in_place_of(directory, name));
  require<ModelError>(std::vector<std::int64_t>(found.shape.begin(), found.shape.end()) == expected, who,
                      " has shape ", shape_text(found.shape), ", expected ", shape_text(expected), " from ",
                      described, foreign);
  require<ModelError>(is_weight_dtype(found.dtype), who, " has dtype ", io::name(found.dtype),
                      ", expected F32, F16 or BF16; export the model without quantization.");
}

// The block that a tensor of the files belongs to; nothing for one of no block.
std::optional<std::size_t> block_of(std::string_view tensor) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!tensor.starts_with(kLayers)) return {};
  const std::string_view number = tensor.substr(kLayers.size());
  std::size_t block = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), block);
  return error == std::errc() && end != number.data() + number.size() && *end == '.' ? std::optional(block)
                                                                                     : std::nullopt;
}

// A tensor that would change what the model computes if it were not read.
[[noreturn]] void refuse_foreign(const std::string& tensor, const Config& config,
                                 const io::ModelDirectory& directory) {
  const auto blocks = config.blocks.size();
  const bool beyond = block_of(tensor).value_or(0) >= blocks;
  std::size_t there = 0;
  for (const auto& name : directory.names()) there = std::max(there, block_of(name).value_or(0) + 1);
  throw ModelError(base::join(
      directory.path().string(), ": tensor ", io::quote(tensor), " has no place in a ", config.architecture,
      " with ", blocks, " blocks; ",
      beyond ? base::join("the weights have ", there, " blocks: ",
                          io::is_gguf(directory.path())
                              ? "convert the model again."
                              : "use the config.json that belongs to them, or correct num_hidden_layers.")
             : "ignoring it would change what the model computes, so use a model of a supported "
               "architecture."));
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
    if (expected.count(tensor) == 0 && why_unread(tensor, layout.tied).empty())
      refuse_foreign(tensor, config, directory);
  require<ModelError>(!layout.tied || !has_own_head(directory), directory.path().string(), ": tensor ",
                      io::quote(kHead),
                      " differs from the embedding, which is the head by config.json; set "
                      "\"tie_word_embeddings\": false there, or take the tensor out.");
}

io::UnreadTensors unread_tensors(const Config& config, const io::ModelDirectory& directory) {
  io::UnreadTensors unread = directory.unread();
  for (const std::string& tensor : directory.names())
    if (const auto why = why_unread(tensor, config.tie_word_embeddings); !why.empty())
      unread[std::string(why)].push_back(tensor);
  return unread;
}

std::vector<std::string> notes_on_files(const Config& config, const io::ModelDirectory& directory) {
  std::vector<std::string> notes = directory.notes();
  for (const auto& [why, tensors] : unread_tensors(config, directory))
    notes.push_back(base::join(directory.path().string(), ": not read ", tensors.size() == 1 ? "is " : "are ",
                               io::listed(tensors), ": ", why, "."));
  return notes;
}

bool has_own_head(const io::ModelDirectory& directory) {
  if (!directory.contains(kHead) || !directory.contains(kEmbedding)) return false;
  const io::TensorView head = directory.find(kHead), embedding = directory.find(kEmbedding);
  if (!std::ranges::equal(head.shape, embedding.shape)) return true;
  return head.dtype != embedding.dtype || head.bytes.size() != embedding.bytes.size() ||
         std::memcmp(head.bytes.data(), embedding.bytes.data(), head.bytes.size()) != 0;
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
