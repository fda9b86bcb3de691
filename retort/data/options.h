#pragma once
// What a recipe may say about text.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/words.h"

namespace retort::data {

/// Which documents of a source are held out: never trained on, never calibrated on; evaluation uses nothing
/// else.
struct HeldOut {
  double fraction = 0.02;  ///< chosen by a hash of the document's text; 0 to 0.5
  std::int64_t every = 0;  ///< instead: document numbers n (from 0) with n % every == every - 1; 0: off
  std::vector<std::string>
      paths;  ///< instead: documents of these files; the same texts are left out of training
};

/// Text that a model writes for others to learn from.
struct GeneratedText {
  std::string model;               ///< a directory, or a stage of the recipe; empty: there is none
  std::int64_t tokens = 0;         ///< that are kept, by the model's tokenizer; rounded up to whole texts
  bool chat = false;               ///< conversations in the form of the model's chat template, else documents
  std::string questions = "self";  ///< of chats: `self`, the model asks, or a file of questions
  std::string starts = {};         ///< of documents: a file of beginnings; empty: begin-of-text alone
  std::int64_t start_tokens = 32;  ///< of each beginning at most
  std::int64_t max_new_tokens = 512;  ///< of an answer or a document
  std::int64_t max_question_tokens = 256;
  double temperature = kOfDocuments;  ///< of answers and documents
  double top_p = 1, min_p = 0;
  std::int64_t top_k = 0;
  double question_temperature = 1;
  double question_top_p = 0.9;
  std::uint64_t seed = 0;
  std::int64_t batch = 32;  ///< texts that are made at once; decides no text

  static constexpr double kOfDocuments = 1, kOfAnswers = 0.7;  ///< temperatures where none is given
  static constexpr const char* kSelf = "self";
  bool is_given() const { return !model.empty(); }
  bool asks_itself() const { return chat && questions == kSelf; }
};

/// Which tokens of a conversation are learned and measured.
enum class LossOn {
  answers,  ///< those of the assistant's turns
  all
};
constexpr auto words_of(LossOn) {
  return base::words<LossOn::all>("answers", "all");
}

/// A named source of documents; evaluation and calibration measure each on its own.
struct SourceOptions {
  std::string name;
  std::vector<std::string> paths;  ///< files or globs: .txt or .jsonl, either with .gz or .zst, or .parquet
  std::string separator;           ///< plain text: documents are cut here; empty: a file is a document
  std::string field = "text";  ///< JSONL: the key that holds the text; Parquet: the column, or column.part
  bool chat = false;           ///< records are conversations (conversations.h), which the model's own chat
                               ///< template writes; then `field`, where it is not "text", is the key of the
                               ///< list of messages
  LossOn loss_on = LossOn::answers;  ///< of conversations
  double weight = 1.0;               ///< share of the tokens, relative to the other sources of a stage
  std::int64_t tokens = 0;  ///< of a training stage, instead of the weight: so many are of it; 0: off
  std::int64_t epochs = 0;  ///< a training stage reads it so many times at most; 0: without limit
  HeldOut held_out;
  bool skip_bad_lines = false;   ///< count and skip a bad line of JSONL, a bad row of Parquet, or a document
                                 ///< of plain text that is not UTF-8, instead of an error with its place
  GeneratedText generated = {};  ///< where a model is to write the text; its file is then in `paths`
};

/// Whether the begin-of-text token stands before each document.
enum class Bos {
  automatic,  ///< where the model has one
  always,
  never
};
constexpr auto words_of(Bos) {
  return base::words<Bos::never>("auto", "true", "false");
}

/// Where documents may be cut to fit into sequences.
enum class Cut {
  automatic,  ///< conversations nowhere, other text anywhere
  anywhere,
  whole  ///< nowhere: sequences are filled with whole documents and padded
};
constexpr auto words_of(Cut) {
  return base::words<Cut::whole>("auto", "anywhere", "whole");
}

/// What becomes of a whole document that is longer than a sequence.
enum class TooLong {
  drop,  ///< it is left out and counted
  error
};
constexpr auto words_of(TooLong) {
  return base::words<TooLong::error>("drop", "error");
}

/// How documents become fixed-length sequences.
struct PackingOptions {
  std::int64_t sequence_length = 512;    ///< tokens
  Bos bos = Bos::automatic;              ///< begin-of-text token before each document
  bool eos = false;                      ///< end-of-text token after each document
  bool attend_across_documents = false;  ///< default: attention and positions start anew with each document
  Cut cut = Cut::automatic;
  TooLong too_long = TooLong::drop;       ///< of whole documents
  std::int64_t shuffle_documents = 4096;  ///< documents shuffled among each other at a time; 1: source order
  std::int64_t shuffle_sequences = 256;   ///< packed sequences shuffled among each other at a time, so that a
                                          ///< long document does not fill a batch; 1: as they were packed

  bool keeps_whole(const SourceOptions& source) const {
    return cut == Cut::whole || (cut == Cut::automatic && source.chat);
  }
};

}  // namespace retort::data
