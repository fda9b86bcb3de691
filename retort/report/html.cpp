#include "retort/report/html.h"

namespace retort::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of the valid UTF-8 sequence at the start of `text`, 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return (lead < 0x20 && lead != '\n' && lead != '\t') || lead == 0x7F;
  return lead == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;  // C1: terminals obey these too
}

std::string_view entity(char character) {
  switch (character) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string escape(std::string_view text) {
  std::string result;
  for (const char character : clean_text(text)) {
    const std::string_view replacement = entity(character);
    if (replacement.empty())
      result += character;
    else
      result += replacement;
  }
  return result;
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    result += length == 0 || is_control(character) ? kReplacement : character;
    text.remove_prefix(character.size());
  }
  return result;
}

Html::Html(std::string_view text) : markup_(escape(text)) {}

Html Html::markup(std::string trusted) {
  Html result;
  result.markup_ = std::move(trusted);
  return result;
}

Html& Html::operator+=(const Html& more) {
  markup_ += more.markup_;
  return *this;
}

Html operator+(Html left, const Html& right) {
  left += right;
  return left;
}

Html element(const std::string& tag, const Attributes& attributes, const Html& content) {
  std::string result = "<" + tag;
  for (const auto& [name, value] : attributes) result += " " + name + "=\"" + escape(value) + "\"";
  return Html::markup(result + ">" + content.str() + "</" + tag + ">");
}

Html element(const std::string& tag, const Html& content) {
  return element(tag, {}, content);
}

std::string script_json(const base::Json& value) {
  std::string result;
  for (const char character : value.dump(-1, ' ', true, base::Json::error_handler_t::replace)) {
    switch (character) {
      case '<':
        result += "\\u003c";
        break;
      case '>':
        result += "\\u003e";
        break;
      case '&':
        result += "\\u0026";
        break;
      case '\'':
        result += "\\u0027";
        break;
      default:
        result += character;
    }
  }
  return result;
}

Html json_script(const base::Json& value) {
  return element("script", {{"type", "application/json"}}, Html::markup(script_json(value)));
}

Html details(const std::string& summary, const Html& body) {
  return element("details", element("summary", summary) + body);
}

void Table::row(const std::vector<Html>& cells, const std::string& css_class) {
  Html content;
  for (std::size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
    const Attributes attributes = columns_[i].words ? Attributes{{"class", "words"}} : Attributes{};
    content += i == 0
                   ? element("th", {{"scope", "row"}, {"class", columns_[i].words ? "words" : ""}}, cells[i])
                   : element("td", attributes, cells[i]);
  }
  rows_ += css_class.empty() ? element("tr", content) : element("tr", {{"class", css_class}}, content);
  rows_ += "\n";
}

Html Table::html() const {
  Html head;
  for (const Column& column : columns_) {
    Html title = column.title;
    if (!column.unit.empty()) title += element("span", {{"class", "unit"}}, column.unit);
    head += element("th", {{"scope", "col"}, {"class", column.words ? "words" : ""}}, title);
  }
  const Html caption = caption_.empty() ? Html() : element("caption", caption_);
  return element("div", {{"class", "scroll"}},
                 element("table", caption + element("thead", element("tr", head)) + element("tbody", rows_)));
}

}  // namespace retort::report
