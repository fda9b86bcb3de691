#include "retort/recipe/bind_options.h"
#include "retort/compress/options.h"

namespace retort::recipe {
namespace {

void bind_held_out(Binder& b, data::HeldOut& held_out) {
  const int ways = b.given("fraction") + b.given("every") + b.given("path");
  if (ways > 1) b.mistake("", "expected one of fraction, every and path, found " + std::to_string(ways));
  const bool other_way =
      b.fills() ? b.given("every") || b.given("path") : held_out.every > 0 || !held_out.paths.empty();
  if (b.fills() && other_way) held_out.fraction = 0;
  b.number("fraction", held_out.fraction,
           {.doc = "of the documents, chosen by a hash of the text",
            .at_least = 0,
            .at_most = 0.5,
            .written = !other_way});
  b.count("every", held_out.every,
          {.doc = "instead: of so many documents the last",
           .at_least = 2,
           .unset = "off",
           .written = held_out.every > 0});
  b.texts(
      "path", held_out.paths,
      {.doc = "instead: files or globs of their own", .unset = "off", .written = !held_out.paths.empty()});
}

void bind_packing(Binder& b, data::PackingOptions& packing) {
  b.count("sequence_length", packing.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.flag("bos", packing.bos, {.doc = "begin-of-text token before each document"});
  b.flag("eos", packing.eos, {.doc = "end-of-text token after each document"});
  b.flag("attend_across_documents", packing.attend_across_documents,
         {.doc = "false: attention and positions start anew with each document"});
  b.count("shuffle_documents", packing.shuffle_documents,
          {.doc = "documents shuffled among each other at a time; 1: source order",
           .at_least = 1,
           .at_most = 1 << 24});
  b.count("shuffle_sequences", packing.shuffle_sequences,
          {.doc = "packed sequences shuffled among each other at a time; 1: as they were packed",
           .at_least = 1,
           .at_most = 1 << 20});
}

void bind_batch(Binder& b, train::BatchOptions& batch) {
  b.count("sequences", batch.sequences, {.doc = "of a micro-batch", .at_least = 1, .at_most = 1 << 16});
  b.count("accumulate", batch.accumulate,
          {.doc = "micro-batches of a step", .at_least = 1, .at_most = 1 << 16});
  b.count("wave", batch.wave,
          {.doc = "micro-batches that advance together; 0: all of a step, 1: classic accumulation",
           .at_least = 0});
  if (batch.wave > batch.accumulate) b.mistake("wave", "more than the micro-batches of a step (accumulate)");
}

void bind_optim(Binder& b, optim::OptimOptions& optim) {
  b.number("lr", optim.lr, {.doc = "learning rate", .above = 0});
  if (b.fills()) optim.embedding_lr = optim.lr;
  b.number("embedding_lr", optim.embedding_lr, {.doc = "of embedding and head", .above = 0, .unset = "lr"});
  b.number("beta1", optim.beta1, {.doc = "decay of the first moment", .at_least = 0, .below = 1});
  b.number("beta2", optim.beta2, {.doc = "decay of the second moment", .at_least = 0, .below = 1});
  b.number("eps", optim.eps, {.doc = "added to the root of the second moment", .above = 0});
  b.number("weight_decay", optim.weight_decay, {.doc = "decoupled, of matrices only", .at_least = 0});
  b.number("clip_norm", optim.clip_norm, {.doc = "global gradient norm; 0: no clipping", .at_least = 0});
  b.choice("schedule", optim.schedule, {.doc = "after warm-up"});
  if (b.given("warmup_fraction") && b.given("warmup_steps"))
    b.mistake("warmup_steps", "expected warmup_fraction or warmup_steps, found both");
  b.number("warmup_fraction", optim.warmup_fraction,
           {.doc = "of all steps", .at_least = 0, .at_most = 1, .written = optim.warmup_steps < 0});
  b.count("warmup_steps", optim.warmup_steps,
          {.doc = "instead of the fraction",
           .at_least = 0,
           .unset = "the fraction",
           .written = optim.warmup_steps >= 0});
  b.number("final_lr_fraction", optim.final_lr_fraction,
           {.doc = "of lr, reached at the last step (cosine)", .at_least = 0, .at_most = 1});
}

void bind_loss(Binder& b, loss::LossOptions& options) {
  auto kind = static_cast<std::size_t>(options.kind);
  const auto words = words_of(options.kind);
  b.kind("kind", kind, Words(words.begin(), words.end()), {.doc = "of the loss", .required = true},
         [&options](Binder& inner, std::size_t k) {
           options.kind = static_cast<loss::LossKind>(k);
           inner.number("weight", options.weight, {.doc = "in the sum of the losses", .above = 0});
           if (options.kind == loss::LossKind::kl_divergence) {
             inner.number("temperature", options.temperature, {.doc = "of both distributions", .above = 0});
             inner.choice("direction", options.direction, {.doc = "forward: KL(teacher || student)"});
             inner.flag("temperature_squared", options.temperature_squared, {.doc = "scale by T squared"});
           } else if (options.kind == loss::LossKind::squarehead) {
             inner.choice("layer_map", options.layer_map,
                          {.doc = "which teacher block a student block is compared with"});
             inner.number("eps", options.eps, {.doc = "added to the teacher's mean square", .at_least = 0});
           }
         });
}

void bind_losses(Binder& b, std::vector<loss::LossOptions>& losses, bool with_teacher) {
  b.items("loss",
          {.shape = Binder::Shape::list,
           .size = [&] { return losses.size(); },
           .add = [&] { losses.emplace_back(); },
           .name = {},
           .body = [&](Binder& inner, std::size_t i) { bind_loss(inner, losses[i]); }},
          {.doc = "the losses that are summed",
           .unset = with_teacher ? "0.25 CE + KL at T = 3 + SquareHead" : "cross-entropy"});
  if (b.fills() && !b.given("loss")) {
    losses = with_teacher ? loss::default_distillation_losses() : std::vector<loss::LossOptions>(1);
    return;
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (losses[i].kind == losses[j].kind)
        b.mistake("loss", "a kind of loss is given twice; keep one of them");
    const auto& traits = loss::traits_of(losses[i].kind);
    if (!with_teacher && traits.needs_teacher)
      b.mistake("loss", std::string(traits.name) + " needs a teacher; use kind distill or select");
  }
}

void bind_objective(Binder& b, calibrate::ObjectiveWeights& objective) {
  b.group("objective",
          [&](Binder& inner) {
            inner.number("perplexity", objective.perplexity,
                         {.doc = "weight of delta log perplexity", .at_least = 0});
            inner.number("kl", objective.kl, {.doc = "weight of KL(teacher || candidate)", .at_least = 0});
            if (objective.perplexity + objective.kl <= 0)
              inner.mistake("", "perplexity and kl are both 0; give one of them weight");
          },
          {.doc = "what a candidate costs"});
}

}  // namespace

void bind_source(Binder& b, data::SourceOptions& source) {
  b.texts("path", source.paths,
          {.doc = "files or globs: text or .jsonl, either also with .gz or .zst", .required = true});
  b.text("separator", source.separator,
         {.doc = "plain text: documents are cut here; empty: a file is a document", .may_be_empty = true});
  b.text("field", source.field, {.doc = "JSONL: the key that holds the text"});
  b.number("weight", source.weight,
           {.doc = "share of the tokens, relative to the other sources of a stage", .above = 0});
  b.group("held_out", [&](Binder& inner) { bind_held_out(inner, source.held_out); },
          {.doc = "documents that only evaluation sees"});
  b.flag("skip_bad_lines", source.skip_bad_lines,
         {.doc = "JSONL: count and skip a bad line, instead of an error"});
}

void bind_train(Binder& b, train::TrainOptions& options, bool with_teacher) {
  b.count("tokens", options.tokens,
          {.doc = "budget, rounded up to whole steps", .required = true, .above = 0});
  b.seed("seed", options.seed,
         {.doc = "of the order of samples and of random weights", .unset = "that of the recipe"});
  b.group("packing", [&](Binder& inner) { bind_packing(inner, options.packing); },
          {.doc = "how documents become sequences"});
  b.group("batch", [&](Binder& inner) { bind_batch(inner, options.batch); },
          {.doc = "what a step is made of"});
  b.group("optim", [&](Binder& inner) { bind_optim(inner, options.optim); }, {.doc = "AdamW"});
  bind_losses(b, options.losses, with_teacher);
  b.choice("recompute", options.recompute,
           {.doc = "blocks in backward; auto: unless the plan says that keeping them fits"});
  b.count("head_rows", options.head_rows,
          {.doc = "tokens of a chunk of head and loss; 0: chosen by the plan", .at_least = 0});
  b.count("checkpoint_every_steps", options.checkpoint_every_steps, {.doc = "steps", .at_least = 1});
  b.count("keep_checkpoints", options.keep_checkpoints, {.doc = "the newest", .at_least = 1});
  b.count("evaluate_every_steps", options.evaluate_every_steps,
          {.doc = "held-out loss; 0: never", .at_least = 0});
  b.count("evaluate_tokens", options.evaluate_tokens, {.doc = "per source, for that loss", .at_least = 1});
}

void refuse_impossible_search(Binder& inner, const prune::PruneOptions& options) {
  if (options.units == prune::Units::uniform && options.search.method == prune::SearchMethod::additive)
    inner.mistake(
        "method",
        "additive needs units whose parameters add up, and a head or a channel of all blocks holds fewer "
        "parameters where blocks are gone; choose units: per_layer, sub_blocks or blocks, or another method");
}

// What the chosen method or units would pass over in silence; the defaults, which `recipe show` writes, are
// no mistake.
void refuse_idle_search(Binder& inner, const prune::PruneOptions& options) {
  const prune::SearchOptions defaults;
  const auto& search = options.search;
  if (options.units != prune::Units::uniform || search.method != prune::SearchMethod::greedy) return;
  const auto refuse = [&](const char* key, bool differs) {
    if (differs)
      inner.mistake(
          key,
          "has no meaning in the stepwise search, greedy with uniform units, which ends at the target; "
          "leave it out, or choose another method or other units");
  };
  refuse("budget_tokens", search.budget_tokens != defaults.budget_tokens);
  refuse("tolerance", search.tolerance != defaults.tolerance);
  refuse("finalists", search.finalists != defaults.finalists);
}

void refuse_idle_keys(Binder& b, const prune::PruneOptions& options) {
  if (options.units == prune::Units::uniform) return;
  const prune::PruneOptions defaults;
  const bool by_layer = options.units == prune::Units::per_layer;
  const auto refuse = [&](const char* key, bool differs) {
    if (differs) b.mistake(key, "has no meaning with these units; leave it out, or choose units: uniform");
  };
  refuse("blocks", options.blocks != defaults.blocks);
  refuse("heads", !by_layer && options.heads != defaults.heads);
  refuse("channels", !by_layer && options.channels != defaults.channels);
  refuse("hidden", options.hidden != defaults.hidden);
}

void bind_prune(Binder& b, prune::PruneOptions& options) {
  b.group("target",
          [&](Binder& inner) {
            inner.share("parameters", options.target.parameters_fraction, options.target.parameters,
                        {.doc = "unique saved parameters to keep: 60% or 3.3M", .required = true});
          },
          {.doc = "where pruning ends", .required = true});
  b.choice(
      "units", options.units,
      {.doc = "what may go: blocks, and heads, channels and hidden features of all blocks alike; blocks; "
              "attentions and MLPs; KV groups and channels of each block on its own"});
  b.group("search",
          [&](Binder& inner) {
            if (inner.fills() && !inner.given("method"))
              options.search.method = prune::usual_method(options.units);
            inner.choice(
                "method", options.search.method,
                {.doc = "tabu begins from the best of the simple methods, staged removes blocks, then "
                        "channels, and goes on by tabu",
                 .unset = "additive per_layer, greedy for uniform units, else tabu"});
            inner.count("budget_tokens", options.search.budget_tokens,
                        {.doc = "forward passes of the whole model; 0: without limit",
                         .at_least = 0,
                         .unset = "400k, or three times the least that the method needs",
                         .written = options.search.budget_tokens >= 0});
            inner.number("tolerance", options.search.tolerance,
                         {.doc = "how far below the target the result may end, of all parameters",
                          .at_least = 0,
                          .at_most = 0.5});
            inner.flag("after_compensation", options.search.after_compensation,
                       {.doc = "compare candidates as compensation would leave them; only with compensate"});
            inner.count("finalists", options.search.finalists,
                        {.doc = "models at most that are kept where the text does not tell them apart, for a "
                                "stage select",
                         .at_least = 1,
                         .at_most = 16});
            refuse_impossible_search(inner, options);
            refuse_idle_search(inner, options);
          },
          {.doc = "how the candidates are looked for"});
  b.flag("blocks", options.blocks, {.doc = "candidates: drop one block"});
  b.flag("heads", options.heads,
         {.doc = "candidates: one KV group (a key and value head with its query heads) of every attention"});
  b.flag("channels", options.channels, {.doc = "candidates: narrow every MLP by width_multiple channels"});
  b.flag("hidden", options.hidden, {.doc = "candidates: narrow the hidden size by width_multiple features"});
  if (!options.blocks && !options.heads && !options.channels && !options.hidden)
    b.mistake("blocks", "nothing to prune: blocks, heads, channels and hidden are all false");
  refuse_idle_keys(b, options);
  b.count("width_multiple", options.width_multiple,
          {.doc = "channels or features", .at_least = 1, .at_most = 1 << 20});
  b.choice("channel_ranking", options.channel_ranking,
           {.doc = "which channels and features go first: least |W| ||a||, mean |a|, var(a) ||W||^2, "
                   "norm over sequences "
                   "of mean |a|, |sum a dL/da|, or W^2 / 2[H^-1]"});
  b.choice("head_ranking", options.head_ranking, {.doc = "the same for KV groups with their query heads"});
  b.number("winsorise_quantile", options.winsorise_quantile,
           {.doc = "for the ranking |a| of each channel is cut at this quantile; 1: nowhere",
            .at_least = 0.5,
            .at_most = 1});
  b.flag(
      "compensate", options.compensate,
      {.doc = "fit o_proj and down_proj to what stays, where that helps on text that it was not fitted to"});
  bind_objective(b, options.objective);
  b.count("calibration_tokens", options.calibration_tokens,
          {.doc = "over all sources: five eighths are fitted to, two choose and one judges",
           .at_least = 1,
           .unset = "as the model needs: 24 fitted tokens for each input of its widest fitted layer",
           .written = options.calibration_tokens > 0});
  b.count("sequence_length", options.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.seed("seed", options.seed, {.doc = "of the choice of calibration data", .unset = "that of the recipe"});
}

void bind_sparsify(Binder& b, sparsify::SparsifyOptions& options) {
  b.one_of("pattern", options.pattern, {"2:4", "1:4", "4:8"}, {.doc = "kept weights of each group"});
  b.choice("method", options.method,
           {.doc = "sparse_gpt and alps also update the weights that stay; the others are for comparison"});
  b.choice("mask", options.mask,
           {.doc = "of sparse_gpt: each weight for itself, or all sets of a group compared"});
  b.flag(
      "permute", options.permute,
      {.doc = "channels of MLPs and features of values change places so that the pattern loses less; exact"});
  b.flag("polish", options.polish,
         {.doc = "least squares for the chosen mask, kept per layer where it helps on held-out inputs",
          .unset = "true for sparse_gpt and alps, false for the others"});
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
          {.doc = "columns of one sweep block", .at_least = 4, .at_most = 1 << 16});
  if (options.block_size % 4 != 0) b.mistake("block_size", "expected a multiple of 4");
  b.count("calibration_tokens", options.calibration_tokens, {.doc = "over all sources", .at_least = 1});
  b.count("sequence_length", options.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.seed("seed", options.seed, {.doc = "of the choice of calibration data", .unset = "that of the recipe"});
}

void bind_profile(Binder& b, calibrate::ProfileOptions& options) {
  b.count("calibration_tokens", options.calibration_tokens, {.doc = "over all sources", .at_least = 1});
  b.count("sequence_length", options.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.seed("seed", options.seed, {.doc = "of the choice of calibration data", .unset = "that of the recipe"});
}

void bind_evaluate(Binder& b, eval::EvaluateOptions& options) {
  b.choice("windows", options.windows,
           {.doc = "the documents joined and cut every context tokens, or each document on its own"});
  b.count("context", options.context, {.doc = "tokens of a window", .at_least = 2, .at_most = 1 << 20});
  b.count("tokens", options.tokens, {.doc = "per source; 0: all of the held-out part", .at_least = 0});
  b.flag("seen", options.seen, {.doc = "the text may be what a stage of the run learned from"});
  b.texts(
      "prompt", options.prompts,
      {.doc = "one or several texts that each model goes on with", .may_be_empty = true, .unset = "none"});
  b.count("max_new_tokens", options.max_new_tokens,
          {.doc = "after the prompt", .at_least = 1, .at_most = 1 << 20});
}

}  // namespace retort::recipe
