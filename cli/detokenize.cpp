#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/standard_streams.h"
#include "retort/base/json.h"
#include "retort/io/compressed.h"
#include "retort/text/tokenizer.h"

namespace retort::cli {
namespace {

struct DetokenizeOptions {
  std::string tokenizer;
  std::string file;
  bool special = false;
  bool json = false;
};

using Ids = std::vector<std::int32_t>;

/// {"ids": [...]} or [...]
Ids ids_of_json(const std::string& line) {
  base::Json json = base::parse_json(line, {.max_bytes = io::LineReader::kMaxLineBytes});
  if (json.is_object()) {
    const auto found = json.find("ids");
    if (found == json.end()) throw base::JsonFault{"expected the key \"ids\"", 0};
    json = base::Json(*found);
  }
  if (!json.is_array()) throw base::JsonFault{"expected a list of ids", 0};
  Ids ids;
  for (const auto& id : json) {
    const bool fits = id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
    if (!fits) throw base::JsonFault{base::join("expected an id, found ", id.dump().substr(0, 40)), 0};
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

Ids ids_of_words(const std::string& line) {
  Ids ids;
  const char* next = line.data();
  const char* end = next + line.size();
  while (true) {
    while (next != end && std::string_view(" \t\r,").find(*next) != std::string_view::npos) ++next;
    if (next == end) return ids;
    std::int32_t id = 0;
    const auto [after, error] = std::from_chars(next, end, id);
    if (error != std::errc() || id < 0)
      throw base::JsonFault{base::join("expected an id, found '", std::string(next, end).substr(0, 20), "'"),
                            static_cast<std::size_t>(next - line.data())};
    ids.push_back(id);
    next = after;
  }
}

Ids ids_of(const std::string& line, const io::LineReader& lines) {
  try {
    const auto first = line.find_first_not_of(" \t");
    const bool json = first != std::string::npos && (line[first] == '{' || line[first] == '[');
    return json ? ids_of_json(line) : ids_of_words(line);
  } catch (const base::JsonFault& fault) {
    throw base::DataError(base::join(
        lines.path().string(), ", line ", lines.line_number(), ", byte ", fault.byte, ": ", fault.reason,
        "; give ids separated by spaces, or {\"ids\": [...]}, a document per line."));
  }
}

base::ExitCode detokenize(const DetokenizeOptions& options) {
  write_exact_text();
  const auto tokenizer = text::Tokenizer::from_file(options.tokenizer);
  io::LineReader lines(options.file.empty() || options.file == "-" ? "/dev/stdin" : options.file);
  std::string line;
  for (bool first = true; lines.next(line); first = false) {
    const std::string text = tokenizer.decode(ids_of(line, lines), !options.special);
    if (options.json)
      print(std::cout, {{"text", text}}, true);
    else
      std::cout << (first ? "" : "\n") << text;
  }
  return base::ExitCode::ok;
}

}  // namespace

Action declare_detokenize(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort tokenize models/europa-5m book.txt | retort detokenize models/europa-5m\n"
      "  echo '{\"ids\": [1, 2, 3]}' | retort detokenize models/europa-5m --json\n"
      "  retort detokenize tokenizer.json ids.txt --special\n"
      "A line of ids is a document; texts are separated by a newline, and none is added after the last.");
  auto options = std::make_shared<DetokenizeOptions>();
  app.add_option("TOKENIZER", options->tokenizer, "Model directory, GGUF file or tokenizer.json")->required();
  app.add_option("FILE", options->file,
                 "Ids separated by spaces, or {\"ids\": [...]} per line; none or -: standard input");
  app.add_flag("--special", options->special, "Show special tokens in the text");
  app.add_flag("--json", options->json, "Print {\"text\": ...} per document");
  return [options] { return detokenize(*options); };
}

}  // namespace retort::cli
