#pragma once
// Texts that the student writes while it is trained, and learns from: it goes on with beginnings of
// documents.

#include <cstdint>
#include <span>
#include <vector>

#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/data/sequence_stream.h"
#include "retort/eval/generate_texts.h"
#include "retort/loss/losses.h"
#include "retort/shard/parameters.h"
#include "retort/train/options.h"

namespace retort::train {

/// How many of the `sequences` of a step, from 1, the student writes: over a stage the share is exact.
std::int64_t written_sequences(const OnPolicyOptions& options, std::int64_t sequences, std::int64_t step);

/// Texts that the student writes for a sequence: so many fit whatever their length.
std::int64_t texts_of_sequence(const OnPolicyOptions& options, std::int64_t sequence_length);

/// Throws UsageError, naming the stage, for options that contradict each other or the losses.
void check_on_policy(const std::string& stage, const TrainOptions& options,
                     const std::vector<loss::LossOptions>& losses);

/// How documents are packed of which only the beginnings count, and their ids up to there.
data::PackingOptions packing_of_prompts(const TrainOptions& options);
data::Encode beginnings(data::Encode encode, std::int64_t tokens);
/// Of the order of prompts: they are not those of the texts beside them.
std::uint64_t seed_of_prompts(std::uint64_t seed);

/// Texts that are to be gone on with.
struct Prompts {
  std::vector<std::vector<std::int32_t>> ids;
  std::int64_t too_long = 0;  ///< those left out
};
/// Of each document that begins in the sequence its first `most_tokens` tokens; where the first targets come
/// later, as behind a question, all up to them, unless these are more.  A document whose beginning the end of
/// the sequence cuts off is left out.
Prompts prompts_of(const data::Sequence& sequence, std::int64_t most_tokens);

/// Texts one behind the other in sequences of at most `length` tokens, in their order; each is a document of
/// its own.  Targets are the tokens that were written; the last is no input.  A text to which nothing was
/// added is left out.
std::vector<data::Sequence> packed_texts(std::span<const eval::Generation> texts, std::int64_t length);

/// Whether a text ends in a piece of at most eight tokens over and over, for 32 tokens.
bool repeats_itself(const eval::Generation& text);

/// What was written.
struct WrittenCounts {
  std::int64_t texts = 0;
  std::int64_t tokens = 0;         ///< that were added to prompts, with those that end texts
  std::int64_t ended = 0;          ///< texts that end by an end-of-text token
  std::int64_t ended_at_once = 0;  ///< of these, texts whose first new token that is
  std::int64_t repeating = 0;      ///< texts that repeat themselves
  std::int64_t too_long_prompts = 0;
  double seconds = 0;

  void add(const eval::Generation& text);
  WrittenCounts& operator+=(const WrittenCounts& other);
};
base::Json to_json(const WrittenCounts& counts);

/// What a stage needs to write.
struct Writing {
  const loss::Losses* losses = nullptr;     ///< on what was written; null: the stage does not write
  data::SequenceStream* prompts = nullptr;  ///< of beginnings(); null except on rank 0
  std::vector<std::int32_t> stop_ids = {}, ids_without_token = {};
};

class WrittenTexts {
 public:
  /// All references outlive it.
  WrittenTexts(const TrainOptions& options, const Writing& writing, shard::Parameters& student,
               comm::Group& group, std::int64_t texts_at_once);

  /// At most `count` sequences of new texts: all of the step, the same on every rank.  A text is a function
  /// of the weights, the seed, the step and its number in the step.  Throws ValidationError for logits that
  /// are not finite, and what reading prompts throws.  Collective.
  std::vector<data::Sequence> write(std::int64_t step, std::int64_t count);

  /// Of the last call, and of all.
  const WrittenCounts& last() const { return last_; }
  const WrittenCounts& all() const { return all_; }

  /// The place among the prompts, and what all() says; goes on there.  Null and ignored except on rank 0.
  base::Json state() const;
  /// Throws DataError where the state is none.
  void seek(const base::Json& state);

 private:
  std::vector<std::vector<std::int32_t>> next_prompts(std::int64_t count);
  void load_prompts();
  std::vector<eval::Generation> texts_of(const std::vector<std::vector<std::int32_t>>& prompts,
                                         std::int64_t step);
  std::vector<eval::Generation> exchanged(std::vector<eval::Generation> own) const;

  const TrainOptions& options_;
  const Writing& writing_;
  shard::Parameters& student_;
  comm::Group& group_;
  std::int64_t texts_at_once_;
  WrittenCounts last_, all_;
  // On rank 0: the beginnings of one sequence, the stream's place before it, and how many were given.
  Prompts prompts_;
  base::Json place_;
  std::size_t given_ = 0;
  bool loaded_ = false;
};

}  // namespace retort::train
