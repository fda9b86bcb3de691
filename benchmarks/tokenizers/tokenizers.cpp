// How long it takes to encode documents: one pass over all of them, as JSON.  --ids writes the ids, for
// comparison with baseline.py.

#include <CLI/CLI.hpp>
#include <ctime>
#include <fstream>
#include <iostream>
#include <span>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/machine.h"
#include "retort/base/parallel.h"
#include "retort/data/records.h"
#include "retort/text/tokenizer.h"

namespace {

using namespace retort;
using Ids = std::vector<std::int32_t>;

struct Settings {
  std::string tokenizer, ids;
  std::vector<std::string> texts;
  unsigned threads = 1;
};

std::vector<std::string> read_documents(const std::vector<std::string>& paths) {
  std::vector<std::string> documents;
  for (const std::string& path : paths) {
    const auto records = data::open_records({}, path);
    std::string text;
    for (auto record = records->next(text); record != data::Record::end; record = records->next(text))
      if (record == data::Record::document) documents.push_back(text);
  }
  return documents;
}

// A row per document: how many ids, then the ids, 4 bytes each.
void write_ids(const std::string& path, const std::vector<Ids>& all) {
  std::ofstream out(path, std::ios::binary);
  for (const Ids& ids : all) {
    const auto count = static_cast<std::int32_t>(ids.size());
    for (const auto& bytes : {std::as_bytes(std::span(&count, 1)), std::as_bytes(std::span(ids))})
      out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

base::Json measure(const Settings& s) {
  const auto tokenizer = text::Tokenizer::from_file(s.tokenizer);
  const auto documents = read_documents(s.texts);
  std::vector<Ids> all(documents.size());
  const double begin = base::monotonic_seconds(), processor_begin = processor_seconds();
  base::parallel_for(documents.size(), s.threads,
                     [&](std::size_t i) { all[i] = tokenizer.encode(documents[i]); });
  const double end = base::monotonic_seconds(), processor_end = processor_seconds();
  if (!s.ids.empty()) write_ids(s.ids, all);
  std::size_t bytes = 0, tokens = 0;
  for (const std::string& document : documents) bytes += document.size();
  for (const Ids& ids : all) tokens += ids.size();
  return {{"documents", documents.size()},
          {"bytes", bytes},
          {"tokens", tokens},
          {"seconds", end - begin},
          {"processor_seconds", processor_end - processor_begin}};
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Time of one pass of encoding");
  app.add_option("TOKENIZER", s.tokenizer, "tokenizer.json, its directory or a GGUF file")->required();
  app.add_option("TEXT", s.texts, "Text or .jsonl, plain, .gz or .zst")->required();
  app.add_option("--threads", s.threads, "Documents encoded at once");
  app.add_option("--ids", s.ids, "Write the ids to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << measure(s).dump() << "\n";
  } catch (const retort::base::Error& error) {
    std::cerr << "tokenizers: error: " << error.what() << "\n";
    return static_cast<int>(error.code());
  }
  return 0;
}
