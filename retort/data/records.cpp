#include "retort/data/records.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/utf8.h"
#include "retort/data/conversations.h"
#include "retort/data/file_form.h"
#include "retort/data/json_line.h"
#include "retort/data/parquet_records.h"
#include "retort/data/utf8_text.h"
#include "retort/io/compressed.h"
#include "retort/io/quote.h"
#include "retort/text/unicode.h"

namespace retort::data {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(kWhiteSpace) == std::string_view::npos;
}

class JsonlRecords : public RecordReader {
 public:
  JsonlRecords(const SourceOptions& source, const base::Path& path)
      : lines_(path, kMaxDocumentBytes),
        field_(source.field),
        chat_(source.chat),
        skip_bad_lines_(source.skip_bad_lines) {}

  Record next(std::string& text) override {
    if (!lines_.next(line_)) return Record::end;
    std::string_view line = line_;
    const bool marked = lines_.line_number() == 1 && line.substr(0, 3) == kByteOrderMark;
    if (marked) line.remove_prefix(kByteOrderMark.size());
    if (is_blank(line)) return Record::blank;
    try {
      text = chat_ ? conversation_text(base::parse_json(line, {.max_bytes = kMaxDocumentBytes}), field_)
                   : parse(line);
      return Record::document;
    } catch (const base::JsonFault& fault) {
      if (skip_bad_lines_) return Record::bad;
      refuse(fault, marked ? kByteOrderMark.size() : 0);
    }
  }

  bool skip() override { return lines_.next(line_); }

 private:
  std::string parse(std::string_view line) const {
    JsonLine json = read_json_line(line, field_);
    if (!json.root.is_object())
      throw base::JsonFault{base::join("expected an object, found ", kind_of(json.root)), 0};
    if (json.member && json.member->is_string()) return std::move(json.member->get_ref<std::string&>());
    if (const std::string chat = chat_in(line); !chat.empty())
      throw base::JsonFault{
          base::join("expected text as \"", field_, "\", found a chat as ", io::quote(chat), kNoChats), 0};
    if (!json.member)
      throw base::JsonFault{base::join("expected the key \"", field_, "\", found ", in_a_row(json.names),
                                       "; field (--field) says which key holds the text"),
                            0};
    throw base::JsonFault{base::join("expected a string as \"", field_, "\", found ", kind_of(*json.member)),
                          0};
  }

  // The key under which an object has a chat: turns with who speaks and what they say; empty without one.  A
  // line too long for a chat is not parsed again.
  static std::string chat_in(std::string_view line) {
    constexpr std::size_t kMostBytes = std::size_t{1} << 20;
    if (line.size() > kMostBytes) return {};
    const auto object = base::parse_json(line);
    for (const auto& [name, turns] : object.items()) {
      if (!turns.is_array() || turns.empty() || !turns.front().is_object()) continue;
      const base::Json& turn = turns.front();
      if ((turn.contains("role") && turn.contains("content")) ||
          (turn.contains("from") && turn.contains("value")))
        return name;
    }
    return {};
  }

  static std::string in_a_row(const std::vector<std::string>& names) {
    std::string row;
    for (const auto& name : names) row += base::join(row.empty() ? "" : ", ", io::quote(name));
    return row.empty() ? "none" : row;
  }

  static std::string kind_of(const base::Json& json) {
    return json.is_null() ? "null"
                          : base::join(json.is_array() || json.is_object() ? "an " : "a ", json.type_name());
  }

  [[noreturn]] void refuse(const base::JsonFault& fault, std::size_t shift) const {
    const std::size_t byte = fault.byte + shift;
    throw base::DataError(base::join(lines_.path().string(), ", line ", lines_.line_number(), ", byte ",
                                     lines_.byte_offset() + byte, " (byte ", byte, " of the line): ",
                                     fault.reason, "; correct the line or let the recipe skip bad lines."));
  }

  io::LineReader lines_;
  std::string field_;
  bool chat_;
  bool skip_bad_lines_;
  std::string line_;
};

class TextRecords : public RecordReader {
 public:
  TextRecords(const SourceOptions& source, const base::Path& path)
      : bytes_(path),
        separator_(source.separator),
        skip_bad_documents_(source.skip_bad_lines),
        chunk_(kChunkBytes) {
    base::require<base::UsageError>(base::is_utf8(separator_), "source '", source.name,
                                    "': expected a separator in UTF-8, found ", io::quote(separator_), ".");
  }

  Record next(std::string& text) override {
    if (!next_piece()) return Record::end;
    std::string_view piece = std::string_view(buffer_).substr(begin_, length_);
    std::uint64_t offset = erased_bytes_ + begin_;
    if (offset == 0 && piece.starts_with(kByteOrderMark)) {
      piece.remove_prefix(kByteOrderMark.size());
      offset = kByteOrderMark.size();
    }
    // What is left between separators is no document, but a file that is not cut is one, whatever it holds.
    if (!separator_.empty() && is_blank(piece)) return Record::blank;
    if (skip_bad_documents_ && text::valid_utf8_prefix(piece) < piece.size()) return Record::bad;
    require_utf8(bytes_.path(), piece, offset);
    text.assign(piece);
    return Record::document;
  }

  bool skip() override { return next_piece(); }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

  // Sets begin_ and length_ to the next piece of buffer_.
  bool next_piece() {
    if (finished_) return false;
    begin_ = std::exchange(next_begin_, 0);
    std::size_t searched = begin_;
    for (;;) {
      const std::size_t found = separator_.empty() ? std::string::npos : buffer_.find(separator_, searched);
      if (found != std::string::npos) {
        length_ = found - begin_;
        next_begin_ = found + separator_.size();
        return true;
      }
      erased_bytes_ += begin_;
      buffer_.erase(0, std::exchange(begin_, 0));
      searched = buffer_.size() - std::min(buffer_.size(), separator_.size());
      if (!fill()) break;
    }
    length_ = buffer_.size();
    return finished_ = true;
  }

  bool fill() {
    const std::size_t count = bytes_.read(chunk_);
    buffer_.append(chunk_.data(), count);
    base::require<base::DataError>(buffer_.size() <= kMaxDocumentBytes, bytes_.path().string(),
                                   ": expected documents of at most ", kMaxDocumentBytes,
                                   " bytes, found a longer one; give the source a separator that cuts it.");
    return count > 0;
  }

  io::ByteReader bytes_;
  std::string separator_;
  bool skip_bad_documents_;
  std::vector<char> chunk_;
  std::string buffer_;
  std::uint64_t erased_bytes_ = 0;  // of the text before buffer_
  std::size_t begin_ = 0;
  std::size_t length_ = 0;
  std::size_t next_begin_ = 0;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<RecordReader> open_jsonl(const SourceOptions& source, const base::Path& path) {
  return std::make_unique<JsonlRecords>(source, path);
}

std::unique_ptr<RecordReader> open_records(const SourceOptions& source, const base::Path& path) {
  switch (form_of(source, path)) {
    case FileForm::jsonl:
      return open_jsonl(source, path);
    case FileForm::parquet:
      return source.chat ? open_parquet_chats(source, path) : open_parquet(source, path);
    case FileForm::text:
      break;
  }
  base::require<base::DataError>(!source.chat, "source '", source.name,
                                 "': expected conversations in JSON lines or Parquet, found plain text in ",
                                 path.string(), "; leave chat out, or name the file .jsonl.");
  return std::make_unique<TextRecords>(source, path);
}

}  // namespace retort::data
