// retort.json of a model of two blocks.
#include "retort/model/lineage.h"

#include "fuzz/harness.h"

using namespace retort;

namespace {

architecture::Config two_blocks() {
  architecture::Config config;
  config.vocab_size = 64;
  config.hidden_size = 4;
  config.max_position_embeddings = 64;
  architecture::Block block;
  block.attention = architecture::Attention{.num_heads = 2, .num_kv_heads = 1, .head_dim = 2, .kind = {}};
  block.mlp = architecture::DenseMlp{.width = 4};
  config.blocks = {block, block};
  return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const architecture::Config config = two_blocks();
  fuzz::write(fuzz::folder() / model::kLineageFile, fuzz::text_of(data, size));
  fuzz::taken([] {
    const auto lineage = model::read_lineage(fuzz::folder(), config);
    (void)lineage.identity();
    const auto json = model::to_json(lineage);
    fuzz::require(model::to_json(model::lineage_from_json(json, config, "written")) == json,
                  "what is written says the same");
  });
  return 0;
}
