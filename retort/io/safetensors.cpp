#include "retort/io/safetensors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/quote.h"
#include "retort/io/recognise.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr std::size_t kLengthBytes = 8;
constexpr int kHeaderDepth = 8;
constexpr const char* kExportAgain = "; download or export the file again.";

std::size_t header_length(std::span<const std::byte> file, const std::string& where) {
  require<ModelError>(file.size() >= kLengthBytes, where, ": ", file.size(),
                      " bytes, expected a safetensors file with a length field of 8 bytes", kExportAgain);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  require<ModelError>(length <= kMaxHeaderBytes, where, ": the header claims ", length,
                      " bytes, expected at most ", kMaxHeaderBytes,
                      "; this is not a safetensors file or it is damaged.");
  require<ModelError>(length <= file.size() - kLengthBytes, where, ": the header claims ", length,
                      " bytes but only ", file.size() - kLengthBytes, " follow; the file is truncated",
                      kExportAgain);
  return static_cast<std::size_t>(length);
}

Json header_json(std::string_view text, const std::string& where) {
  // The JSON reader would skip a byte-order mark and stop at a zero byte: both could hide a second file
  // inside.
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  require<ModelError>(
      start != std::string_view::npos && text[start] == '{', where,
      ": the header does not begin with \"{\"; this is not a safetensors file or it is damaged.");
  const std::size_t zero = text.find('\0');
  require<ModelError>(zero == std::string_view::npos, where, ": byte ", zero + kLengthBytes,
                      " of the header is zero, expected JSON", kExportAgain);
  try {
    return base::parse_json(text, {.max_bytes = kMaxHeaderBytes, .max_depth = kHeaderDepth});
  } catch (const base::JsonFault& fault) {
    throw ModelError(base::join(where, ": the header is not sound JSON at byte ", fault.byte + kLengthBytes,
                                ": ", fault.reason, kExportAgain));
  }
}

std::size_t unsigned_value(const Json& value, const std::string& who, const char* what) {
  require<ModelError>(value.is_number_unsigned(), who, ": ", what, " holds ", shown(value),
                      ", expected whole numbers of at least 0", kExportAgain);
  return value.get<std::size_t>();
}

const Json& field(const Json& entry, const char* key, bool right_type, const std::string& who) {
  require<ModelError>(right_type, who, ": the header entry lacks a proper \"", key, "\"", kExportAgain);
  return entry[key];
}

bool has_array(const Json& entry, const char* key) {
  return entry.contains(key) && entry[key].is_array();
}

std::vector<std::int64_t> parse_shape(const Json& entry, const std::string& who) {
  const Json& json = field(entry, "shape", has_array(entry, "shape"), who);
  require<ModelError>(json.size() <= kMaxRank, who, ": ", json.size(), " dimensions, expected at most ",
                      kMaxRank, ".");
  std::vector<std::int64_t> shape;
  for (const Json& extent : json) {
    const std::size_t value = unsigned_value(extent, who, "shape");
    require<ModelError>(value <= std::size_t{std::numeric_limits<std::int64_t>::max()}, who, ": shape holds ",
                        value, ", which is too large", kExportAgain);
    shape.push_back(static_cast<std::int64_t>(value));
  }
  return shape;
}

TensorInfo parse_tensor(std::string_view tensor_name, const Json& entry, const std::string& who) {
  require<ModelError>(entry.is_object() && entry.size() == 3, who,
                      ": the header entry is not an object of dtype, shape and data_offsets", kExportAgain);
  TensorInfo info;
  const Json& dtype = field(entry, "dtype", entry.contains("dtype") && entry["dtype"].is_string(), who);
  const auto parsed = parse_dtype(dtype.get_ref<const std::string&>());
  require<ModelError>(parsed.has_value(), who, ": dtype ", quote(dtype.get_ref<const std::string&>()),
                      " is not supported; save the model as BF16, F16 or F32.");
  info.dtype = *parsed;
  info.shape = parse_shape(entry, who);
  const Json& offsets = field(entry, "data_offsets", has_array(entry, "data_offsets"), who);
  require<ModelError>(offsets.size() == 2, who, ": data_offsets has ", offsets.size(), " numbers, expected 2",
                      kExportAgain);
  info.begin = unsigned_value(offsets[0], who, "data_offsets");
  info.end = unsigned_value(offsets[1], who, "data_offsets");
  require<ModelError>(info.begin <= info.end, who, ": data_offsets end at ", info.end,
                      " before they begin at ", info.begin, kExportAgain);
  std::size_t expected = 0;
  try {
    expected = tensor_bytes(tensor_name, info.dtype, info.shape);
  } catch (const ModelError&) {
    throw ModelError(base::join(who, ": the shape needs more bytes than can be counted", kExportAgain));
  }
  require<ModelError>(info.end - info.begin == expected, who, ": data_offsets span ", info.end - info.begin,
                      " bytes, expected ", expected, " from dtype and shape", kExportAgain);
  return info;
}

