#include "retort/base/error.h"
#include "retort/recipe/bind_options.h"

namespace retort::recipe {
namespace {

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

void bind_search(Binder& b, prune::PruneOptions& options) {
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
}

void bind_kinds(Binder& b, prune::PruneOptions& options) {
  b.flag("blocks", options.blocks, {.doc = "candidates: drop one block"});
  b.flag("heads", options.heads,
         {.doc = "candidates: one KV group (a key and value head with its query heads) of every attention"});
  b.flag("channels", options.channels, {.doc = "candidates: narrow every MLP by width_multiple channels"});
  b.flag("hidden", options.hidden, {.doc = "candidates: narrow the hidden size by width_multiple features"});
  if (!options.blocks && !options.removes_parts())
    b.mistake("blocks", "nothing to prune: blocks, heads, channels and hidden are all false");
  refuse_idle_keys(b, options);
}

void bind_ranking(Binder& b, prune::PruneOptions& options) {
  if (b.fills() && !b.given("width_multiple")) options.width_multiple = prune::kWidthMultipleOfModel;
  b.count("width_multiple", options.width_multiple,
          {.doc = "channels or features",
           .at_least = 1,
           .at_most = 1 << 20,
           .unset = "32, or more for MLPs wider than 2048",
           .written = options.width_multiple > 0});
  b.choice("channel_ranking", options.channel_ranking,
           {.doc = "which channels and features go first: least |W| ||a||, mean |a|, var(a) ||W||^2, "
                   "norm over sequences "
                   "of mean |a|, |sum a dL/da|, or W^2 / 2[H^-1]"});
  b.choice("head_ranking", options.head_ranking, {.doc = "the same for KV groups with their query heads"});
  b.number("winsorise_quantile", options.winsorise_quantile,
           {.doc = "for the ranking |a| of each channel is cut at this quantile; 1: nowhere",
            .at_least = 0.5,
            .at_most = 1});
}

void bind_text(Binder& b, prune::PruneOptions& options) {
  b.count("calibration_tokens", options.calibration_tokens,
          {.doc = "over all sources: five eighths are fitted to, two choose and one judges",
           .at_least = 1,
           .unset = "as the model needs: 24 fitted tokens for each input of its widest fitted layer",
           .written = options.calibration_tokens > 0});
  b.count("sequence_length", options.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.seed("seed", options.seed, {.doc = "of the choice of calibration data", .unset = "that of the recipe"});
}

}  // namespace

namespace {

void bind_target(Binder& b, prune::PruneOptions& options) {
  auto& target = options.target;
  b.group("target",
          [&](Binder& inner) {
            inner.share("parameters", target.parameters_fraction, target.parameters,
                        {.doc = "unique saved parameters to keep: 60% or 3.3M; the nearest size that the "
                                "units reach is taken",
                         .unset = "none",
                         .written = target.parameters_fraction > 0 || target.parameters > 0});
            inner.count("blocks", target.blocks,
                        {.doc = "instead: how many blocks to keep, with units: blocks",
                         .at_least = 1,
                         .unset = "none",
                         .written = target.blocks > 0});
            bind_time(inner, target.time);
            require_one(inner, {"parameters", "blocks", "latency", "milliseconds", "tokens_per_second"},
                        "parameters, such as 60%, blocks or latency");
          },
          {.doc = "where pruning ends", .required = true});
}

// A number of blocks asks for units of blocks.
void bind_units(Binder& b, prune::PruneOptions& options) {
  const bool by_blocks = options.target.blocks > 0;
  if (b.fills() && by_blocks && !b.given("units")) options.units = prune::Units::blocks;
  b.choice(
      "units", options.units,
      {.doc = "what may go: blocks, and heads, channels and hidden features of all blocks alike; blocks; "
              "attentions and MLPs; KV groups and channels of each block on its own",
       .unset = "per_layer, with target.blocks blocks"});
  if (by_blocks && options.units != prune::Units::blocks)
    b.mistake("units", "target.blocks counts whole blocks; choose units: blocks, or give target.parameters");
}

}  // namespace

void bind_prune(Binder& b, prune::PruneOptions& options) {
  bind_target(b, options);
  bind_units(b, options);
  bind_search(b, options);
  bind_kinds(b, options);
  bind_ranking(b, options);
  b.flag(
      "compensate", options.compensate,
      {.doc = "fit o_proj and down_proj to what stays, where that helps on text that it was not fitted to"});
  bind_objective(b, options.objective);
  bind_text(b, options);
}

}  // namespace retort::recipe
