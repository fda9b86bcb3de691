#include "retort/recipe/bind_options.h"

namespace retort::recipe {
namespace {

// It is looked for at each place of a text.
constexpr std::size_t kMaxSeparatorBytes = 1024;

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

}  // namespace

void bind_source(Binder& b, data::SourceOptions& source) {
  const bool is_generated = b.fills() ? b.given("generated") : source.generated.is_given();
  b.texts("path", source.paths,
          {.doc = "files or globs: text or .jsonl, either also with .gz or .zst, or .parquet; not with "
                  "generated",
           .required = !is_generated,
           .written = !is_generated});
  if (is_generated && b.given("path"))
    b.mistake("path", "a model writes the text of this source; leave out path or generated");
  b.group("generated", [&](Binder& inner) { bind_generated(inner, source.generated, is_generated); },
          {.doc = "instead: text that a model writes", .written = is_generated});
  // Who reads written conversations writes them by its own chat template.
  if (b.fills() && source.generated.chat) source.chat = true;
  b.text("separator", source.separator,
         {.doc = "plain text: documents are cut here; empty: a file is a document", .may_be_empty = true});
  if (source.separator.size() > kMaxSeparatorBytes)
    b.mistake("separator", "expected at most " + std::to_string(kMaxSeparatorBytes) + " bytes");
  b.text("field", source.field,
         {.doc = "the key (JSONL) or column (Parquet) that holds the text, or with chat: true the messages"});
  b.flag(
      "chat", source.chat,
      {.doc = "records are conversations, which the model's chat template writes: messages, conversations, "
              "prompt and completion, or instruction and output"});
  b.choice("loss_on", source.loss_on,
           {.doc = "of conversations: learn and measure what the assistant says, or all of it",
            .written = source.chat});
  if (b.given("loss_on") && !source.chat)
    b.mistake("loss_on", "is for conversations; it asks for chat: true");
  if (source.chat && !source.separator.empty())
    b.mistake("separator", "cuts plain text; conversations (chat: true) have a record each");
  b.number("weight", source.weight,
           {.doc = "share of the tokens, relative to the other sources of a stage",
            .above = 0,
            .written = source.tokens == 0});
  if (b.given("weight") && b.given("tokens"))
    b.mistake("tokens",
              "expected weight or tokens, found both; tokens says how many, whatever the others have");
  b.count("tokens", source.tokens,
          {.doc = "of a training stage, instead of weight: so many of its tokens are of this source",
           .at_least = 1,
           .unset = "by weight",
           .written = source.tokens > 0});
  b.count(
      "epochs", source.epochs,
      {.doc = "a training stage reads it so many times at most, and is refused where that is too little text",
       .at_least = 1,
       .unset = "without limit",
       .written = source.epochs > 0});
  b.group("held_out", [&](Binder& inner) { bind_held_out(inner, source.held_out); },
          {.doc = "documents that only evaluation sees"});
  b.flag("skip_bad_lines", source.skip_bad_lines,
         {.doc = "count and skip a bad line of JSONL, row of Parquet, or plain text that is not UTF-8, "
                 "instead of an error"});
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

void bind_profile(Binder& b, calibrate::ProfileOptions& options) {
  b.count("calibration_tokens", options.calibration_tokens, {.doc = "over all sources", .at_least = 1});
  b.count("sequence_length", options.sequence_length, {.doc = "tokens", .at_least = 2, .at_most = 1 << 20});
  b.seed("seed", options.seed, {.doc = "of the choice of calibration data", .unset = "that of the recipe"});
}

void bind_export(Binder& b, publish::ExportOptions& options) {
  b.choice("for", options.program, {.doc = "the program that is to load the model"});
  b.text("type", options.type,
         {.doc = "of a GGUF file: f32, bf16, q8_0, q4_k_m and so on",
          .may_be_empty = true,
          .unset = "that of the model's weights"});
  b.text("like", options.like,
         {.doc = "a GGUF file: each tensor gets the type that it has there, and unchanged blocks are copied",
          .may_be_empty = true,
          .unset = "none"});
  b.count("max_part_bytes", options.max_part_bytes,
          {.doc = "of the tensors in a part of a GGUF file; 0: it is one file", .at_least = 0});
  if (!options.type.empty() && !options.like.empty())
    b.mistake("like", "has no meaning beside type; leave one out");
}

void bind_tasks(Binder& b, tasks::TaskOptions& tasks) {
  b.texts("tasks", tasks.files,
          {.doc = "YAML files of evaluation tasks, in the keys of lm-evaluation-harness",
           .may_be_empty = true,
           .unset = "none"});
  b.text("task_data", tasks.data,
         {.doc = "directory with data sets of the Hugging Face Hub that the tasks name",
          .may_be_empty = true,
          .unset = "none"});
  b.count("num_fewshot", tasks.num_fewshot,
          {.doc = "examples before each question of a task; -1: as its file says", .at_least = -1});
  b.count("task_limit", tasks.limit,
          {.doc = "documents of each task, the first ones; 0: all", .at_least = 0});
  b.flag("apply_chat_template", tasks.chat,
         {.doc = "questions of tasks are written as each model's chat template has it"});
  b.flag("fewshot_as_multiturn", tasks.multiturn,
         {.doc = "with apply_chat_template: the examples of a task are turns of the conversation"});
  b.text("system_instruction", tasks.system,
         {.doc = "what stands before the description of a task", .may_be_empty = true, .unset = "none"});
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
  b.chats("chat", options.chats,
          {.doc = "questions, or lists of messages, that each model answers as its chat template has them",
           .may_be_empty = true,
           .unset = "none",
           .written = !options.chats.empty()});
  b.count("max_new_tokens", options.max_new_tokens,
          {.doc = "after the prompt", .at_least = 1, .at_most = 1 << 20});
  bind_tasks(b, options.tasks);
}

}  // namespace retort::recipe
