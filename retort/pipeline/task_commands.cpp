// What `retort eval --tasks` does: a model, and maybe its teacher, on evaluation tasks.
#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "retort/base/error.h"
#include "retort/eval/memory_plan.h"
#include "retort/model/dtype.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/ops/tensor_allocator.h"
#include "retort/pipeline/float32_products.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/tasks.h"
#include "retort/pipeline/torch_errors.h"
#include "retort/record/keys.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;

// A model that is about to be loaded, and what it is asked.
class Candidate {
 public:
  /// `other`: one whose tasks are this one's too, where no chat template writes them; null: none.
  Candidate(const std::string& model, const Candidate* other, const TasksRequest& request,
            record::Observer& observer)
      : model_(model),
        request_(request),
        observer_(observer),
        device_(model::parse_device(request.model.device)),
        dtype_(model::parse_scoring_dtype(request.model.dtype, device_)),
        config_(inspect_model(model, observer)),
        text_(read_model_text(model, config_)),
        prepared_(other && !request.tasks.chat ? other->prepared_ : prepare_tasks(request.tasks, model)),
        ids_(encode_tasks(prepared_, model, text_, config_)) {
    say_what_was_cut(prepared_, ids_, config_, observer);
    const auto plan = plan_tasks(config_, static_cast<std::int64_t>(at::elementSize(dtype_)), ids_,
                                 ops::path_of(device_), eval::WeightsFrom::memory);
    observer.message(record::Level::debug, "memory plan\n" + shard::describe(plan));
    shard::require_fits(plan, available_bytes(request.model.available_memory, device_));
  }

  AnsweredTasks answered() && {
    const auto parameters =
        shard::resident_parameters(model::load_weights(model_, dtype_, device_), shard::Use::frozen, dtype_);
    const eval::Subject subject(model_, *parameters, text_.tokenizer.vocab_size());
    return answer_tasks(std::move(prepared_), std::move(ids_), {subject, model_, text_},
                        [this](std::int64_t done, std::int64_t all) {
                          observer_.progress(base::join("eval: answers of ", model_), done, all);
                        });
  }

 private:
  std::string model_;
  const TasksRequest& request_;
  record::Observer& observer_;
  at::Device device_;
  at::ScalarType dtype_;
  architecture::Config config_;
  ModelText text_;
  std::vector<tasks::PreparedTask> prepared_;
  std::vector<TaskIds> ids_;
};

base::Json evaluate_on_tasks(const TasksRequest& request, record::Observer& observer) {
  ops::install_tensor_allocator();
  settle_float32_products(model::parse_device(request.model.device), observer);
  Candidate candidate(request.model.model, nullptr, request, observer);
  std::optional<Candidate> teacher;  // whose faults are said before hours of work
  if (!request.teacher.empty()) teacher.emplace(request.teacher, &candidate, request, observer);
  const auto answered = std::move(candidate).answered();
  auto result = answered.to_json();
  result[keys::kModelName] = request.model.model;
  if (!request.samples.empty()) write_samples(request.samples, answered);
  if (!teacher) return result;
  const auto of_teacher = std::move(*teacher).answered();
  result[keys::kTeacher] = of_teacher.to_json();
  result[keys::kTeacher][keys::kModelName] = request.teacher;
  result[keys::kComparisons] = compare_tasks(answered, of_teacher);
  return result;
}

}  // namespace

base::Json evaluate_tasks(const TasksRequest& request, record::Observer& observer) {
  base::Json result;
  translate_torch_errors([&] { result = evaluate_on_tasks(request, observer); });
  return result;
}

}  // namespace retort::pipeline
