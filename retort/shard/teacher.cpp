#include "retort/shard/teacher.h"

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "retort/loss/head_loop.h"
#include "retort/model/block.h"
#include "retort/model/head.h"
#include "retort/shard/acquired_unit.h"
#include "retort/shard/units.h"

namespace retort::shard {
namespace {

class ModelWave final : public TeacherWave {
 public:
  ModelWave(Parameters& parameters, model::RopeFrequencies& frequencies, std::span<const MicroBatch> batches,
            const TeacherNeeds& needs, const AskingStep& step)
      : parameters_(parameters), needs_(needs), step_(step) {
    const InPhase phase(step_.clock, Phase::teacher_forward);
    const auto& config = parameters_.config();
    const auto unit = acquired(0);
    if (needs_.last_block >= 0) prefetch(architecture::Layout::block_unit(0));
    const auto matrix_VD = model::embedding_matrix(parameters_.layout(), unit.flat());
    for (const auto& batch : batches)
      lanes_.push_back({model::make_token_layout(config, batch.starts, matrix_VD.device(), frequencies),
                        model::embed(matrix_VD, batch.ids_N, config.embedding_factor)});
  }

  void go_to(std::int64_t block) override {
    const InPhase phase(step_.clock, Phase::teacher_forward);
    for (; blocks_done_ <= block; ++blocks_done_) forward(blocks_done_);
  }
  at::Tensor hidden_NF(std::size_t micro_batch) const override { return lanes_[micro_batch].hidden_NF; }

  void prefetch_head() override { prefetch(parameters_.layout().head_unit()); }
  void acquire_head() override {
    const Waiting waiting(step_.clock, step_.group);
    head_.emplace(parameters_, parameters_.layout().head_unit());
  }
  at::Tensor logits_RK(std::size_t micro_batch, std::int64_t begin, std::int64_t rows) const override {
    const auto& config = parameters_.config();
    return loss::logits_of_model(
        {model::head_weights(parameters_.layout(), head_->flat()), config.rms_norm_eps,
         lanes_[micro_batch].hidden_NF, model::logit_rule(config)},
        needs_.num_tokens)(begin, rows);
  }
  void forget(std::size_t micro_batch) override { lanes_[micro_batch].hidden_NF = at::Tensor(); }

 private:
  struct Lane {
    model::TokenLayout layout;
    at::Tensor hidden_NF;  ///< output of the last block that was computed
  };

  void forward(std::int64_t block) {
    const auto unit = acquired(architecture::Layout::block_unit(block));
    const auto next = unit_after(parameters_, block);
    const bool is_taken = next == parameters_.layout().head_unit()
                              ? needs_.logits && !needs_.ends_before_student
                              : block < needs_.last_block;
    if (is_taken) prefetch(next);
    const auto weights = block_of(parameters_, block, unit.flat());
    for (auto& lane : lanes_)
      lane.hidden_NF =
          model::block_forward(weights, parameters_.config().rms_norm_eps, lane.hidden_NF, lane.layout);
  }

  AcquiredUnit acquired(std::int64_t unit) {
    const Waiting waiting(step_.clock, step_.group);
    return {parameters_, unit};
  }
  void prefetch(std::int64_t unit) {
    const Waiting waiting(step_.clock, step_.group);
    parameters_.prefetch(unit);
    step_.after_prefetch();
  }

  Parameters& parameters_;
  const TeacherNeeds needs_;
  const AskingStep& step_;
  std::vector<Lane> lanes_;
  std::int64_t blocks_done_ = 0;
  std::optional<AcquiredUnit> head_;
};

}  // namespace

const architecture::Config* ModelTeacher::config() const {
  return &parameters_.config();
}

std::int64_t ModelTeacher::num_blocks() const {
  return parameters_.layout().num_blocks();
}

std::unique_ptr<TeacherWave> ModelTeacher::begin(std::span<const MicroBatch> batches,
                                                 const TeacherNeeds& needs, const AskingStep& step) {
  return std::make_unique<ModelWave>(parameters_, frequencies_, batches, needs, step);
}

void ModelTeacher::check_replicas() {
  parameters_.check_replicas();
}

}  // namespace retort::shard
