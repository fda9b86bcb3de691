#pragma once
// The state of a training stage on disk, complete enough to go on with the same bits.
//
//   step-00000050/
//     state.safetensors   unit.U.master, unit.U.m, unit.U.v: the unit's flat layout, float32
//     manifest.json       step, data cursor, identity of the stage, checksum of every other file
//
// Several ranks write state-00000.safetensors, state-00001.safetensors, ... with their ranges of each unit,
// which the manifest says; any number of ranks reads them, since a range is a place in the unit.
//
// A checkpoint is written under a temporary name and renamed as a whole once every rank has written its part;
// one whose manifest or checksum does not fit is passed over for the one before it.  One that cannot be read,
// because a disk or a machine is at fault, may be sound: the stage is then refused, and no checkpoint is
// lost.

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/optim/adamw.h"
#include "retort/record/observer.h"
#include "retort/shard/parameters.h"

namespace retort::train {

struct Progress {
  std::int64_t step = 0;    ///< finished
  std::int64_t tokens = 0;  ///< seen
  double seconds = 0;       ///< of training
  base::Json cursor;        ///< of the data stream; null before the first step
};

struct CheckpointPlace {
  base::Path directory;  ///< of the stage's checkpoints
  base::Json identity;   ///< what must be equal for a checkpoint to belong here
  std::int64_t keep = 2;
};

/// What a checkpoint holds of the ranks of a group.
struct TrainedState {
  shard::Parameters& parameters;
  optim::AdamW& optimizer;
  comm::Group& group;
};

/// Writes a checkpoint while the next step computes: it reads parameters and moments in their place, so they
/// must not change between begin() and finish().  Neither takes memory for a copy.
class CheckpointWriter {
 public:
  CheckpointWriter(const CheckpointPlace& place, TrainedState state) : place_(place), state_(state) {}

  /// Each rank begins to write its part; `progress` counts on rank 0.  Throws StorageError on every rank.
  /// Collective.
  void begin(const Progress& progress);
  /// Between begin() and finish().
  bool pending() const { return part_.valid(); }
  /// The step that it is of.
  std::int64_t step() const { return progress_.step; }
  /// Waits for the parts and makes the checkpoint count; throws StorageError on every rank, with the earlier
  /// ones untouched.  Collective.
  void finish();
  /// Removes those beyond `keep`; throws StorageError on every rank.  Collective.
  void remove_earlier();

 private:
  const CheckpointPlace& place_;
  TrainedState state_;
  Progress progress_;
  std::unique_ptr<base::UnfinishedDirectory> directory_;  // on rank 0
  std::future<std::string> part_;  // its checksum; goes before the directory that it is written to
};

/// Fills parameters and optimizer from the newest checkpoint that verifies; empty when there is none.  Tells
/// the observer of each damaged one that it passes over.  Throws ModelError when all are damaged,
/// StorageError when one cannot be read, UsageError when a sound one belongs to another stage or model;
/// place.identity counts on rank 0.  Collective.
std::optional<Progress> load_checkpoint(const CheckpointPlace& place, TrainedState state,
                                        record::Observer& observer);

}  // namespace retort::train
