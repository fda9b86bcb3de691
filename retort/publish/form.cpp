#include "retort/publish/form.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/counts.h"
#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/publish/gguf_file.h"
#include "retort/publish/gguf_keys.h"
#include "retort/publish/hf_directory.h"
#include "retort/publish/load_table.h"
#include "retort/publish/modelfile.h"

namespace retort::publish {
namespace {

// That of all weights, or float32, which holds the values of each.
io::Dtype widest_dtype(const io::WeightFiles& weights) {
  std::optional<io::Dtype> all;
  for (const auto& name : weights.names()) {
    const auto own = weights.header(name).dtype;
    if (all && *all != own) return io::Dtype::f32;
    all = own;
  }
  return all.value_or(io::Dtype::f32);
}

void require_consistent(const ExportOptions& options) {
  const auto program = base::word(options.program);
  const bool of_gguf = !options.type.empty() || !options.like.empty() || options.max_part_bytes > 0;
  base::require<base::UsageError>(takes_gguf(options.program) || !of_gguf,
                                  "export: type, like and parts are of GGUF files, found them for ", program,
                                  ", which gets the type of the model; leave them out.");
  base::require<base::UsageError>(
      options.type.empty() || options.like.empty(),
      "export: expected a type or a file whose types are taken (like), found both; give "
      "one.");
}

std::optional<GgufTypes> types_of(const ExportOptions& options, io::Dtype dtype,
                                  const architecture::Config& config, std::vector<std::int64_t> numbers,
                                  const std::string& where) {
  require_consistent(options);
  if (!takes_gguf(options.program)) return std::nullopt;
  if (!options.like.empty()) return gguf_types_like(options.like, std::move(numbers));
  return gguf_types(options.type, dtype, config, where);
}

// In the words of the table, what programs were seen to stumble over.
std::vector<std::string_view> settings_of(const architecture::Config& config) {
  const auto windows = std::ranges::count_if(config.blocks, [](const architecture::Block& block) {
    return block.attention && block.attention->kind.window.has_value();
  });
  const auto& attention = attention_of(config);
  const auto* mlp = std::get_if<architecture::DenseMlp>(&config.blocks.front().mlp);
  std::vector<std::string_view> settings{kWhole};
  // As after pruning heads.
  if (attention.num_heads * attention.head_dim != config.hidden_size) settings.push_back(kHeads);
  if (windows > 0 && windows < std::ssize(config.blocks)) settings.push_back(kWindows);
  if (attention.kind.query_key_value_bias && attention.kind.output_bias) settings.push_back(kAttentionBias);
  if (mlp && mlp->activation == architecture::Activation::gelu_tanh) settings.push_back(kGelu);
  if (!config.tie_word_embeddings) settings.push_back(kUntied);
  return settings;
}

void require_computed_by_vllm(const architecture::Config& config, const std::string& where) {
  const std::string_view name = architecture::stock_family(config).architecture;
  for (const std::string_view setting : settings_of(config)) {
    const auto seen = seen_to_load(name, {&setting, 1}, base::word(Program::vllm));
    base::require<base::ModelError>(seen.answer != SeenToLoad::Answer::fails, where, ": ", seen.said,
                                    "; write it for transformers.");
  }
}

// With blocks as the program takes them.
architecture::Config shown(const ExportOptions& options, const architecture::Config& config) {
  const bool by_block = takes_gguf(options.program) && !config.uniform() && find_by_block(config);
  return by_block ? with_mlps(config) : padded(config);
}

std::string called(const base::Path& model) {
  const auto path = std::filesystem::absolute(model).lexically_normal();
  const auto last = path.has_filename() ? path : path.parent_path();
  const bool file = last.extension() == ".gguf";
  return base::as_utf8((file ? last.stem() : last.filename()).native());
}

}  // namespace

Form::Form(ExportOptions options, const base::Path& model, std::vector<std::int64_t> numbers)
    : options_(std::move(options)),
      model_(model),
      source_(io::ModelDirectory::open(model)),
      whole_(architecture::read_config(model)),
      weights_(whole_, shown(options_, whole_), source_),
      dtype_(architecture::weight_dtype(whole_, source_)),
      types_(types_of(options_, dtype_, weights_.config(), std::move(numbers), model.string())) {
  if (options_.program == Program::vllm) require_computed_by_vllm(weights_.config(), model.string());
}

WrittenForm Form::write(const base::Path& directory) const {
  if (!types_) {
    write_hf_directory(weights_, dtype_, model_, directory);
    return {directory, std::nullopt};
  }
  const auto most = options_.max_part_bytes > 0 ? static_cast<std::size_t>(options_.max_part_bytes)
                                                : std::numeric_limits<std::size_t>::max();
  const auto written = write_gguf_model(
      {.config = config(), .weights = weights_, .directory = model_, .name = name(), .types = *types_},
      directory / base::join(name(), "-", types_->name, ".gguf"), most);
  if (options_.program == Program::ollama) write_modelfile(config(), model_, written.files.front());
  return {written.files.front(), written.values};
}

std::string Form::name() const {
  return called(model_);
}

std::int64_t Form::zeros() const {
  return architecture::num_parameters(config()) - architecture::num_parameters(whole_);
}

bool Form::is_exact() const {
  const auto values = widest_dtype(weights_);
  return types_ ? types_->holds(values) : values == dtype_;
}

std::string Form::type() const {
  return types_ ? types_->name : std::string(io::name(dtype_));
}

std::string Form::seen() const {
  const std::string_view name = architecture::written_form(config()).family->architecture;
  return seen_to_load(name, {&kWhole, 1}, base::word(options_.program)).said;
}

std::string foreseen_form(const ExportOptions& options, const architecture::Config& config, bool may_differ,
                          const base::Path& tokenizer_from) {
  const std::string where = tokenizer_from.string();
  const auto alike = shown(options, config);
  if (options.program == Program::vllm) require_computed_by_vllm(alike, where);
  if (!types_of(options, io::Dtype::bf16, alike, {}, where)) {
    const std::string name = architecture::stock_family(alike).architecture;
    return may_differ || !config.uniform() ? name + ", padded with zeros" : name;
  }
  require_gguf_says(alike, tokenizer_from);
  const auto& row = gguf_architecture_of(alike, where);
  const bool by_block = may_differ && !row.by_block.empty();
  return base::join("GGUF architecture ", by_block ? row.by_block : row.name,
                    may_differ && !by_block && !row.is_by_block ? ", padded with zeros" : "");
}

}  // namespace retort::publish
