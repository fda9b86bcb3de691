#include "retort/calibrate/split_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "retort/base/error.h"

namespace retort::calibrate {
namespace {

constexpr std::size_t kLongest = 4;  // a document of more than one in so many tokens goes to the largest side

using Shares = std::array<double, 3>;  // fitted, choosing, judging
using Sides = std::array<std::vector<SourceText>*, 3>;

// What a sequence holds of a document.
struct Piece {
  std::size_t sequence = 0, document = 0, begin = 0, end = 0;
  bool goes_on = false;
};

std::vector<Piece> pieces_of(const SourceText& source) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < source.sequences.size(); ++i) {
    const auto& sequence = source.sequences[i];
    for (std::size_t k = 0; k < sequence.starts.size(); ++k) {
      const bool goes_on = k == 0 && sequence.goes_on && !pieces.empty();
      const auto end = k + 1 < sequence.starts.size() ? static_cast<std::size_t>(sequence.starts[k + 1])
                                                      : sequence.ids.size();
      pieces.push_back({i, pieces.empty() ? 0 : pieces.back().document + (goes_on ? 0 : 1),
                        static_cast<std::size_t>(sequence.starts[k]), end, goes_on});
    }
  }
  return pieces;
}

struct Document {
  std::vector<std::int32_t> ids;
  std::size_t targets = 0;
};

std::vector<Document> documents_of(const SourceText& source, const std::vector<Piece>& pieces) {
  std::vector<Document> documents;
  for (const auto& piece : pieces) {
    documents.resize(piece.document + 1);
    auto& document = documents[piece.document];
    const auto& sequence = source.sequences[piece.sequence];
    for (auto i = piece.begin; i < piece.end; ++i) {
      document.ids.push_back(sequence.ids[i]);
      document.targets += sequence.targets[i] != data::kNoTarget ? 1 : 0;
    }
  }
  return documents;
}

std::size_t least_filled(const Shares& taken, const Shares& shares) {
  std::size_t least = shares.size();
  for (std::size_t side = 0; side < shares.size(); ++side)
    if (shares[side] > 0 && (least == shares.size() || taken[side] < taken[least])) least = side;
  return least;
}

// The side of each document; none where that leaves a side without a target.
std::optional<std::vector<std::size_t>> assigned(const std::vector<Document>& documents,
                                                 const Shares& shares) {
  std::size_t all = 0;
  for (const auto& document : documents) all += document.ids.size();
  const auto largest =
      static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  Shares taken{};
  std::array<std::size_t, std::tuple_size_v<Shares>> targets{};
  std::map<std::vector<std::int32_t>, std::size_t> seen;
  std::vector<std::size_t> sides;
  for (const auto& document : documents) {
    const bool is_long = document.ids.size() * kLongest > all;
    const auto side =
        seen.emplace(document.ids, is_long || document.targets == 0 ? largest : least_filled(taken, shares))
            .first->second;
    taken[side] += static_cast<double>(document.ids.size()) / shares[side];
    targets[side] += document.targets;
    sides.push_back(side);
  }
  for (std::size_t side = 0; side < shares.size(); ++side)
    if (shares[side] > 0 && targets[side] == 0) return {};
  return sides;
}

std::vector<Piece> each_a_document(std::vector<Piece> pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].document = i;
    pieces[i].goes_on = false;
  }
  return pieces;
}

void append(data::Sequence& target, const data::Sequence& source, const Piece& piece) {
  if (target.ids.empty()) target.goes_on = piece.goes_on, target.number = source.number;
  target.starts.push_back(static_cast<std::int32_t>(target.ids.size()));
  const auto begin = static_cast<std::ptrdiff_t>(piece.begin), end = static_cast<std::ptrdiff_t>(piece.end);
  target.ids.insert(target.ids.end(), source.ids.begin() + begin, source.ids.begin() + end);
  target.targets.insert(target.targets.end(), source.targets.begin() + begin, source.targets.begin() + end);
}

// Returns whether documents stayed whole.
bool divide(const SourceText& source, const Shares& shares, const Sides& sides) {
  auto pieces = pieces_of(source);
  auto assignment = assigned(documents_of(source, pieces), shares);
  const bool whole = assignment.has_value();
  if (!whole) {
    pieces = each_a_document(std::move(pieces));
    assignment = assigned(documents_of(source, pieces), shares);
  }
  base::require<base::DataError>(
      assignment.has_value(), "calibration text '", source.name, "': found ", pieces.size(),
      " parts of documents in ", source.sequences.size(),
      " sequences, expected enough for one side to fit to, one to choose by and one "
      "to judge by, the last two of at most a quarter of the text each; raise "
      "calibration_tokens or lower sequence_length.");
  const auto& side_of = *assignment;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    auto& sequences = sides[side]->emplace_back(SourceText{source.name, {}}).sequences;
    const Piece* last = nullptr;
    for (const auto& piece : pieces) {
      if (side_of[piece.document] != side) continue;
      if (!last || last->sequence != piece.sequence) sequences.emplace_back();
      append(sequences.back(), source.sequences[piece.sequence], piece);
      last = &piece;
    }
  }
  return whole;
}

base::Json counts(const SourceText& source) {
  std::size_t tokens = 0, documents = 0;
  for (const auto& sequence : source.sequences) {
    tokens += sequence.ids.size();
    documents += sequence.starts.size() - (sequence.goes_on ? 1 : 0);
  }
  return {{"tokens", tokens}, {"documents", documents}};
}

}  // namespace

TextSplit split_by_document(const std::vector<SourceText>& sources, const TextShares& shares) {
  TextSplit text;
  for (const auto& source : sources)
    if (!divide(source, {shares.fitted, shares.choosing, shares.judging},
                {&text.fitted, &text.choosing, &text.judging}))
      text.cut.insert(source.name);
  return text;
}

std::vector<std::string> warnings_of_cut(const TextSplit& text, const char* stage, const char* looks_better) {
  std::vector<std::string> warnings;
  for (const auto& source : text.cut)
    warnings.push_back(
        base::join(stage, ": calibration text '", source,
                   "' has too few documents to fit to some and judge by others, so parts of one document "
                   "serve both and ",
                   looks_better, "; give the source a separator, or raise calibration_tokens."));
  return warnings;
}

base::Json describe(const std::vector<SourceText>& sources) {
  base::Json json = base::Json::object();
  for (const auto& source : sources) json[source.name] = counts(source);
  return json;
}

base::Json describe(const TextSplit& text) {
  base::Json json = base::Json::object();
  for (const auto& source : text.fitted) json[source.name]["fitted"] = counts(source);
  for (const auto& source : text.choosing) json[source.name]["choosing"] = counts(source);
  for (const auto& source : text.judging) {
    json[source.name]["judging"] = counts(source);
    json[source.name]["whole_documents"] = !text.cut.contains(source.name);
  }
  return json;
}

}  // namespace retort::calibrate
