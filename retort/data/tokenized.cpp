#include "retort/data/tokenized.h"

#include <utility>

#include "retort/base/error.h"
#include "retort/data/conversations.h"
#include "retort/data/file_form.h"

namespace retort::data {
namespace {

DocumentTokens tokens_of(ChatTokens chat, LossOn loss_on) {
  DocumentTokens tokens{.ids = std::move(chat.ids)};
  tokens.text_end = tokens.ids.size();
  tokens.bytes = chat.bytes;
  tokens.counted_bytes = loss_on == LossOn::all ? chat.bytes : chat.answer_bytes;
  if (loss_on == LossOn::answers) tokens.counts = std::move(chat.is_answer);
  return tokens;
}

}  // namespace

std::string place_of(const Document& document) {
  return base::join(document.file.string(), is_parquet(document.file) ? ", row " : ", line ",
                    document.record);
}

std::optional<DocumentTokens> tokenized(const Document& document, const SourceOptions& source,
                                        const PackingOptions& packing, const Encode& encode,
                                        const SpecialTokens& special) {
  if (!source.chat) return encode_document(document.text, packing, encode, special);
  base::ensure(encode.chat != nullptr, "who reads conversations has a chat template");
  try {
    return tokens_of(encode.chat(conversation_of(document.text)), source.loss_on);
  } catch (const base::DataError& error) {
    if (source.skip_bad_lines) return {};
    throw base::DataError(base::join("source '", source.name, "', ", place_of(document), ": ", error.what()));
  }
}

}  // namespace retort::data
