#pragma once
// Small training stages on text made for the test: random models, everything made anew for each run, as a new
// process would.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/hash.h"
#include "retort/comm/group.h"
#include "retort/model/sparsity.h"
#include "retort/model/weights.h"
#include "retort/shard/groups.h"
#include "retort/train/trainer.h"
#include "support/masks.h"
#include "support/temporary_directory.h"

namespace retort::test {

/// One token per byte.
inline std::vector<std::int32_t> encode_bytes(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char c : text) ids.push_back(10 + static_cast<unsigned char>(c));
  return ids;
}

inline constexpr data::SpecialTokens kSpecial{.bos = 1, .eos = 2};

struct ModelShape {
  std::int64_t blocks = 2, hidden = 32, heads = 4, kv_heads = 2, width = 48, vocab = 272;
  bool tied = false;
  void (*change)(architecture::Config& config) = nullptr;  ///< makes it one of another family
};

inline architecture::Config config_of(const ModelShape& shape) {
  architecture::Config config;
  config.vocab_size = shape.vocab;
  config.hidden_size = shape.hidden;
  config.max_position_embeddings = 4096;
  config.tie_word_embeddings = shape.tied;
  config.initializer_range = 0.1;
  config.blocks.assign(static_cast<std::size_t>(shape.blocks),
                       {architecture::Attention{shape.heads, shape.kv_heads, shape.hidden / shape.heads},
                        architecture::DenseMlp{shape.width}});
  if (shape.change) shape.change(config);
  return config;
}

/// Two of every four neighbours of each matrix of each block become zero, and the lineage says so.
inline void make_sparse(model::Weights& weights) {
  weights.lineage.pattern = "2:4";
  for (std::size_t unit = 0; unit < weights.units.size(); ++unit) {
    if (weights.layout.units[unit].kind != architecture::Unit::Kind::block) continue;
    for (const auto& tensor : weights.layout.units[unit].tensors) {
      if (!tensor.is_matrix()) continue;
      weights.tensor(unit, tensor).view({-1, 4}).narrow(1, 1, 2).zero_();
      weights.lineage.sparse_layers.push_back(tensor.name);
    }
  }
}

/// From a directory, or random where that is empty.
inline model::Weights weights_of(const base::Path& directory, const ModelShape& shape, std::uint64_t seed,
                                 at::ScalarType dtype, at::Device device) {
  return directory.empty() ? model::random_weights(config_of(shape), seed, dtype, device)
                           : model::load_weights(directory, dtype, device);
}

/// What a stage is made of.
struct Given {
  ModelShape student{}, teacher{.blocks = 3, .width = 64};
  base::Path student_files = {}, teacher_files = {};  ///< model directories instead of random weights
  bool distill = true, masked = false;
  const optim::WeightRule* rule = nullptr;     ///< in place of the masks
  std::vector<loss::LossOptions> losses = {};  ///< empty: those of distillation, or cross-entropy alone
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  train::TrainOptions options;
  std::vector<data::SourceOptions> sources;
  data::Encode encode = encode_bytes;
  std::int64_t available_bytes = std::int64_t{1} << 40;
  std::vector<std::int32_t> stop_ids = {kSpecial.eos, 10 + ' '};  ///< of what the student writes
};

inline std::vector<loss::LossOptions> losses_of(const Given& given) {
  if (!given.losses.empty()) return given.losses;
  return given.distill ? loss::paper_distillation_losses() : std::vector<loss::LossOptions>(1);
}

inline train::TrainOptions small_options(std::int64_t steps) {
  train::TrainOptions options;
  options.packing.sequence_length = 32;
  options.batch = {.sequences = 2, .accumulate = 2, .wave = 0};
  options.tokens = steps * 32 * 4;
  options.optim.lr = 3e-3;
  options.checkpoint_every_steps = 1000;
  options.evaluate_every_steps = 0;
  return options;
}

