#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <limits>
#include <memory>
#include <utility>

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

/// The list of {"ids": [...]} or [...].
class IdsVisitor : public base::JsonVisitor {
 public:
  void scalar(base::Json&& value) override {
    if (list_depth_ == 0) return;
    const bool fits =
        value.is_number_integer() && value >= 0 && value <= std::numeric_limits<std::int32_t>::max();
    if (!fits) throw base::JsonFault{base::join("expected an id, found ", value.dump().substr(0, 40))};
    ids.push_back(value.get<std::int32_t>());
  }
  void begin(base::Json&& empty) override {
    if (list_depth_ > 0) throw base::JsonFault{base::join("expected an id, found ", empty.dump())};
    ++depth_;
    if (empty.is_array() && (depth_ == 1 || (depth_ == 2 && is_ids_))) list_depth_ = depth_;
    has_list = has_list || list_depth_ > 0;
  }
  void key(std::string&& name) override {
    if (depth_ != 1) return;
    is_ids_ = name == "ids";
    has_key = has_key || is_ids_;
  }
  void end() override {
    if (depth_-- == list_depth_) list_depth_ = 0;
  }

  Ids ids;
  bool has_key = false, has_list = false;

 private:
  int depth_ = 0, list_depth_ = 0;  // of the list of ids; 0: not in it
  bool is_ids_ = false;
};

Ids ids_of_json(const std::string& line) {
  constexpr std::size_t kMaxBytes = io::LineReader::kMaxLineBytes;
  IdsVisitor visitor;
  base::visit_json(line, visitor, {.max_bytes = kMaxBytes, .max_values = kMaxBytes});
  if (!visitor.has_list)
    throw base::JsonFault{visitor.has_key ? "expected a list of ids" : "expected the key \"ids\""};
  return std::move(visitor.ids);
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
