#include "retort/compress/options.h"
#include "retort/recipe/bind_options.h"

namespace retort::recipe {
namespace {

// What the chosen method would pass over in silence.
void refuse_idle_keys(Binder& b, const sparsify::SparsifyOptions& options) {
  if (options.method == compress::SparseMethod::sparse_gpt) return;
  const sparsify::SparsifyOptions defaults;
  const auto refuse = [&](const char* key, bool differs) {
    if (differs)
      b.mistake(key, "has no meaning with this method; leave it out, or choose method: sparse_gpt");
  };
  refuse("mask", options.mask != defaults.mask);
  refuse("block_size", options.block_size != defaults.block_size);
}

}  // namespace

void bind_sparsify(Binder& b, sparsify::SparsifyOptions& options) {
  b.one_of("pattern", options.pattern, {"2:4", "1:4", "4:8"}, {.doc = "kept weights of each group"});
  b.choice("method", options.method,
           {.doc = "alps and sparse_gpt also update the weights that stay; the others are for comparison"});
  b.choice("mask", options.mask,
           {.doc = "of sparse_gpt: each weight for itself, or all sets of a group compared"});
  b.flag(
      "permute", options.permute,
      {.doc = "channels of MLPs and features of values change places so that the pattern loses less; exact"});
  b.flag("polish", options.polish,
         {.doc = "least squares for the chosen mask, kept per layer where it helps on held-out inputs",
          .unset = "true for alps and sparse_gpt, false for the others"});
  if (b.fills() && !b.given("polish")) options.polish = compress::updates_weights(options.method);
  b.number("share", options.share,
           {.doc = "of the chosen layers' weights: the layers with the least damage to f become sparse",
            .above = 0,
            .at_most = 1});
  bind_objective(b, options.objective);
  b.texts("layers", options.layers,
          {.doc = "module names such as gate_proj",
           .may_be_empty = true,
           .unset = "every linear layer of the blocks"});
  b.counts("blocks", options.blocks,
           {.doc = "numbers from 0", .at_least = 0, .may_be_empty = true, .unset = "all"});
  b.number("dampening_fraction", options.dampening_fraction,
           {.doc = "of the mean diagonal of the Hessian", .above = 0, .at_most = 1});
  b.count("block_size", options.block_size,
          {.doc = "of sparse_gpt: columns of one sweep block", .at_least = 4, .at_most = 1 << 16});
  if (options.block_size % 4 != 0) b.mistake("block_size", "expected a multiple of 4");
  b.count(
      "calibration_tokens", options.calibration_tokens,
      {.doc = "over all sources: six eighths are fitted to, one chooses and one judges",
       .at_least = 1,
       .unset = "as the model needs: 16 fitted tokens for each input of its widest chosen layer, at least "
                "32768 in all",
       .written = options.calibration_tokens > 0});
  b.count("sequence_length", options.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.seed("seed", options.seed, {.doc = "of the choice of calibration data", .unset = "that of the recipe"});
  refuse_idle_keys(b, options);
}

}  // namespace retort::recipe
