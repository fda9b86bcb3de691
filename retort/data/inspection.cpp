#include "retort/data/inspection.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/data/conversations.h"
#include "retort/data/document_reader.h"
#include "retort/data/tokenized.h"
#include "retort/data/whole_documents.h"
#include "retort/text/unicode.h"

namespace retort::data {
namespace {

using base::Json;

constexpr std::size_t kMostSampleBytes = 4000;

double share(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

// The least value with at least so much of the rest below it.
Json quantiles(std::vector<std::int64_t> values) {
  if (values.empty()) return nullptr;
  std::ranges::sort(values);
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1];
  };
  return {{"least", values.front()}, {"p10", at(0.1)},  {"median", at(0.5)},
          {"p90", at(0.9)},          {"p99", at(0.99)}, {"most", values.back()}};
}

class Inspector {
 public:
  Inspector(const SourceOptions& source, const Encode& encode, const SpecialTokens& special,
            const InspectionOptions& options)
      : source_(source), encode_(encode), special_(special), options_(options) {
    lenient_.skip_bad_lines = true;
    strict_.skip_bad_lines = false;
  }

  Json run() {
    DocumentReader reader(lenient_, Split::all);
    for (Document document; !is_enough() && reader.next(document);)
      if (!document.text.empty()) add(document);
    std::ranges::sort(shown_, {}, [](const auto& one) { return one.second.number; });
    for (const auto& [hash, document] : shown_) show(document);
    return result(reader);
  }

 private:
  bool is_enough() const { return options_.documents > 0 && documents_ >= options_.documents; }

  void add(const Document& document) {
    ++documents_;
    held_out_ += source_.held_out.paths.empty() && is_held_out(source_.held_out, document) ? 1 : 0;
    const auto hash = base::hash64(document.text);
    const bool copy = !seen_.insert(hash).second;
    duplicates_ += copy ? 1 : 0;
    if (!encode_.text) {
      bytes_ += std::ssize(document.text);
      lengths_.push_back(std::ssize(document.text));
      return;
    }
    try {
      count(*tokenized(document, strict_, options_.packing, encode_, special_));
      if (!copy) consider(hash, document);
    } catch (const base::DataError& error) {
      if (refused_++ == 0) first_refused_ = error.what();
    }
  }

  // Those with the least hashes are shown: any, and the same every time.
  void consider(std::uint64_t hash, const Document& document) {
    const auto place = std::ranges::lower_bound(shown_, hash, {}, [](const auto& one) { return one.first; });
    shown_.insert(place, {hash, document});
    if (std::ssize(shown_) > options_.samples) shown_.pop_back();
  }

  void count(const DocumentTokens& tokens) {
    const auto size = std::ssize(tokens.ids);
    bytes_ += tokens.bytes;
    tokens_ += size;
    lengths_.push_back(size);
    const auto targets = tokens.num_targets(Targets::learned, options_.packing.attend_across_documents);
    targets_ += targets;
    const bool whole = options_.packing.keeps_whole(source_);
    if (size > options_.packing.sequence_length) ++too_long_;
    if (source_.chat && targets == 0) ++unanswered_;
    if (whole && (size > options_.packing.sequence_length || targets == 0)) return;
    used_tokens_ += size;
    if (whole) whole_.push_back(size);
  }

  // The text as the model reads it, with the answers in it.
  void show(const Document& document) {
    Json sample = {{"place", place_of(document)}, {"text", document.text}, {"answers", Json::array()}};
    if (source_.chat) {
      const auto chat = encode_.chat(conversation_of(document.text));
      sample["text"] = chat.text;
      for (const auto& [begin, end] : chat.answers) sample["answers"].push_back({begin, end});
    }
    auto text = sample["text"].get<std::string>();
    sample["cut"] = text.size() > kMostSampleBytes;
    if (text.size() > kMostSampleBytes)
      text.resize(text::valid_utf8_prefix(std::string_view(text).substr(0, kMostSampleBytes)));
    for (Json& answer : sample["answers"])
      for (Json& place : answer) place = std::min(place.get<std::size_t>(), text.size());
    sample["text"] = text;
    samples_.push_back(std::move(sample));
  }

  // What is wrong with the first bad line, which only a reader that skips none says.
  std::string first_bad() const {
    try {
      DocumentReader reader(strict_, Split::all);
      for (Document document; reader.next(document);) {
      }
    } catch (const base::DataError& error) {
      return error.what();
    }
    return {};
  }

  Json result(const DocumentReader& reader) const {
    Json json = {{"name", source_.name},
                 {"chat", source_.chat},
                 {"files", reader.files().size()},
                 {"documents", documents_},
                 {"all", !is_enough()},
                 {"held_out", source_.held_out.paths.empty() ? Json(held_out_) : Json(nullptr)},
                 {"bytes", bytes_},
                 {"duplicates", duplicates_},
                 {"bad_lines", reader.skipped_lines()},
                 {"lengths", quantiles(lengths_)}};
    if (reader.skipped_lines() > 0) json["first_bad"] = first_bad();
    if (!encode_.text) return json;
    const auto length = options_.packing.sequence_length;
    const bool whole = options_.packing.keeps_whole(source_);
    const auto sequences = whole ? sequences_of_whole(whole_, length) : used_tokens_ / length;
    json["tokens"] = tokens_;
    json["bytes_per_token"] = share(bytes_, tokens_);
    json["targets"] = targets_;
    json["without_target"] = tokens_ > 0 ? 1 - share(targets_, tokens_) : 0;
    json["sequence_length"] = length;
    json["whole"] = whole;
    json["too_long"] = too_long_;
    json["unanswered"] = unanswered_;
    json["sequences"] = sequences;
    json["padding"] = whole && sequences > 0 ? 1 - share(used_tokens_, sequences * length) : 0;
    json["refused"] = refused_;
    if (refused_ > 0) json["first_refused"] = first_refused_;
    json["samples"] = samples_;
    return json;
  }

  const SourceOptions& source_;
  SourceOptions lenient_ = source_, strict_ = source_;
  const Encode& encode_;
  const SpecialTokens& special_;
  const InspectionOptions& options_;
  std::int64_t documents_ = 0, held_out_ = 0, duplicates_ = 0, bytes_ = 0;
  std::int64_t tokens_ = 0, targets_ = 0, used_tokens_ = 0, too_long_ = 0, unanswered_ = 0, refused_ = 0;
  std::string first_refused_;
  std::unordered_set<std::uint64_t> seen_;
  std::vector<std::int64_t> lengths_, whole_;
  std::vector<std::pair<std::uint64_t, Document>> shown_;
  Json samples_ = Json::array();
};

}  // namespace

Json inspect(const SourceOptions& source, const Encode& encode, const SpecialTokens& special,
             const InspectionOptions& options) {
  if (encode.text) check_packing(options.packing, special);
  return Inspector(source, encode, special, options).run();
}

}  // namespace retort::data
