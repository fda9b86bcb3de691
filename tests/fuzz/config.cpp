// config.json of every family: read, counted, laid out, and the same again from what is written of it.
#include "fuzz/harness.h"
#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/layout.h"

using namespace retort;

namespace {

bool has_experts(const architecture::Config& config) {
  for (const auto& block : config.blocks)
    if (std::holds_alternative<architecture::ExpertsMlp>(block.mlp)) return true;
  return false;
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
  });
  return 0;
}
