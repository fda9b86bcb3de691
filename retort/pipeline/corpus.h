#pragma once
// Makes a corpus: rounds of rows by all ranks, judged by rank 0 in the order of their numbers, so that the
// text is the same for any number of ranks and of texts at once.

#include <cstdint>
#include <string>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/data/options.h"
#include "retort/pipeline/corpus_file.h"
#include "retort/pipeline/text_model.h"
#include "retort/record/observer.h"

namespace retort::pipeline {

/// What a corpus is made by, its budget and the texts at once left out: those of one corpus may change.
base::Json corpus_settings(const TextModel& model, const data::GeneratedText& asked);

struct CorpusResult {
  CorpusCounts counts = {};
  std::int64_t new_tokens = 0;  ///< that the models of all ranks made, kept or not
  double seconds = 0;           ///< of making them
};

struct CorpusWork {
  std::string name;  ///< in what is said
  const TextModel& model;
  const data::GeneratedText& asked;
  base::Path out;
  base::Json settings = {};          ///< corpus_settings(), of rank 0
  std::int64_t available_bytes = 0;  ///< of a rank
  comm::Group& group;
  record::Observer& observer;
};

/// Makes it, or goes on.  Throws what CorpusRows and CorpusFile throw, MemoryError before the model is
/// loaded, and record::StoppedError on request.  Collective.
CorpusResult make_corpus(const CorpusWork& work);

}  // namespace retort::pipeline
