#pragma once
// Whether a stage has something to learn from and to be measured on, asked before the run begins.

#include "retort/data/packer.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {

/// Of a stage that trains, `text` being its model's.  Throws DataError that names the source without a
/// target.
void require_text_to_train(const PlanContext& context, const recipe::Stage& stage, const ModelText& text);
/// Of a stage that measures held-out documents.  Throws DataError.
void require_text_to_measure(const PlanContext& context, const recipe::Stage& stage, const ModelText& text);

/// "documents begin with the begin-of-text token '<s>' (id 1)", or that they begin with none.
std::string describe_begin_of_text(data::Bos bos, const ModelText& text);

/// Its id, or null.
base::Json begin_of_text_json(data::Bos bos, const ModelText& text);

/// Says how many documents of a source were not trained on, because of their length or for want of an answer.
void say_passed_over(const std::string& stage, const data::SourceStatistics& source,
                     const data::PackingOptions& packing, record::Observer& observer);

/// Says how many documents a source lost to skip_bad_lines; nothing where it lost none.
void say_skipped(const std::string& stage, const std::string& source, std::int64_t skipped_lines,
                 record::Observer& observer);

}  // namespace retort::pipeline
