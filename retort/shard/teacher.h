#pragma once
// What a student learns from beside its text: a model that runs along, or what one has said before.  A step
// asks a teacher for the outputs of its blocks, in rising order, and then for logits, some rows at a time.
//
// Shape legend: N tokens of a micro-batch, F hidden of the teacher, R rows of a chunk, K tokens of the
// vocabulary.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "retort/architecture/config.h"
#include "retort/comm/group.h"
#include "retort/model/packed_text.h"
#include "retort/model/tokens.h"
#include "retort/shard/phases.h"

namespace retort::shard {

/// Packed sequences that go through a block together.
using MicroBatch = model::PackedText;

/// What a step's losses ask of its teacher.
struct TeacherNeeds {
  bool logits = false;
  std::int64_t num_tokens = 0;       ///< the first ids of the vocabulary, whose logits are asked for; 0: all
  std::int64_t last_block = -1;      ///< whose output is needed; -1: of none
  bool ends_before_student = false;  ///< no output is compared with the student's
};

/// The step that asks.
struct AskingStep {
  PhaseClock& clock;
  comm::Group& group;
  std::function<void()> after_prefetch;  ///< what may go on once the teacher's next unit is on its way
};

/// A teacher on the micro-batches of one wave.  All calls are collective where the teacher's ranks exchange.
class TeacherWave {
 public:
  virtual ~TeacherWave() = default;
  /// Goes on to the output of this block, if it is not there yet.
  virtual void go_to(std::int64_t block) = 0;
  /// The output of the block that it went to, [N, F].
  virtual at::Tensor hidden_NF(std::size_t micro_batch) const = 0;
  /// Fetches what logits are made with, beside other work.
  virtual void prefetch_head() = 0;
  /// Comes before logits_RK().
  virtual void acquire_head() = 0;
  /// Of rows [begin, begin + rows) of a micro-batch, after the last block.
  virtual at::Tensor logits_RK(std::size_t micro_batch, std::int64_t begin, std::int64_t rows) const = 0;
  /// Drops what it holds of a micro-batch, of which nothing more is asked.
  virtual void forget(std::size_t micro_batch) = 0;
};

class Teacher {
 public:
  virtual ~Teacher() = default;
  /// Of the model that computes; null for one that only remembers.
  virtual const architecture::Config* config() const = 0;
  /// Blocks whose outputs it has; 0: it has logits alone.
  virtual std::int64_t num_blocks() const = 0;
  /// `batches` and `step` outlive what is returned.  Collective.
  virtual std::unique_ptr<TeacherWave> begin(std::span<const MicroBatch> batches, const TeacherNeeds& needs,
                                             const AskingStep& step) = 0;
  /// As Parameters::check_replicas().
  virtual void check_replicas() {}
};

class Parameters;

/// A model, of which nothing is trained.  `parameters` outlive it.
class ModelTeacher final : public Teacher {
 public:
  explicit ModelTeacher(Parameters& parameters) : parameters_(parameters) {}

  const architecture::Config* config() const override;
  std::int64_t num_blocks() const override;
  std::unique_ptr<TeacherWave> begin(std::span<const MicroBatch> batches, const TeacherNeeds& needs,
                                     const AskingStep& step) override;
  void check_replicas() override;

 private:
  Parameters& parameters_;
  model::RopeFrequencies frequencies_;
};

}  // namespace retort::shard
