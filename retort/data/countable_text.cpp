#include "retort/data/countable_text.h"

#include <string_view>

#include "retort/base/error.h"
#include "retort/data/tokenized.h"

namespace retort::data {
namespace {

constexpr std::size_t kEnoughBytes =
    4096;  // of a document that may be cut, which then has a token to predict

std::string counted(std::int64_t count, const char* what) {
  return count > 0 ? base::join(" ", count, " ", what, ",") : std::string();
}

}  // namespace

std::string nothing_to_predict(const SourceOptions& source, const PackingOptions& packing,
                               const PassedOver& passed) {
  if (!source.chat && passed.too_long == 0) return base::join("source '", source.name, kNothingToPredict);
  auto found = counted(passed.too_long, "longer than that") +
               counted(passed.unanswered, "without an answer") +
               counted(passed.refused, "that the chat template refuses");
  if (!found.empty()) found = base::join(", but", found.substr(0, found.size() - 1));
  const auto length = packing.keeps_whole(source)
                          ? base::join(" in at most ", packing.sequence_length, " tokens")
                          : std::string();
  return base::join("source '", source.name, "': expected ",
                    source.chat ? "conversations with an answer" : "documents", length, ", found none", found,
                    "; ",
                    passed.too_long > 0 ? "raise packing.sequence_length, or set packing.cut to anywhere."
                                        : "give it conversations with messages of the assistant.");
}

void require_targets(const SourceOptions& source, Split split, const PackingOptions& packing, Targets targets,
                     const Encode& encode, const SpecialTokens& special) {
  constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
  check_packing(packing, special);
  const bool whole = packing.keeps_whole(source);
  DocumentReader reader(source, split);
  std::int64_t bytes = 0;
  PassedOver passed;
  for (Document document; bytes < kMostBytes && reader.next(document);) {
    bytes += static_cast<std::int64_t>(document.text.size());
    if (!source.chat && !whole) document.text.resize(std::min(document.text.size(), kEnoughBytes));
    const auto tokens = tokenized(document, source, packing, encode, special);
    const bool too_long = tokens && whole && std::ssize(tokens->ids) > packing.sequence_length;
    const bool has = tokens && tokens->num_targets(targets, packing.attend_across_documents) > 0;
    if (has && !too_long) return;
    passed.refused += tokens ? 0 : 1;
    passed.too_long += too_long ? 1 : 0;
    passed.unanswered += tokens && !too_long ? 1 : 0;
  }
  base::require<base::DataError>(bytes >= kMostBytes, nothing_to_predict(source, packing, passed));
}

void require_tokens(const SourceOptions& source, std::int64_t tokens, const PackingOptions& packing,
                    const Encode& encode, const SpecialTokens& special) {
  const bool whole = packing.keeps_whole(source);
  DocumentReader reader(source, Split::training);
  std::int64_t found = 0;
  for (Document document; found * source.epochs < tokens && reader.next(document);) {
    const auto read = tokenized(document, source, packing, encode, special);
    if (!read || (whole && std::ssize(read->ids) > packing.sequence_length)) continue;
    if (source.chat && read->num_targets(Targets::learned, packing.attend_across_documents) == 0) continue;
    found += std::ssize(read->ids);
  }
  base::require<base::DataError>(found * source.epochs >= tokens, "source '", source.name, "': has ", found,
                                 " tokens to learn from, which are ", found * source.epochs, " in ",
                                 source.epochs, " passes, and the stage asks for ", tokens,
                                 "; raise its epochs, add text, or ask for fewer tokens.");
}

}  // namespace retort::data
