#include "retort/data/held_out_part.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/data/document_reader.h"

namespace retort::data {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

struct Places {
  std::vector<double> sorted;  ///< of the documents with text
  std::int64_t skipped_lines = 0;
};

Places places_of(const SourceOptions& source) {
  DocumentReader reader(source, Split::all);
  std::vector<double> places;
  std::int64_t bytes = 0;
  for (Document document; bytes < kMostBytes && reader.next(document);) {
    if (document.text.empty()) continue;
    bytes += static_cast<std::int64_t>(document.text.size());
    places.push_back(held_out_place(document.text));
  }
  std::sort(places.begin(), places.end());
  return {std::move(places), reader.skipped_lines()};
}

}  // namespace

std::int64_t held_out_documents(const SourceOptions& source, std::int64_t most) {
  const HeldOut& rule = source.held_out;
  if (rule.fraction == 0 && rule.every == 0 && rule.paths.empty()) return 0;
  DocumentReader reader(source, Split::held_out);
  std::int64_t count = 0;
  for (Document document; count < most && reader.next(document);) count += document.text.empty() ? 0 : 1;
  return count;
}

std::string held_out_advice(const SourceOptions& source, std::int64_t wanted) {
  if (!source.held_out.paths.empty()) return "give its held_out.path more documents";
  const auto [places, skipped_lines] = places_of(source);
  const auto count = std::ssize(places);
  if (count < 2 * wanted && skipped_lines > 0)
    return base::join("it has ", count, " documents, and ", skipped_lines,
                      " lines that are bad and were skipped: leave skip_bad_lines out to see what is wrong "
                      "with the first");
  if (count < 2 * wanted)
    return base::join("it has only ", count,
                      " documents: cut it into more by a separator, or give it files of ",
                      "their own as held_out.path");
  // The next thousandth above the last one that is wanted.
  const double fraction = (std::floor(places[static_cast<std::size_t>(wanted - 1)] * 1000) + 1) / 1000;
  if (fraction > 0.5) {
    const auto every = count / wanted;
    return base::join("set its held_out.every to ", every, ", which holds out ", count / every, " of its ",
                      count, " documents");
  }
  const auto held_out = std::lower_bound(places.begin(), places.end(), fraction) - places.begin();
  return base::join("set its held_out.fraction to ", fraction, ", which holds out ", held_out, " of its ",
                    count, " documents");
}

}  // namespace retort::data
