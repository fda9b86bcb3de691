#include "retort/parquet/arrow/json_values.h"

#include <arrow/type.h>
#include <arrow/util/float16.h>

#include "retort/base/printable.h"
#include "retort/base/utf8.h"
#include "retort/parquet/arrow/iso_time.h"

namespace retort::parquet {
namespace {

using arrow::Type;
using base::Json;

bool has_json(Type::type id) {
  switch (id) {
    case Type::NA:
    case Type::BOOL:
    case Type::INT8:
    case Type::INT16:
    case Type::INT32:
    case Type::INT64:
    case Type::UINT8:
    case Type::UINT16:
    case Type::UINT32:
    case Type::UINT64:
    case Type::HALF_FLOAT:
    case Type::FLOAT:
    case Type::DOUBLE:
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::STRING_VIEW:
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIMESTAMP:
    case Type::TIME32:
    case Type::TIME64:
    case Type::DECIMAL32:
    case Type::DECIMAL64:
    case Type::DECIMAL128:
    case Type::DECIMAL256:
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
    case Type::MAP:
    case Type::STRUCT:
    case Type::DICTIONARY:
      return true;
    default:
      return false;
  }
}

template <typename Array>
const Array& as(const arrow::Array& array) {
  return static_cast<const Array&>(array);
}

template <typename Array>
auto number(const arrow::Array& array, std::int64_t i) {
  return as<Array>(array).Value(i);
}

arrow::TimeUnit::type unit_of(const arrow::Array& array) {
  return static_cast<const arrow::TimeType&>(*array.type()).unit();
}

std::string timestamp(const Place& place, const arrow::Array& array, std::int64_t i) {
  const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
  return iso_timestamp(place, number<arrow::TimestampArray>(array, i), type.unit(), !type.timezone().empty());
}

}  // namespace

void require_json_type(const Place& place, const arrow::DataType& type) {
  if (!has_json(type.id()))
    throw base::DataError(base::join(
        place.words(), ": expected texts, numbers, truth values, times, lists or structs, found ",
        base::printable(type.ToString()), "; name the columns that are wanted, or convert this one."));
  if (type.id() == Type::DICTIONARY)
    require_json_type(place, *static_cast<const arrow::DictionaryType&>(type).value_type());
  for (const auto& part : type.fields()) require_json_type(place, *part->type());
}

Json JsonValues::value(const arrow::Array& array, std::int64_t i) {
  if (++made_ > kMostValuesOfRow)
    refuse(place_, base::join("rows of at most ", kMostValuesOfRow, " values"), "a row of more");
  return array.IsNull(i) ? Json(nullptr) : present(array, i);
}

Json JsonValues::present(const arrow::Array& array, std::int64_t i) {
  switch (array.type_id()) {
    case Type::BOOL:
      return number<arrow::BooleanArray>(array, i);
    case Type::INT8:
      return number<arrow::Int8Array>(array, i);
    case Type::INT16:
      return number<arrow::Int16Array>(array, i);
    case Type::INT32:
      return number<arrow::Int32Array>(array, i);
    case Type::INT64:
      return number<arrow::Int64Array>(array, i);
    case Type::UINT8:
      return number<arrow::UInt8Array>(array, i);
    case Type::UINT16:
      return number<arrow::UInt16Array>(array, i);
    case Type::UINT32:
      return number<arrow::UInt32Array>(array, i);
    case Type::UINT64:
      return number<arrow::UInt64Array>(array, i);
    case Type::HALF_FLOAT:
      return arrow::util::Float16::FromBits(number<arrow::HalfFloatArray>(array, i)).ToDouble();
    case Type::FLOAT:
      return static_cast<double>(number<arrow::FloatArray>(array, i));
    case Type::DOUBLE:
      return number<arrow::DoubleArray>(array, i);
    case Type::STRING:
      return text(as<arrow::StringArray>(array).GetView(i));
    case Type::LARGE_STRING:
      return text(as<arrow::LargeStringArray>(array).GetView(i));
    case Type::STRING_VIEW:
      return text(as<arrow::StringViewArray>(array).GetView(i));
    case Type::DATE32:
      return iso_date(place_, number<arrow::Date32Array>(array, i));
    case Type::DATE64:
      return iso_date(place_, days_of(number<arrow::Date64Array>(array, i)));
    case Type::TIMESTAMP:
      return timestamp(place_, array, i);
    case Type::TIME32:
      return iso_time(place_, number<arrow::Time32Array>(array, i), unit_of(array));
    case Type::TIME64:
      return iso_time(place_, number<arrow::Time64Array>(array, i), unit_of(array));
    case Type::DECIMAL32:
      return as<arrow::Decimal32Array>(array).FormatValue(i);
    case Type::DECIMAL64:
      return as<arrow::Decimal64Array>(array).FormatValue(i);
    case Type::DECIMAL128:
      return as<arrow::Decimal128Array>(array).FormatValue(i);
    case Type::DECIMAL256:
      return as<arrow::Decimal256Array>(array).FormatValue(i);
    case Type::LIST: {
      const auto& lists = as<arrow::ListArray>(array);
      return list(*lists.values(), lists.value_offset(i), lists.value_length(i));
    }
    case Type::LARGE_LIST: {
      const auto& lists = as<arrow::LargeListArray>(array);
      return list(*lists.values(), lists.value_offset(i), lists.value_length(i));
    }
    case Type::FIXED_SIZE_LIST: {
      const auto& lists = as<arrow::FixedSizeListArray>(array);
      return list(*lists.values(), lists.value_offset(i), lists.value_length(i));
    }
    case Type::MAP:
      return pairs(as<arrow::MapArray>(array), i);
    case Type::STRUCT:
      return object(as<arrow::StructArray>(array), i);
    case Type::DICTIONARY: {
      const auto& words = as<arrow::DictionaryArray>(array);
      return value(*words.dictionary(), words.GetValueIndex(i));
    }
    default:
      return nullptr;
  }
}

Json JsonValues::text(std::string_view bytes) const {
  if (!base::is_utf8(bytes))
    refuse(place_, "text in UTF-8", base::join("other bytes in ", base::quote(bytes)));
  return std::string(bytes);
}

Json JsonValues::list(const arrow::Array& values, std::int64_t begin, std::int64_t length) {
  Json list = Json::array();
  for (std::int64_t i = begin; i < begin + length; ++i) list.push_back(value(values, i));
  return list;
}

Json JsonValues::pairs(const arrow::MapArray& array, std::int64_t i) {
  Json list = Json::array();
  for (std::int64_t k = array.value_offset(i); k < array.value_offset(i + 1); ++k)
    list.push_back(Json::array({value(*array.keys(), k), value(*array.items(), k)}));
  return list;
}

Json JsonValues::object(const arrow::StructArray& array, std::int64_t i) {
  Json object = Json::object();
  const auto& fields = array.struct_type()->fields();
  for (std::size_t k = 0; k < fields.size(); ++k)
    object[fields[k]->name()] = value(*array.field(static_cast<int>(k)), i);
  return object;
}

}  // namespace retort::parquet
