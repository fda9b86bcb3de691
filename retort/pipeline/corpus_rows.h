#pragma once
// The texts of a corpus by number.  A row is a function of the model, the options and its number: neither of
// the other rows nor of how many are made at once.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "retort/chat/chat_template.h"
#include "retort/chat/user_turn.h"
#include "retort/data/options.h"
#include "retort/eval/generate_texts.h"
#include "retort/pipeline/corpus_file.h"
#include "retort/pipeline/text_model.h"
#include "retort/shard/memory_plan.h"

namespace retort::pipeline {

class CorpusRows {
 public:
  /// `model` outlives it; `date` (YYYY-MM-DD) is what a template is told of today.  Throws UsageError for
  /// options that contradict each other or the model, ModelError where a chat template is missing or does
  /// not fit, and what reading the files of questions and beginnings throws.
  CorpusRows(const TextModel& model, const data::GeneratedText& asked, const std::string& date);

  /// How many there are; nothing where there is no end.
  std::optional<std::int64_t> count() const;
  /// Of making rows, whatever their number.
  shard::MemoryPlan plan(std::int64_t available_bytes) const;

  struct Listener {
    std::function<void(CorpusRow row)> done;  ///< in the order in which they end
    std::function<void()> token;              ///< after each; what it throws ends the work
  };
  void make(eval::TextWeights& weights, std::span<const std::int64_t> numbers, const Listener& listener);

 private:
  struct Asked {
    std::int64_t number = 0;
    chat::Conversation conversation = {};
    std::vector<std::int32_t> ids = {};
  };

  void read_inputs();
  eval::TextsOptions answer_options() const;
  eval::TextsOptions question_options() const;
  std::vector<std::int32_t> ids_of(const chat::Conversation& conversation) const;
  std::vector<std::int32_t> ids_of_start(std::int64_t number) const;
  CorpusRow conversation_row(const Asked& asked, const eval::Generation& made) const;
  CorpusRow document_row(std::int64_t number, const eval::Generation& made) const;
  std::vector<Asked> questions_by_model(eval::TextWeights& weights, std::span<const std::int64_t> numbers,
                                        const Listener& listener) const;
  std::vector<Asked> questions_of_file(std::span<const std::int64_t> numbers, const Listener& listener) const;
  using RowOf = std::function<CorpusRow(std::size_t prompt, const eval::Generation& made)>;
  void make_rows(eval::TextWeights& weights, const std::vector<eval::Prompt>& prompts,
                 const Listener& listener, const RowOf& row_of) const;
  void make_conversations(eval::TextWeights& weights, const std::vector<Asked>& asked,
                          const Listener& listener) const;
  void make_documents(eval::TextWeights& weights, std::span<const std::int64_t> numbers,
                      const Listener& listener) const;

  const TextModel& model_;
  data::GeneratedText options_;
  chat::RenderOptions rendering_;
  std::optional<chat::ChatTemplate> template_;
  chat::UserTurn turn_;
  std::vector<chat::Conversation> questions_;
  std::vector<std::string> starts_;
  std::int64_t longest_prompt_ = 0;  ///< tokens
};

/// Throws UsageError naming the first option that is out of its range.
void check(const data::GeneratedText& asked);

}  // namespace retort::pipeline
