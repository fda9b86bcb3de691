#include "oracle_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/text/decoded_text.h"

namespace retort::test {

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  const std::string content = base::read_file(file);
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < content.size();) {
    const std::size_t end = content.find('\n', start);
    lines.push_back(content.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::vector<TokenizerCase> read_cases(const std::filesystem::path& file) {
  std::vector<TokenizerCase> cases;
  for (const std::string& text : lines_of(file)) {
    const base::Json line = base::parse_json(text);
    TokenizerCase one;
    if (line.contains("text")) {
      one.text = line.at("text").get<std::string>();
      one.ids_no_special = line.at("ids_no_special").get<std::vector<std::int32_t>>();
    }
    one.ids = line.at("ids").get<std::vector<std::int32_t>>();
    one.decoded = line.at("decoded").get<std::string>();
    one.decoded_with_special = line.at("decoded_with_special").get<std::string>();
    cases.push_back(std::move(one));
  }
  return cases;
}

void expect_decoded_as_it_grows(const text::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  constexpr std::size_t kMostIds = 200;  // for all of them are decoded at each
  text::DecodedText growing(tokenizer);
  std::string settled;
  for (std::size_t count = 1; count <= std::min(ids.size(), kMostIds); ++count) {
    growing.add(ids[count - 1]);
    ASSERT_EQ(growing.text(), tokenizer.decode(std::span(ids).first(count)))
        << "ids: " << testing::PrintToString(std::span(ids).first(count));
    ASSERT_TRUE(growing.text().starts_with(settled));
    settled = growing.text().substr(0, growing.settled_bytes());
  }
}

void expect_cases(const text::Tokenizer& tokenizer, const std::filesystem::path& file, std::size_t at_least) {
  const auto cases = read_cases(file);
  EXPECT_GE(cases.size(), at_least);
  for (const auto& one : cases) {
    if (one.text) {
      EXPECT_EQ(tokenizer.encode(*one.text), one.ids) << "text: " << testing::PrintToString(*one.text);
      EXPECT_EQ(tokenizer.encode(*one.text, false), one.ids_no_special);
    }
    EXPECT_EQ(tokenizer.decode(one.ids), one.decoded) << "ids: " << testing::PrintToString(one.ids);
    EXPECT_EQ(tokenizer.decode(one.ids, false), one.decoded_with_special);
    expect_decoded_as_it_grows(tokenizer, one.ids);
  }
}

std::vector<std::string> read_rows(const std::filesystem::path& file) {
  const std::string content = base::read_file(file);
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < content.size();) {
    std::uint32_t size = 0;
    if (content.size() - at < sizeof size) throw std::runtime_error("cut short: " + file.string());
    std::memcpy(&size, content.data() + at, sizeof size);
    at += sizeof size;
    if (content.size() - at < size) throw std::runtime_error("cut short: " + file.string());
    rows.push_back(content.substr(at, size));
    at += size;
  }
  return rows;
}

std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace retort::test
