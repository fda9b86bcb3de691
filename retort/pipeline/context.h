#pragma once
// What every stage of a run shares.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/comm/group.h"
#include "retort/data/sequence.h"
#include "retort/pipeline/pipeline.h"
#include "retort/recipe/recipe.h"
#include "retort/record/metrics.h"
#include "retort/record/observer.h"
#include "retort/record/run_directory.h"
#include "retort/shard/groups.h"
#include "retort/text/tokenizer.h"

namespace retort::pipeline {

/// Where stages run, and what memory they may use.
struct Place {
  at::Device device;
  shard::RankCounts ranks;
  /// Memory that the run may use of a machine or, with one each, of an accelerator, decided once before any
  /// model is loaded.  A stage's plan counts its models, so what they take must not be missing here.
  std::int64_t available_bytes;
  std::int64_t machine_bytes;  ///< the same of the machine's own memory

  /// What one rank may use.
  std::int64_t bytes_of_rank() const { return available_bytes / ranks.of_memory; }
};

/// Every rank of the group has one.
struct Context {
  const recipe::Recipe& recipe;
  record::RunDirectory& directory;
  record::Metrics* metrics;  ///< null but on rank 0 of the group
  record::Observer& observer;
  comm::Group& group;
  at::ScalarType dtype;
  Place place;

  bool leads() const { return group.rank() == 0; }
  /// What rank 0 does for all, see comm/lead.h.  Collective.
  void lead(const std::function<void()>& act) const;
  /// What rank 0 sees: a file that it wrote may reach the others later, and a signal not at all.  Collective.
  bool agreed(bool of_rank_0) const;
  /// What rank 0 reads of a source: text is read and tokenised once, however many ranks there are.  Throws on
  /// all ranks what reading threw.  Collective.
  std::vector<data::Sequence> read_once(const std::function<std::vector<data::Sequence>()>& read) const;
  /// Throws StoppedError with this sentence on every rank when the user asked rank 0 to stop.  Collective.
  void stop_if_asked(const std::string& sentence) const;
  /// For rank 0 while it computes alone: the processors of the ranks that wait on its machine are free.
  int threads_of_machine() const;
  /// The directory of a model that a stage names: an earlier stage's, or a directory as it stands.
  base::Path model_path(const std::string& name) const;
  /// A finalist of a prune stage besides its model, which is number 1; from 2 without gaps.
  base::Path finalist_path(const std::string& stage, std::size_t number) const;
};

/// What the process has beside tensors when it begins to work, which no plan counts: a clause of a sentence.
std::string beside_tensors();

/// What `asked` says, which may be empty, else what the machine or its accelerator has.
std::int64_t available_bytes(const AvailableMemory& asked, at::Device device);

/// Tokenizer and special tokens of a model directory.
struct ModelText {
  text::Tokenizer tokenizer;
  data::SpecialTokens special;
  std::int64_t rows = 0;  ///< of the model's embedding
  base::Path model = {};  ///< whose chat template writes conversations

  /// Throws DataError for text that holds a special token without a row; for conversations as ChatEncoder.
  data::Encode encode() const;
  /// Those below `vocab_size`, the rows of a model's head, that name no token.
  std::vector<std::int32_t> ids_without_token(std::int64_t vocab_size) const;
  /// Ids of a prompt: with what the post-processor adds, and the begin-of-text token in front, which models
  /// are trained with even where the tokenizer adds none.  Throws UsageError for text that is not UTF-8,
  /// DataError as encode().
  std::vector<std::int32_t> prompt_ids(std::string_view text, bool bos = true) const;
};
/// Throws ModelError when the tokenizer has ids beyond the model's vocabulary, but for special tokens that
/// only text with their names gives.
ModelText read_model_text(const base::Path& directory, const architecture::Config& config);

/// Checksums of a model's weight files, by name.
base::Json weight_checksums(const base::Path& directory);
/// Name, path, checksums and the tokenizer's steps of a model that a stage reads, for its provenance.
base::Json describe_input(const std::string& name, const base::Path& directory);
/// Provenance of the model that a stage writes.
base::Json provenance_of(const recipe::Stage& stage, at::ScalarType compute_dtype, const base::Json& inputs);

/// Errors of `act` say of which stage they are, but those of other ranks and a stop on request.
void in_stage(const recipe::Stage& stage, const std::function<void()>& act);

/// Throws UsageError when a stage's sequences are longer than its model allows; `key` names the recipe key.
void require_context(const std::string& stage, const char* key, std::int64_t tokens,
                     const architecture::Config& config);

}  // namespace retort::pipeline
