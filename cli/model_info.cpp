#include "cli/model_info.h"

#include <cstring>
#include <variant>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/counts.h"
#include "retort/architecture/description.h"
#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/hf_layers.h"
#include "retort/architecture/layout.h"
#include "retort/architecture/loading.h"
#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/base/printable.h"
#include "retort/io/files_inside.h"
#include "retort/io/quote.h"
#include "retort/text/tokenizer_conflicts.h"
#include "retort/text/tokenizer_description.h"

namespace retort::cli {
namespace {

using architecture::Config;
using base::Json;

struct Counts {
  std::int64_t values = 0;
  std::int64_t zeros = 0;
  std::int64_t not_finite = 0;  ///< NaN and infinities
  bool two_of_four = true;      ///< every aligned group of four along a row keeps at most two
};

/// +0 and -0 are zero in every IEEE format: all bits but the sign.  Not finite are those whose exponent has
/// all of its bits.
template <typename Word>
Counts counted(std::span<const std::byte> bytes, std::int64_t cols, Word exponent) {
  Counts found;
  found.values = static_cast<std::int64_t>(bytes.size() / sizeof(Word));
  found.two_of_four = cols % 4 == 0;
  int zeros_of_group = 0;
  for (std::int64_t i = 0; i < found.values; ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + static_cast<std::size_t>(i) * sizeof(Word), sizeof(Word));
    if (i % 4 == 0) zeros_of_group = 0;
    const bool zero = static_cast<Word>(word << 1) == 0;
    found.zeros += zero;
    found.not_finite += (word & exponent) == exponent;
    zeros_of_group += zero;
    if (i % 4 == 3 && zeros_of_group < 2) found.two_of_four = false;
  }
  return found;
}

Counts counted(const io::TensorView& view) {
  const std::int64_t cols = view.shape.empty() ? 1 : view.shape.back();
  if (view.dtype == io::Dtype::f32) return counted<std::uint32_t>(view.bytes, cols, 0x7F80'0000);
  return counted<std::uint16_t>(view.bytes, cols, view.dtype == io::Dtype::f16 ? 0x7C00 : 0x7F80);
}

/// The rows of a tensor in what may be stored for several; those of a vector are its values.
io::TensorView rows_of(io::TensorView stored, const architecture::Tensor& tensor) {
  const std::size_t row = stored.bytes.size() / static_cast<std::size_t>(tensor.stored.rows);
  stored.bytes = stored.bytes.subspan(static_cast<std::size_t>(tensor.stored.first_row) * row,
                                      static_cast<std::size_t>(tensor.shape.front()) * row);
  return stored;
}

/// Zeros of the blocks' matrices, which are what is pruned and sparsified.  Adds a sentence to `notes` where
/// any tensor holds values that are not finite.
Json sparsity(const Config& config, const io::ModelDirectory& directory, std::vector<std::string>& notes) {
  Counts all;
  Json layers = Json::array();
  std::vector<std::string> not_finite;
  std::int64_t matrices = 0;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors) {
      const Counts found = counted(rows_of(directory.find(tensor.stored.name), tensor));
      if (found.not_finite > 0) not_finite.push_back(tensor.name);
      if (unit.kind != architecture::Unit::Kind::block || !tensor.is_matrix()) continue;
      ++matrices;
      all.values += found.values;
      all.zeros += found.zeros;
      if (found.two_of_four) layers.push_back(tensor.name);
    }
  if (!not_finite.empty())
    notes.push_back(base::join(directory.path().string(),
                               ": values that are not finite (NaN or infinity) are in ",
                               io::listed(not_finite), "; no command computes with such a model."));
  return {{"zero_fraction",
           all.values > 0 ? static_cast<double>(all.zeros) / static_cast<double>(all.values) : 0.0},
          {"matrices", matrices},
          {"matrices_2_of_4", layers.size()},
          {"layers_2_of_4", layers}};
}

Json describe(const architecture::Block& block) {
  Json json = Json::object();
  if (block.attention)
    json = {{"heads", block.attention->num_heads},
            {"kv_heads", block.attention->num_kv_heads},
            {"head_dim", block.attention->head_dim}};
  if (const auto* dense = std::get_if<architecture::DenseMlp>(&block.mlp)) json["mlp_width"] = dense->width;
  return json;
}

Json describe_blocks(const Config& config) {
  if (config.blocks.empty()) return Json::object();
  if (config.uniform()) return describe(config.blocks.front());
  Json blocks = Json::array();
  for (const auto& block : config.blocks) blocks.push_back(describe(block));
  return blocks;
}

/// What it computes, and which parts may go: "yes", or why not.
Json mathematics(const Config& config) {
  Json json = Json::object();
  for (const auto& [what, text] : architecture::described(config)) json[what] = text;
  return json;
}

Json pruning(const Config& config) {
  const auto said = [](const std::string& why) { return why.empty() ? "yes" : "no: " + why; };
  const std::string apart = architecture::why_heads_stay(config),
                    alike = architecture::why_heads_stay_alike(config);
  return {{"blocks", "yes"},
          {"channels", "yes"},
          {"kv_groups", apart.empty() && !alike.empty() ? "with units: per_layer; not with uniform: " + alike
                                                        : said(apart)},
          {"hidden", said(architecture::why_hidden_stays(config))}};
}

/// As config.json has it; of Retort's own form also whose blocks it has.
std::string named_architecture(const Config& config, const io::ModelDirectory& directory) {
  const Json json = Json::parse(directory.config_text());  // sound, since the configuration was read from it
  const auto names = json.find("architectures");
  if (names == json.end() || !names->is_array() || names->size() != 1 || !names->front().is_string())
    return config.architecture;
  const auto name = names->front().get<std::string>();
  return name == architecture::kOwnArchitecture ? base::join(name, " (blocks of a ", config.architecture, ")")
                                                : name;
}

std::string loading(const Config& config, const base::Path& path) {
  const std::string loads = architecture::where_it_loads(config);
  return io::is_gguf(path) ? "in llama.cpp, as it is; what Retort makes of it, " + loads : loads;
}

/// Nothing where there is none, or none that Retort reads.
Json tokenizer(const base::Path& path, const Config& config, std::vector<std::string>& notes) try {
  const architecture::Family& family = architecture::family_of(config.architecture);
  const text::TokenizerDescription found =
      text::describe_tokenizer(path, {.tokenizer_class = family.tokenizer_class,
                                      .tokenizer_class_is_fixed = family.tokenizer_class_is_fixed,
                                      .cuts_by_tekken = family.cuts_by_tekken,
                                      .rows = config.vocab_size});
  notes.insert(notes.end(), found.notes.begin(), found.notes.end());
  return {{"file", found.file}, {"steps", found.steps}};
} catch (const base::ModelError& error) {
  notes.emplace_back(error.what());
  return {};
}

/// What Retort wrote beside the weights, and the metadata inside them.
Json origin(const io::ModelDirectory& directory) {
  Json json = Json::object();
  for (const auto& [key, value] : directory.metadata())
    if (key != "format") json[key] = value;
  const base::Path lineage = directory.path() / "retort.json";
  if (!io::entry_exists(lineage)) return json;
  try {
    json["retort"] = base::read_own_json(io::resolve_inside(directory.path(), "retort.json"));
  } catch (const base::JsonFault& fault) {
    throw base::ModelError(base::join(lineage.string(), ": byte ", fault.byte, ": ", fault.reason, "."));
  }
  return json;
}

}  // namespace

