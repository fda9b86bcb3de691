#pragma once
// Small corpora in a temporary directory, and a tokenizer whose ids can be read back.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/base/random.h"
#include "retort/data/document_reader.h"
#include "retort/data/sequence.h"
#include "support/compress.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::test {

inline constexpr data::SpecialTokens kSpecial{.bos = 1, .eos = 2};
inline constexpr std::int32_t kFirstByteId = 10;

/// One token per byte.
inline std::vector<std::int32_t> encode_bytes(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char c : text) ids.push_back(kFirstByteId + static_cast<unsigned char>(c));
  return ids;
}

inline std::string jsonl(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += base::Json{{"lang", "xx"}, {"text", text}}.dump() + "\n";
  return lines;
}

/// `count` different texts "<prefix><i> ..." of 5 to about `bytes` bytes.
inline std::vector<std::string> numbered_texts(const std::string& prefix, int count,
                                               std::uint64_t bytes = 40) {
  base::Random random(7, base::stream_of(prefix));
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i)
    texts.push_back(prefix + std::to_string(i) + " " + std::string(random.next_below(bytes), 'x') + ".");
  return texts;
}

/// Files of a test, and sources that read them with nothing held out.
class Corpus : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) const {
    const auto path = directory_ / name;
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return path.string();
  }
  data::SourceOptions source(const std::vector<std::string>& paths,
                             const std::string& name = "manuals") const {
    data::SourceOptions options;
    options.name = name;
    options.paths = paths;
    options.held_out.fraction = 0;
    return options;
  }
  static std::vector<data::Document> documents(const data::SourceOptions& source,
                                               data::Split split = data::Split::training) {
    data::DocumentReader reader(source, split);
    std::vector<data::Document> all;
    for (data::Document document; reader.next(document);) all.push_back(document);
    return all;
  }
  static std::vector<std::string> texts(const data::SourceOptions& source,
                                        data::Split split = data::Split::training) {
    std::vector<std::string> all;
    for (const data::Document& document : documents(source, split)) all.push_back(document.text);
    return all;
  }

  TemporaryDirectory directory_;
};

}  // namespace retort::test
