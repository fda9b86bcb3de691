// The place in the text that a checkpoint holds.
#include "fuzz/harness.h"
#include "retort/data/shuffled_sequences.h"

using namespace retort;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  base::Json json;
  try {
    json = base::parse_json(fuzz::text_of(data, size));
  } catch (const base::JsonFault&) {
    return 0;
  }
  fuzz::taken([&] {
    const auto written = data::to_json(data::cursor_from_json(json));
    fuzz::require(data::to_json(data::cursor_from_json(written)) == written, "what is written says the same");
  });
  return 0;
}