Json describe_model(const base::Path& path) {
  std::vector<std::string> notes;
  const Config config = architecture::read_config(path, &notes);
  const auto directory = io::ModelDirectory::open(path);
  architecture::check_tensors(config, directory);
  const std::int64_t context = config.max_position_embeddings;
  const io::Dtype dtype = architecture::weight_dtype(config, directory, &notes);
  const auto item_bytes = static_cast<std::int64_t>(io::item_bytes(dtype));
  std::uintmax_t file_bytes = 0;
  for (const auto& file : directory.weight_files()) file_bytes += std::filesystem::file_size(file);
  Json info = {{"kind", "model"},
               {"path", base::as_utf8(path.native())},
               {"architecture", named_architecture(config, directory)},
               {"loads", loading(config, path)},
               {"parameters", architecture::num_parameters(config)},
               {"dtype", io::long_name(dtype)},
               {"file_bytes", file_bytes},
               {"vocab_size", config.vocab_size},
               {"hidden_size", config.hidden_size},
               {"num_blocks", config.blocks.size()},
               {"block", describe_blocks(config)},
               {"computes", mathematics(config)},
               {"may_be_pruned", pruning(config)},
               {"context", context},
               {"tied", config.tie_word_embeddings},
               {"tokenizer", tokenizer(path, config, notes)},
               {"flops_per_token", architecture::flops_per_token(config, context)},
               {"kv_cache_bytes_per_token", architecture::kv_cache_bytes_per_token(config, item_bytes)},
               {"sparsity", sparsity(config, directory, notes)},
               {"origin", origin(directory)}};
  if (io::is_gguf(path)) info["stored_values"] = directory.stored_types();
  if (const auto unread = architecture::unread_tensors(config, directory); !unread.empty())
    info["not_read"] = unread;
  for (auto& note : architecture::notes_on_files(config, directory)) notes.push_back(std::move(note));
  for (auto& note : text::tokenizer_conflicts(path)) notes.push_back(std::move(note));
  info["notes"] = notes;
  return info;
}

}  // namespace retort::cli
