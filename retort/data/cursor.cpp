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
  };
}

std::int64_t whole(const base::Json& value) {
  base::require<base::DataError>(value.is_number_integer() && value.get<std::int64_t>() >= 0,
                                 "data cursor: expected a count, found ", value.dump(),
                                 "; the saved state is damaged.");
  return value.get<std::int64_t>();
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
                       .epoch = source.place.epoch};
  return source;
}

}  // namespace

base::Json to_json(const StreamCursor& cursor) {
  const PackerCursor& start = cursor.window_start;
  base::Json sources = base::Json::array();
  for (const PackerCursor::Source& source : start.sources) sources.push_back(to_json(source));
  return {{"taken", cursor.taken},
          {"sequences", start.sequences},
          {"offset_tokens", start.offset_tokens},
          {"sources", std::move(sources)}};
}

StreamCursor cursor_from_json(const base::Json& json) {
  try {
    StreamCursor cursor;
    cursor.taken = whole(json.at("taken"));
    PackerCursor& start = cursor.window_start;
    start.sequences = whole(json.at("sequences"));
    start.offset_tokens = whole(json.at("offset_tokens"));
    for (const base::Json& source : json.at("sources")) start.sources.push_back(source_from_json(source));
    return cursor;
  } catch (const base::Json::exception& error) {
    throw base::DataError(
        base::join("data cursor: expected the saved place of a stream, found something else (", error.what(),
                   "); the saved state is damaged."));
  }
}

}  // namespace retort::data
