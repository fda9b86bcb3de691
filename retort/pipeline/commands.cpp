// What `retort eval` does with a single model.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/output_file.h"
#include "retort/eval/evaluate.h"
#include "retort/eval/memory_plan.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/pipeline/vocabulary.h"

namespace retort::pipeline {
namespace {

std::unique_ptr<shard::Parameters> load(const std::string& directory, at::ScalarType dtype,
                                        at::Device device) {
  return shard::resident_parameters(model::load_weights(directory, dtype, device), shard::Use::frozen, dtype);
}

// A line per window, in a file that appears whole.
class PerTokenFile {
 public:
  explicit PerTokenFile(const base::Path& path) {
    if (!path.empty()) file_.emplace(path);
  }
  eval::WindowCallback callback() {
    if (!file_) return {};
    return [this](const eval::WindowScores& scores) { file_->write(eval::to_json_line(scores) + "\n"); };
  }
  void commit() {
    if (file_) file_->commit();
  }

 private:
  std::optional<base::AtomicFile> file_;
};

std::int64_t default_context(const architecture::Config& model, const architecture::Config* teacher) {
  const auto limit = teacher ? std::min(model.max_position_embeddings, teacher->max_position_embeddings)
                             : model.max_position_embeddings;
  return std::min(limit, kEvalContext);
}

// Files of the user are not replaced, and a place that cannot be written to is said before the text is
// scored.
void require_outputs(const EvalRequest& request) {
  const auto begins_with = [](std::string_view own) {
    return [own](std::string_view beginning) { return beginning.starts_with(own); };
  };
  if (!request.per_token.empty())
    base::require_replaceable(request.per_token, "what --per-token writes", begins_with("{\"ids\":"));
  if (!request.per_document.empty())
    base::require_replaceable(request.per_document, "what --per-document writes", begins_with("{\"model\":"));
  std::error_code ignored;
  const auto place = [&](const base::Path& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file, ignored), ignored);
  };
  const bool is_device = std::filesystem::exists(request.per_token, ignored) &&
                         !std::filesystem::is_regular_file(request.per_token, ignored);
  base::require<base::UsageError>(
      request.per_token.empty() || is_device || place(request.per_token) != place(request.per_document),
      "eval: ", request.per_token.string(),
      ": is named by --per-token and by --per-document; give each a file of its own.");
}

// Before anything is loaded.
void require_memory(const shard::MemoryPlan& plan, std::int64_t available_bytes, record::Observer& observer) {
  observer.message(record::Level::debug, "memory plan\n" + shard::describe(plan));
  observer.message(record::Level::debug, beside_tensors());
  shard::require_fits(plan, available_bytes);
}

base::Json evaluate_model(const EvalRequest& request, record::Observer& observer) {
  require_outputs(request);
  ops::install_tensor_allocator();
  const auto device = model::parse_device(request.model.device);
  settle_float32_products(device, observer);
  const auto dtype = model::parse_scoring_dtype(request.model.dtype, device);
  const auto config = inspect_model(request.model.model, observer);
  std::optional<architecture::Config> teacher_config;
  if (!request.teacher.empty()) teacher_config = architecture::read_config(request.teacher);
  const auto* teacher_shape = teacher_config ? &*teacher_config : nullptr;
  const auto context = request.context > 0 ? request.context : default_context(config, teacher_shape);
  require_memory(eval::plan_scoring(config, teacher_shape, std::int64_t(at::elementSize(dtype)), context,
                                    ops::path_of(device)),
                 available_bytes(request.model.available_memory, device), observer);
  const auto parameters = load(request.model.model, dtype, device);
  const auto text = read_model_text(request.model.model, parameters->config());
  const eval::Subject subject(request.model.model, *parameters, text.tokenizer.vocab_size());
  std::unique_ptr<shard::Parameters> teacher_parameters;
  std::optional<eval::Subject> teacher;
  if (!request.teacher.empty()) {
    if (request.teacher != request.model.model) (void)inspect_model(request.teacher, observer);
    teacher_parameters = load(request.teacher, dtype, device);
    (void)read_model_text(request.teacher, teacher_parameters->config());
    const NamedTokenizer of_model{request.model.model, request.model.model},
        of_teacher{request.teacher, request.teacher};
    teacher.emplace(request.teacher, *teacher_parameters,
                    require_same_tokens("evaluation", of_model, of_teacher));
  }
  const auto* teacher_subject = teacher ? &*teacher : nullptr;
  eval::check_comparable(subject, teacher_subject, context);

  const data::SourceOptions source{.name = "text",
                                   .paths = request.texts,
                                   .separator = request.separator,
                                   .field = request.field,
                                   .chat = request.chat,
                                   .weight = 1,
                                   .held_out = {},
                                   .skip_bad_lines = false};
  const auto windowing = request.rolling ? eval::Windowing::rolling : eval::Windowing::fixed;
  const auto windows = eval::open_windows(source, data::Split::all,
                                          {.windowing = windowing,
                                           .context = context,
                                           .bos = request.bos ? data::Bos::automatic : data::Bos::never},
                                          text.encode(), text.special);
  observer.message(record::Level::debug, base::join("scoring in ", model::dtype_name(dtype)));
  PerTokenFile per_token(request.per_token);
  std::optional<base::AtomicFile> per_document;
  if (!request.per_document.empty()) per_document.emplace(request.per_document);
  auto scores = eval::describe_model(subject, request.model.model);
  scores.sources.push_back(
      eval::evaluate_source(subject, teacher_subject, source.name, windows.get(), {}, per_token.callback()));
  per_token.commit();
  if (per_document) {
    per_document->write(eval::document_lines(scores));
    per_document->commit();
  }
  return eval::to_json(context, windowing, request.teacher, {scores});
}

}  // namespace

base::Json evaluate(const EvalRequest& request, record::Observer& observer) {
  base::Json scores;
  translate_torch_errors([&] { scores = evaluate_model(request, observer); });
  return scores;
}

}  // namespace retort::pipeline