/// Remembers what it was told; may ask to stop, or do something after a step.
class Witness : public record::Observer {
 public:
  void message(record::Level level, std::string_view text) override {
    (level == record::Level::warning ? warnings : messages).emplace_back(text);
  }
  void step(const record::StepReport& report) override {
    reports.push_back(report);
    if (after_step) after_step(report.step);
  }
  bool stop_requested() const override {
    return stop_after && !reports.empty() && reports.back().step >= *stop_after;
  }

  std::optional<std::int64_t> stop_after;
  std::function<void(std::int64_t)> after_step;
  std::vector<std::string> messages, warnings;
  std::vector<record::StepReport> reports;
};

/// The other shape that a Parameters may take in a test: made of resident ones.
using Wrap = std::function<std::unique_ptr<shard::Parameters>(std::unique_ptr<shard::Parameters>)>;

/// One process's view of a stage; a second object on the same directory is a restart.
class Training {
 public:
  Training(const Given& given, const base::Path& directory, const Wrap& wrap = {})
      : given_(given),
        directory_(directory),
        metrics_(directory / "metrics.jsonl"),
        group_(comm::single_group()) {
    auto weights = weights_of(given.student_files, given.student, 1, at::kFloat, given.device);
    if (given.masked) {
      make_sparse(weights);
      masks_ = test::masks_of(weights);
      rule_ = std::make_unique<optim::KeepZeros>(masks_);
    }
    lineage_ = weights.lineage;
    student_ = shard::resident_parameters(std::move(weights), shard::Use::trained, given.dtype);
    if (given.distill)
      teacher_ = shard::resident_parameters(
          weights_of(given.teacher_files, given.teacher, 2, given.dtype, given.device), shard::Use::frozen,
          given.dtype);
    losses_ = loss::make_losses(
        losses_of(given), {student_->layout().num_blocks(), teacher_ ? teacher_->layout().num_blocks() : 0});
    take_losses_on_written();
    if (wrap) student_ = wrap(std::move(student_));
    if (wrap && teacher_) teacher_ = wrap(std::move(teacher_));
    if (teacher_) taught_by_.emplace(*teacher_);
  }

  /// A rank that shares nothing with others, and has its part of both models.
  Training(const Given& given, const base::Path& directory, comm::Group& world)
      : given_(given), directory_(directory), metrics_(directory / "metrics.jsonl"), world_(&world) {
    student_groups_ = shard::make_groups(world, world.size());
    student_ = shard::sharded_parameters(model::random_source(config_of(given.student), 1),
                                         shard::Use::trained, given.dtype, at::kCPU, student_groups_);
    teacher_groups_ = shard::make_groups(world, world.size());
    teacher_ = shard::sharded_parameters(model::random_source(config_of(given.teacher), 2),
                                         shard::Use::frozen, given.dtype, at::kCPU, teacher_groups_);
    losses_ = loss::make_losses(losses_of(given),
                                {student_->layout().num_blocks(), teacher_->layout().num_blocks()});
    take_losses_on_written();
    taught_by_.emplace(*teacher_);
  }

  train::TrainOutcome run(record::Observer& observer, std::vector<train::HeldOutSet> held_out = {}) {
    data::SequenceStream stream(given_.sources, given_.options.packing, given_.encode, kSpecial,
                                given_.options.seed);
    const bool leads = !world_ || world_->rank() == 0;
    std::optional<data::SequenceStream> prompts;
    if (leads && on_written_)
      prompts.emplace(given_.sources, train::packing_of_prompts(given_.options),
                      train::beginnings(given_.encode, given_.options.on_policy.prompt_tokens), kSpecial,
                      train::seed_of_prompts(given_.options.seed), data::Split::training, 1);
    const auto plan = this->plan();
    train::TrainSetup setup{
        .stage = "stage",
        .options = given_.options,
        .plan = plan,
        .student = *student_,
        .teacher = taught_by_ ? &*taught_by_ : nullptr,
        .losses = losses_,
        .rule = given_.rule ? given_.rule : rule_.get(),
        .stream = leads ? &stream : nullptr,
        .writing = {.losses = on_written_ ? &*on_written_ : nullptr,
                    .prompts = prompts ? &*prompts : nullptr,
                    .stop_ids = given_.stop_ids,
                    .ids_without_token = {0}},
        .held_out = std::move(held_out),
        .checkpoints = {checkpoints(), {{"stage", "stage"}}, given_.options.keep_checkpoints},
        .metrics = leads ? &metrics_ : nullptr,
        .observer = observer,
        .group = world_ ? *world_ : *group_,
        .device = given_.device,
        .dtype = given_.dtype};
    return train::train(setup);
  }

