#include <algorithm>

#include "retort/recipe/bind_options.h"

namespace retort::recipe {
namespace {

void bind_packing(Binder& b, data::PackingOptions& packing) {
  b.count("sequence_length", packing.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.choice("bos", packing.bos,
           {.doc = "begin-of-text token before each document; auto: where the model has one"});
  b.flag("eos", packing.eos, {.doc = "end-of-text token after each document"});
  b.flag("attend_across_documents", packing.attend_across_documents,
         {.doc = "false: attention and positions start anew with each document"});
  b.choice(
      "cut", packing.cut,
      {.doc = "where documents may be cut to fill sequences; whole: nowhere, sequences are padded; auto: "
              "conversations nowhere, other text anywhere"});
  b.choice(
      "too_long", packing.too_long,
      {.doc = "a document that is not cut and longer than a sequence is left out and counted, or an error"});
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
  b.number("lr", optim.lr,
           {.doc = "learning rate",
            .above = 0,
            .unset = "0.12 / hidden_size, of random weights 1.2 / hidden_size",
            .written = optim.lr > 0});
  if (b.fills()) optim.embedding_lr = optim.lr;
  b.number("embedding_lr", optim.embedding_lr,
           {.doc = "of embedding and head", .above = 0, .unset = "lr", .written = optim.embedding_lr > 0});
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

void bind_temperature(Binder& b, loss::LossOptions& options) {
  b.number("temperature", options.temperature, {.doc = "of both distributions", .above = 0});
}
void bind_temperature_squared(Binder& b, loss::LossOptions& options) {
  b.flag("temperature_squared", options.temperature_squared, {.doc = "scale by T squared"});
}

void bind_on_policy(Binder& b, train::OnPolicyOptions& options) {
  b.number("share", options.share,
           {.doc = "of the sequences of a step: the student writes them itself; 0: none",
            .at_least = 0,
            .at_most = 1});
  b.number("temperature", options.temperature,
           {.doc = "of drawing tokens; 0: always the most likely", .at_least = 0});
  b.number("top_p", options.top_p,
           {.doc = "only the most likely tokens that together have this share", .above = 0, .at_most = 1});
  b.count("max_new_tokens", options.max_new_tokens,
          {.doc = "of a text, at most", .at_least = 1, .at_most = 1 << 20});
  b.count("prompt_tokens", options.prompt_tokens,
          {.doc = "of a document, with which a text begins", .at_least = 1, .at_most = 1 << 16});
  const auto others = {"temperature", "top_p", "max_new_tokens", "prompt_tokens"};
  if (!b.given("share") && std::ranges::any_of(others, [&](const char* key) { return b.given(key); }))
    b.mistake("share",
              "expected beside the other keys of on_policy, found none; without it nothing is written");
}

// The keys of a kind beside those that all have; the compiler misses a kind that is left out.
void bind_loss_of_kind(Binder& b, loss::LossOptions& options) {
  switch (options.kind) {
    case loss::LossKind::cross_entropy:
      return;
    case loss::LossKind::kl_divergence:
      bind_temperature(b, options);
      b.choice("direction", options.direction, {.doc = "forward: KL(teacher || student)"});
      bind_temperature_squared(b, options);
      return;
    case loss::LossKind::jensen_shannon:
      b.number("beta", options.beta,
               {.doc = "share of the teacher in the mixture; 0: forward KL, 1: reverse KL",
                .at_least = 0,
                .at_most = 1});
      bind_temperature(b, options);
      bind_temperature_squared(b, options);
      return;
    case loss::LossKind::total_variation:
      bind_temperature(b, options);
      return;
    case loss::LossKind::squarehead:
      b.choice("layer_map", options.layer_map,
               {.doc = "which teacher block a student block is compared with"});
      b.number("eps", options.eps, {.doc = "added to the teacher's mean square", .at_least = 0});
      return;
  }
}

void bind_loss(Binder& b, loss::LossOptions& options) {
  auto kind = static_cast<std::size_t>(options.kind);
  const auto words = words_of(options.kind);
  b.kind("kind", kind, Words(words.begin(), words.end()), {.doc = "of the loss", .required = true},
         [&options](Binder& inner, std::size_t k) {
           options.kind = static_cast<loss::LossKind>(k);
           inner.number("weight", options.weight, {.doc = "in the sum of the losses", .above = 0});
           bind_loss_of_kind(inner, options);
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
           .unset = with_teacher ? "0.5 CE + KL at T = 1" : "cross-entropy"});
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

}  // namespace

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
  if (with_teacher)
    b.group("on_policy", [&](Binder& inner) { bind_on_policy(inner, options.on_policy); },
            {.doc = "texts that the student writes and learns from"});
  b.group(
      "shard",
      [&](Binder& inner) {
        const std::vector<NamedCount> names{{"machine", train::kRanksOfMachine}, {"all", train::kAllRanks}};
        inner.count("student_ranks", options.shard.student_ranks,
                    {.doc = "that hold one copy of the student between them; machine: those of each, all: of "
                            "all machines",
                     .at_least = 0,
                     .names = names});
        if (with_teacher)
          inner.count("teacher_ranks", options.shard.teacher_ranks,
                      {.doc = "the same of the teacher", .at_least = 0, .names = names});
      },
      {.doc = "where models lie when several ranks train"});
  b.choice("recompute", options.recompute,
           {.doc = "blocks in backward; auto: unless the plan says that keeping them fits"});
  b.count("head_rows", options.head_rows,
          {.doc = "tokens of a chunk of head and loss; 0: chosen by the plan", .at_least = 0});
  b.count("checkpoint_every_steps", options.checkpoint_every_steps, {.doc = "steps", .at_least = 1});
  b.count("keep_checkpoints", options.keep_checkpoints, {.doc = "the newest", .at_least = 1});
  b.count("evaluate_every_steps", options.evaluate_every_steps,
          {.doc = "held-out loss; 0: never", .at_least = 0});
  b.count("evaluate_tokens", options.evaluate_tokens, {.doc = "per source, for that loss", .at_least = 1});
  b.flag("step_profile", options.step_profile,
         {.doc = "note the time of each step by phase and operation, for the report; on processors"});
}

}  // namespace retort::recipe
