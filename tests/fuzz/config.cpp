// config.json of every family: read, counted, laid out, the same again from what is written of it, and
// padded.
#include "fuzz/harness.h"
#include "retort/architecture/counts.h"
#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/layout.h"
#include "retort/publish/padded.h"

using namespace retort;

namespace {

bool has_experts(const architecture::Config& config) {
  for (const auto& block : config.blocks)
    if (std::holds_alternative<architecture::ExpertsMlp>(block.mlp)) return true;
  return false;
}

// Blocks that are alike, each as large as it was or larger, which a class of transformers takes.
void pad(const architecture::Config& config) {
  architecture::Config full;
  if (!fuzz::taken([&] { full = publish::padded(config); })) return;
  fuzz::require(full.uniform() && !architecture::written_form(full).is_own, "a padded model has a class");
  fuzz::require(architecture::num_parameters(full) >= architecture::num_parameters(config), "padding adds");
  fuzz::require(publish::padded(full) == full, "what is alike stays");
  for (std::size_t i = 0; i < config.blocks.size(); ++i)
    fuzz::require(
        !config.blocks[i].attention || config.blocks[i].attention->kind == full.blocks[i].attention->kind,
        "a block's kind stays");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  fuzz::taken([&] {
    std::vector<std::string> notes;
    const auto config = architecture::parse_hf_config(text, "config.json", &notes);
    (void)architecture::num_parameters(config);
    (void)architecture::flops_per_token(config, config.max_position_embeddings);
    (void)architecture::kv_cache_bytes(config, 4, config.max_position_embeddings);
    (void)architecture::rotary_values_per_token(config);
    if (has_experts(config)) return;
    (void)architecture::make_layout(config).size();
    std::string written;
    if (!fuzz::taken([&] { written = architecture::hf_config_json(config); })) return;
    architecture::Config again;
    const bool taken =
        fuzz::taken([&] { again = architecture::parse_hf_config(written, "written config.json"); });
    again.architecture = config.architecture;
    fuzz::require(taken && again == config, "what is written says the same");
    pad(config);
  });
  return 0;
}
