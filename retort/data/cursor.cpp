// The saved form of a stream's place.
#include <utility>

#include "retort/base/error.h"
#include "retort/data/shuffled_sequences.h"

namespace retort::data {
namespace {

base::Json to_json(const PackerCursor::Source& source) {
  const auto& [place, statistics] = source;
  const DocumentReader::Position& start = place.window_start;
  return {
      {"name", statistics.name},
      {"epoch", place.epoch},
      {"window", place.window},
      {"taken", place.taken},
      {"start", {start.file, start.record, start.number, start.skipped_lines}},
      {"documents", statistics.documents},
      {"bytes", statistics.bytes},
      {"tokens", statistics.tokens},
      {"skipped_lines", statistics.skipped_lines},
      {"targets", statistics.targets},
      {"passed_over", {statistics.too_long, statistics.unanswered, statistics.refused}},
  };
}

std::int64_t whole(const base::Json& value) {
  base::require<base::DataError>(value.is_number_integer() && value.get<std::int64_t>() >= 0,
                                 "data cursor: expected a count, found ", value.dump(),
                                 "; the saved state is damaged.");
  return value.get<std::int64_t>();
}

// Of a number that earlier versions did not write.
std::int64_t whole_or_0(const base::Json& json, const char* key) {
  return json.contains(key) ? whole(json.at(key)) : 0;
}

PackerCursor::Source source_from_json(const base::Json& json) {
  const base::Json& start = json.at("start");
  PackerCursor::Source source;
  source.place = {.epoch = whole(json.at("epoch")),
                  .window = whole(json.at("window")),
                  .taken = whole(json.at("taken")),
                  .window_start = {.file = whole(start.at(0)),
                                   .record = whole(start.at(1)),
                                   .number = whole(start.at(2)),
                                   .skipped_lines = whole(start.at(3))}};
  source.statistics = {.name = json.at("name").get<std::string>(),
                       .documents = whole(json.at("documents")),
                       .bytes = whole(json.at("bytes")),
                       .tokens = whole(json.at("tokens")),
                       .skipped_lines = whole(json.at("skipped_lines")),
                       .epoch = source.place.epoch,
                       .targets = whole_or_0(json, "targets")};
  if (const auto passed = json.find("passed_over"); passed != json.end()) {
    source.statistics.too_long = whole(passed->at(0));
    source.statistics.unanswered = whole(passed->at(1));
    source.statistics.refused = whole(passed->at(2));
  }
  return source;
}

}  // namespace

base::Json to_json(const StreamCursor& cursor) {
  const PackerCursor& start = cursor.window_start;
  base::Json sources = base::Json::array();
  for (const PackerCursor::Source& source : start.sources) sources.push_back(to_json(source));
  return {
      {"taken", cursor.taken},       {"sequences", start.sequences}, {"offset_tokens", start.offset_tokens},
      {"packed_taken", start.taken}, {"padding", start.padding},     {"sources", std::move(sources)}};
}

StreamCursor cursor_from_json(const base::Json& json) {
  try {
    StreamCursor cursor;
    cursor.taken = whole(json.at("taken"));
    PackerCursor& start = cursor.window_start;
    start.sequences = whole(json.at("sequences"));
    start.offset_tokens = whole(json.at("offset_tokens"));
    start.taken = whole_or_0(json, "packed_taken");
    start.padding = whole_or_0(json, "padding");
    for (const base::Json& source : json.at("sources")) start.sources.push_back(source_from_json(source));
    return cursor;
  } catch (const base::Json::exception& error) {
    throw base::DataError(
        base::join("data cursor: expected the saved place of a stream, found something else (", error.what(),
                   "); the saved state is damaged."));
  }
}

}  // namespace retort::data
