#include "retort/data/countable_text.h"

#include <string_view>

#include "retort/base/error.h"

namespace retort::data {

void require_targets(const SourceOptions& source, Split split, const PackingOptions& packing, Targets targets,
                     const Encode& encode, const SpecialTokens& special) {
  constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
  constexpr std::size_t kEnoughBytes = 4096;  // of a document, which then has more than one token
  check_packing(packing, special);
  DocumentReader reader(source, split);
  std::int64_t bytes = 0;
  for (Document document; bytes < kMostBytes && reader.next(document);) {
    bytes += static_cast<std::int64_t>(document.text.size());
    const auto beginning = std::string_view(document.text).substr(0, kEnoughBytes);
    const auto tokens = encode_document(beginning, packing, encode, special);
    if (tokens.num_targets(targets, packing.attend_across_documents) > 0) return;
  }
  base::require<base::DataError>(bytes >= kMostBytes, "source '", source.name, kNothingToPredict);
}

}  // namespace retort::data