void parse_metadata(const Json& json, SafetensorsHeader& header, const std::string& where) {
  if (json.is_null()) return;  // some writers' word for none, which other readers take
  require<ModelError>(json.is_object(), where, ": __metadata__ is not an object of strings", kExportAgain);
  for (const auto& [key, value] : json.items()) {
    require<ModelError>(value.is_string(), where, ": __metadata__ ", quote(key), " is not a string",
                        kExportAgain);
    header.metadata[key] = value.get<std::string>();
  }
}

void check_name(const std::string& tensor_name, const std::string& where) {
  const bool printable = std::none_of(tensor_name.begin(), tensor_name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  require<ModelError>(!tensor_name.empty() && tensor_name.size() <= kMaxNameBytes && printable, where,
                      ": tensor name ", quote(tensor_name), " is empty, longer than ", kMaxNameBytes,
                      " bytes or holds control characters", kExportAgain);
}

// Every byte of the data belongs to exactly one tensor: no overlap, no hole, nothing after the last.
void check_coverage(const SafetensorsHeader& header, std::size_t data_bytes, const std::string& where) {
  using Entry = std::pair<const std::string, TensorInfo>;
  std::vector<const Entry*> order;
  for (const Entry& entry : header.tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::size_t covered = 0;
  for (const Entry* entry : order) {
    require<ModelError>(entry->second.begin == covered, where, ": tensor ", quote(entry->first),
                        ": begins at byte ", entry->second.begin, ", expected ", covered,
                        ", so tensors overlap or leave a hole", kExportAgain);
    covered = entry->second.end;
  }
  require<ModelError>(covered == data_bytes, where, ": the tensors need ", covered,
                      " bytes after the header, found ", data_bytes,
                      covered > data_bytes ? "; the file is truncated" : "; something follows them",
                      kExportAgain);
}

}  // namespace

std::size_t tensor_bytes(std::string_view name, Dtype dtype, std::span<const std::int64_t> shape) {
  std::size_t count = 1;
  bool fits = true;
  for (const std::int64_t extent : shape)
    fits = fits && extent >= 0 && !__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count);
  fits = fits && !__builtin_mul_overflow(count, item_bytes(dtype), &count);
  require<ModelError>(fits, "tensor ", quote(name),
                      ": the shape is negative or needs more bytes than can be counted.");
  return count;
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& where) {
  const std::size_t length = header_length(file, where);
  const auto* text = reinterpret_cast<const char*>(file.data() + kLengthBytes);
  const Json json = header_json({text, length}, where);
  require<ModelError>(json.size() <= kMaxTensors, where, ": ", json.size(), " tensors, expected at most ",
                      kMaxTensors, ".");
  SafetensorsHeader header;
  header.data_start = kLengthBytes + length;
  for (const auto& [key, entry] : json.items()) {
    if (key == "__metadata__") {
      parse_metadata(entry, header, where);
      continue;
    }
    check_name(key, where);
    header.tensors.emplace(key, parse_tensor(key, entry, base::join(where, ": tensor ", quote(key))));
  }
  check_coverage(header, file.size() - header.data_start, where);
  return header;
}

SafetensorsFile SafetensorsFile::open(const base::Path& path) {
  constexpr const char* kFormat = "a safetensors file";
  MappedFile file = MappedFile::open(path, kFormat, kLengthBytes);
  try {
    SafetensorsHeader header = parse_safetensors(file.bytes(), path.string());
    return {std::move(file), std::move(header)};
  } catch (const ModelError&) {
    refuse_other_format({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                        path.string(), kFormat);
    throw;
  }
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  const auto found = tensors().find(name);
  require<ModelError>(found != tensors().end(), path().string(), ": has no tensor ", quote(name), ".");
  const TensorInfo& info = found->second;
  return file_.bytes().subspan(header_.data_start + info.begin, info.end - info.begin);
}

}  // namespace retort::io
