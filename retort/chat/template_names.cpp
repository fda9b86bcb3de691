#include "retort/chat/template_names.h"

#include <algorithm>
#include <iterator>

namespace retort::chat {
namespace {

template <typename Names>
bool is_in(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool has_filter(std::string_view name, Dialect dialect) {
  if (name == "regex_replace") return dialect == Dialect::plain;
  static constexpr std::string_view kNames[] = {
      "abs",        "batch",   "capitalize", "count",       "d",      "default", "dictsort",   "e",
      "escape",     "first",   "float",      "forceescape", "indent", "int",     "items",      "join",
      "last",       "length",  "list",       "lower",       "map",    "max",     "min",        "reject",
      "rejectattr", "replace", "reverse",    "round",       "safe",   "select",  "selectattr", "sort",
      "string",     "sum",     "title",      "tojson",      "trim",   "unique",  "upper"};
  return is_in(kNames, name);
}

bool jinja_has_filter(std::string_view name) {
  static constexpr std::string_view kOthers[] = {
      "attr",      "center",   "filesizeformat", "format", "groupby",   "pprint",   "random", "slice",
      "striptags", "truncate", "urlencode",      "urlize", "wordcount", "wordwrap", "xmlattr"};
  return has_filter(name, Dialect::transformers) || is_in(kOthers, name);
}

bool has_test(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "odd",      "even",     "divisibleby", "defined", "undefined", "none",        "boolean", "false",
      "true",     "integer",  "float",       "lower",   "upper",     "string",      "mapping", "number",
      "sequence", "iterable", "callable",    "sameas",  "escaped",   "in",          "==",      "eq",
      "equalto",  "!=",       "ne",          ">",       "gt",        "greaterthan", ">=",      "ge",
      "<",        "lt",       "lessthan",    "<=",      "le"};
  return is_in(kNames, name);
}

bool jinja_has_test(std::string_view name) {
  return has_test(name) || name == "filter" || name == "test";
}

bool python_has_text_method(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
      "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
      "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
      "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
      "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
      "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
      "swapcase",   "title",        "translate",    "upper",   "zfill"};
  return is_in(kNames, name);
}

bool changes_map(std::string_view name) {
  static constexpr std::string_view kNames[] = {"clear", "pop", "popitem", "setdefault", "update"};
  return is_in(kNames, name);
}

bool python_has_map_method(std::string_view name) {
  static constexpr std::string_view kNames[] = {"copy", "fromkeys", "get", "items", "keys", "values"};
  return changes_map(name) || is_in(kNames, name);
}

bool changes_list(std::string_view name) {
  static constexpr std::string_view kNames[] = {"append", "clear", "pop",    "reverse",
                                                "insert", "sort",  "extend", "remove"};
  return is_in(kNames, name);
}

bool python_has_tuple_method(std::string_view name) {
  return name == "count" || name == "index";
}

bool python_has_list_method(std::string_view name) {
  return changes_list(name) || python_has_tuple_method(name) || name == "copy";
}

bool python_has_number_attribute(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "real",     "imag",       "numerator",        "denominator", "conjugate", "bit_length", "bit_count",
      "to_bytes", "from_bytes", "as_integer_ratio", "is_integer",  "hex",       "fromhex"};
  return is_in(kNames, name);
}

bool has_method(std::string_view name) {
  static constexpr std::string_view kTexts[] = {
      "capitalize",   "count",        "endswith", "find",    "format",     "index",  "isalpha", "isascii",
      "isdigit",      "islower",      "isspace",  "isupper", "join",       "lower",  "lstrip",  "partition",
      "removeprefix", "removesuffix", "replace",  "rfind",   "rpartition", "rsplit", "rstrip",  "split",
      "splitlines",   "startswith",   "strip",    "title",   "upper"};
  static constexpr std::string_view kOthers[] = {"copy",   "get",   "items", "keys",
                                                 "values", "count", "index", "cycle"};
  return is_in(kTexts, name) || is_in(kOthers, name) || changes_list(name) || changes_map(name);
}

}  // namespace retort::chat