  train::StepPlan plan() const {
    const auto* rule = given_.rule ? given_.rule : rule_.get();
    return train::plan_steps(given_.options, student_->config(), teacher_ ? &teacher_->config() : nullptr,
                             losses_, rule ? rule->needs() : optim::RuleNeeds(), given_.dtype, given_.device,
                             given_.available_bytes,
                             world_ ? shard::count_ranks(*world_, given_.device) : shard::RankCounts());
  }

  base::Path checkpoints() const { return directory_ / "checkpoints"; }
  shard::Parameters& student() { return *student_; }
  const std::vector<at::Tensor>& masks() const { return masks_; }

  /// The model as it would be saved.
  model::Weights trained() {
    model::Weights weights{student_->config(), student_->layout(), lineage_, io::Dtype::f32, {}};
    for (std::int64_t unit = 0; unit < student_->layout().num_units(); ++unit)
      weights.units.push_back(student_->whole_master(unit));
    return weights;
  }

  /// Checksum of all master weights and compute copies.
  std::string weights_hash() {
    base::Hasher hasher;
    for (std::int64_t unit = 0; unit < student_->layout().num_units(); ++unit)
      for (const auto& values : {student_->master(unit), student_->compute_copy(unit)})
        if (values.defined()) hasher.update(values.const_data_ptr(), values.nbytes());
    return hasher.hex();
  }

 private:
  void take_losses_on_written() {
    if (given_.options.on_policy.share > 0)
      on_written_ = loss::make_losses(loss::losses_on_written_text(losses_of(given_)), {});
  }

  const Given& given_;
  base::Path directory_;
  record::Metrics metrics_;
  std::unique_ptr<comm::Group> group_;
  comm::Group* world_ = nullptr;
  shard::Groups student_groups_, teacher_groups_;
  std::unique_ptr<shard::Parameters> student_, teacher_;
  std::optional<shard::ModelTeacher> taught_by_;
  std::vector<at::Tensor> masks_;
  std::unique_ptr<optim::WeightRule> rule_;
  model::Lineage lineage_;
  loss::Losses losses_;
  std::optional<loss::Losses> on_written_;
};

/// Documents of different lengths about nothing, one a line.
inline std::vector<std::string> made_up_documents(int count) {
  std::vector<std::string> documents;
  for (int i = 0; i < count; ++i) {
    std::string text = "Document " + std::to_string(i) + ":";
    for (int word = 0; word < 3 + i * 7 % 11; ++word) text += " word" + std::to_string(i * word % 23);
    documents.push_back(text);
  }
  return documents;
}

class TrainingTest : public ::testing::Test {
 protected:
  data::SourceOptions source(const std::string& name, const std::vector<std::string>& documents) const {
    const auto path = directory_ / (name + ".jsonl");
    std::ofstream out(path, std::ios::binary);
    for (const auto& text : documents) out << base::Json{{"text", text}}.dump() << "\n";
    data::SourceOptions options;
    options.name = name;
    options.paths = {path.string()};
    options.held_out.fraction = 0;
    return options;
  }
  /// A fresh directory inside the test's own.
  base::Path place(const std::string& name) const {
    const auto path = directory_ / name;
    std::filesystem::create_directories(path);
    return path;
  }

  TemporaryDirectory directory_;
};

/// The lines of a run that its data and weights decide, without clocks.
inline std::vector<base::Json> lines_without_clocks(const base::Path& run) {
  auto lines = record::read_metrics(run / "metrics.jsonl");
  for (auto& line : lines)
    for (const auto* key :
         {"seconds", "phase_seconds", "operation_seconds", "tokens_per_second", "peak_fraction"})
      line.erase(key);
  return lines;
}

}  // namespace retort::test
