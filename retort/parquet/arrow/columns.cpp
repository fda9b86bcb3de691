#include "retort/parquet/arrow/columns.h"

#include <arrow/type.h>

#include <string>

#include "retort/base/printable.h"
#include "retort/base/units.h"

namespace retort::parquet {
namespace {

using ::parquet::arrow::SchemaField;

constexpr std::size_t kMostNames = 20;  // in a message

bool is_struct(const SchemaField& field) {
  return field.field->type()->id() == arrow::Type::STRUCT;
}

std::vector<std::string> names_of(const std::vector<SchemaField>& fields) {
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.field->name());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i)
    list += base::join(i ? ", " : "", base::quote(names[i]));
  if (names.size() > kMostNames) list += base::join(" and ", names.size() - kMostNames, " more");
  return list.empty() ? "none" : list;
}

// Structs within lists have their parts one field deeper.
const SchemaField& within_lists(const SchemaField& field, bool& in_list) {
  const SchemaField* inner = &field;
  while (!is_struct(*inner) && inner->children.size() == 1) {
    in_list = true;
    inner = &inner->children.front();
  }
  return *inner;
}

// `part`: what of the name is in none of `fields`.
[[noreturn]] void refuse_missing(const OpenedFile& file, std::string_view name, std::string_view part,
                                 const std::vector<SchemaField>& fields) {
  const auto names = names_of(fields);
  const auto near = base::nearest(part, names);
  throw base::DataError(base::join(file.path.string(), ": expected a column ", base::quote(name), ", found ",
                                   listed(names),
                                   near.empty() ? "" : "; did you mean " + base::quote(near) + "?",
                                   near.empty() ? "; name one of these." : ""));
}

const SchemaField* named(const std::vector<SchemaField>& fields, std::string_view name) {
  for (const auto& field : fields)
    if (field.field->name() == name) return &field;
  return nullptr;
}

// The field whose name `rest` is, or begins with before a dot; what follows the dot becomes `rest`.
const SchemaField* step(const std::vector<SchemaField>& fields, std::string_view& rest) {
  if (const auto* whole = named(fields, rest)) {
    rest = {};
    return whole;
  }
  for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.', dot + 1))
    if (const auto* field = named(fields, rest.substr(0, dot))) {
      rest.remove_prefix(dot + 1);
      return field;
    }
  return nullptr;
}

}  // namespace

Asked find_column(const OpenedFile& file, std::string_view name) {
  const auto& columns = file.reader->manifest().schema_fields;
  std::string_view rest = name;
  const SchemaField* field = step(columns, rest);
  if (!field) refuse_missing(file, name, name, columns);
  Asked asked{.column = static_cast<std::size_t>(field - columns.data()), .field = field};
  while (!rest.empty()) {
    const auto& parts = within_lists(*asked.field, asked.in_list).children;
    asked.field = step(parts, rest);
    if (!asked.field) refuse_missing(file, name, rest, parts);
  }
  return asked;
}

std::vector<int> leaves_of(const SchemaField& field) {
  if (field.is_leaf()) return {field.column_index};
  std::vector<int> leaves;
  for (const auto& part : field.children)
    for (const int leaf : leaves_of(part)) leaves.push_back(leaf);
  return leaves;
}

}  // namespace retort::parquet
