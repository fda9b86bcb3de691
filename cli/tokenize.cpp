#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <iostream>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/print.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/parallel.h"
#include "retort/data/file_form.h"
#include "retort/data/records.h"
#include "retort/text/tokenizer.h"

namespace retort::cli {
namespace {

constexpr const char* kStandardInput = "/dev/stdin";

struct TokenizeOptions {
  std::string tokenizer;
  std::vector<std::string> files;
  std::string field;
  std::string separator;
  bool no_special = false;
  bool json = false;
  unsigned threads = base::usable_processors();
};

std::string line_of(const std::vector<std::int32_t>& ids, bool json) {
  std::string line = json ? "{\"ids\": [" : "";
  std::array<char, 16> digits;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    line += i == 0 ? "" : json ? ", " : " ";
    line.append(digits.data(), std::to_chars(digits.begin(), digits.end(), ids[i]).ptr);
  }
  return line + (json ? "]}\n" : "\n");
}

// Collects documents, encodes as many at once as there are threads, and prints their lines in order.
class Printer {
 public:
  Printer(const text::Tokenizer& tokenizer, const TokenizeOptions& options)
      : tokenizer_(tokenizer), options_(options) {}

  void add(std::string document) {
    waiting_bytes_ += document.size();
    waiting_.push_back(std::move(document));
    if (waiting_bytes_ >= kBytesOfThread * options_.threads) print();
  }
  void print() {
    const std::vector<std::string> documents = std::exchange(waiting_, {});
    waiting_bytes_ = 0;
    std::vector<std::string> lines(documents.size());
    base::parallel_for(documents.size(), options_.threads, [&](std::size_t i) {
      lines[i] = line_of(tokenizer_.encode(documents[i], !options_.no_special), options_.json);
    });
    for (const std::string& line : lines) std::cout << line;
  }

 private:
  static constexpr std::size_t kBytesOfThread = std::size_t{1} << 20;

  const text::Tokenizer& tokenizer_;
  const TokenizeOptions& options_;
  std::vector<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
};

void read_all(const TokenizeOptions& options, Printer& printer) {
  data::SourceOptions source;
  source.separator = unescaped(options.separator);
  if (!options.field.empty()) source.field = options.field;
  const auto files = options.files.empty() ? std::vector<std::string>{kStandardInput} : options.files;
  for (const std::string& name : files) {
    const base::Path path = name == "-" ? kStandardInput : name;
    base::require<base::DataError>(std::filesystem::exists(path), name,
                                   ": there is no such file; check the path.");
    base::require<base::DataError>(!std::filesystem::is_directory(path), name,
                                   ": is a directory; name its files.");
    const bool by_form = options.field.empty() || data::is_parquet(path);
    const auto records = by_form ? data::open_records(source, path) : data::open_jsonl(source, path);
    std::string document;
    for (auto record = records->next(document); record != data::Record::end; record = records->next(document))
      if (record == data::Record::document) printer.add(std::exchange(document, {}));
  }
}

base::ExitCode tokenize(const TokenizeOptions& options) {
  const auto tokenizer = text::Tokenizer::from_file(options.tokenizer);
  Printer printer(tokenizer, options);
  try {
    read_all(options, printer);
  } catch (...) {
    printer.print();  // the documents before the fault
    throw;
  }
  printer.print();
  return base::ExitCode::ok;
}

}  // namespace

Action declare_tokenize(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  echo -n 'Hello' | retort tokenize models/europa-5m\n"
      "  retort tokenize models/europa-5m book.txt --separator '\\n\\n' --json\n"
      "  retort tokenize tokenizer.json data.jsonl --field body --no-special\n"
      "A document per line; a file is one document unless it is cut, .jsonl or .parquet.");
  auto options = std::make_shared<TokenizeOptions>();
  app.add_option("TOKENIZER", options->tokenizer, "Model directory, GGUF file or tokenizer.json")->required();
  app.add_option("FILE", options->files,
                 "Text or .jsonl, plain, .gz or .zst, or .parquet; none or -: standard input");
  app.add_option("--field", options->field,
                 "Files are JSONL or Parquet, and this key or column holds the text (default: text)");
  app.add_option("--separator", options->separator,
                 "Plain text: cut documents here (\\n and \\t are understood)");
  app.add_flag("--no-special", options->no_special, "Without what the post-processor adds");
  app.add_flag("--json", options->json, "Print {\"ids\": [...]} per document");
  app.add_option("--threads", options->threads, "Documents encoded at once (by default: one per processor)")
      ->check(CLI::Range(1U, 1024U));
  return [options] { return tokenize(*options); };
}

}  // namespace retort::cli
