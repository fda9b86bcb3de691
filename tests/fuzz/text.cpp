// A file of text: its first byte chooses the name and the options, the rest is what it holds.
#include "fuzz/harness.h"
#include "retort/data/records.h"

using namespace retort;

namespace {

constexpr std::string_view kNames[] = {"a.txt",  "a.jsonl", "a.jsonl.gz", "a.txt.zst",
                                       "a.json", "a",       "a.gz",       "a.jsonl.zst"};
constexpr std::size_t kMostRecords = 1'000'000;

std::size_t count_read(data::RecordReader& records) {
  std::size_t count = 0;
  for (std::string text; count < kMostRecords && records.next(text) != data::Record::end;) ++count;
  return count;
}

std::size_t count_skipped(data::RecordReader& records) {
  std::size_t count = 0;
  while (count < kMostRecords && records.skip()) ++count;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const base::Path path = fuzz::folder() / kNames[choice & 7U];
  fuzz::write(path, fuzz::text_of(data + 1, size - 1));
  data::SourceOptions source;
  source.name = "source";
  source.paths = {path.string()};
  source.skip_bad_lines = (choice & 8U) != 0;
  if ((choice & 16U) != 0) source.separator = (choice & 32U) != 0 ? "\n\n" : "aa";
  fuzz::taken([&] {
    const std::size_t read = count_read(*data::open_records(source, path));
    fuzz::require(count_skipped(*data::open_records(source, path)) == read,
                  "as many are passed over as read");
  });
  return 0;
}
