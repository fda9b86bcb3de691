#include "retort/io/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <concepts>
#include <limits>

#include "retort/base/error.h"
#include "retort/base/utf8.h"
#include "retort/io/gguf_metadata.h"
#include "retort/io/quote.h"
#include "retort/io/safetensors.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::size_t kFixedBytes = 24;       // magic, version, two counts
constexpr std::size_t kDefaultAlignment = 32;
constexpr const char* kConvertAgain = "; download or convert the file again.";

enum class ValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

// Bytes of a value, at least.
constexpr std::array<std::size_t, 13> kLeastBytes{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

// Reads the header from front to back; nothing is taken that is not there.
class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& where)
      : bytes_(file.first(std::min(file.size(), kMaxHeaderBytes))), file_bytes_(file.size()), where_(where) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  const std::string& where() const { return where_; }

  /// Little-endian.
  template <std::unsigned_integral Word>
  Word word(const char* what) {
    const auto taken = take(sizeof(Word), what);
    Word value = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i)
      value = static_cast<Word>(value | static_cast<Word>(std::to_integer<Word>(taken[i]) << (8 * i)));
    return value;
  }

  std::string text(const char* what) {
    const auto size = word<std::uint64_t>(what);
    require_room(size, what);
    const auto taken = take(static_cast<std::size_t>(size), what);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  /// Throws unless `size` more bytes are there.
  void require_room(std::uint64_t size, const char* what) const {
    if (size <= left()) return;
    require<ModelError>(file_bytes_ > bytes_.size(), where_, ": ", what, " at byte ", at_, " needs ", size,
                        " bytes, but only ", left(), " follow; the file is truncated or damaged",
                        kConvertAgain);
    throw ModelError(base::join(where_, ": ", what, " at byte ", at_, " needs ", size,
                                " bytes, expected a header of at most ", kMaxHeaderBytes, " bytes in all."));
  }

 private:
  std::span<const std::byte> take(std::size_t size, const char* what) {
    require_room(size, what);
    const auto taken = bytes_.subspan(at_, size);
    at_ += size;
    return taken;
  }

  std::span<const std::byte> bytes_;
  std::size_t file_bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};

// 1e-05 and not 9.999999747378752e-06: the number that was written as a float.
double shortest(float value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.begin(), text.end(), value);
  double read = value;
  std::from_chars(text.data(), written.ptr, read);
  return read;
}

ValueType value_type(Reader& in, const std::string& key) {
  const auto number = in.word<std::uint32_t>("the type of a metadata value");
  require<ModelError>(number < kLeastBytes.size(), in.where(), ": metadata ", quote(key), " has type ",
                      number, ", expected 0 to ", kLeastBytes.size() - 1, kConvertAgain);
  return static_cast<ValueType>(number);
}

template <typename Signed, std::unsigned_integral Word>
Json signed_value(Word word) {
  return std::bit_cast<Signed>(word);
}

Json read_scalar(Reader& in, ValueType type, const std::string& key) {
  constexpr const char* kWhat = "a metadata value";
  switch (type) {
    case ValueType::u8:
      return in.word<std::uint8_t>(kWhat);
    case ValueType::i8:
      return signed_value<std::int8_t>(in.word<std::uint8_t>(kWhat));
    case ValueType::u16:
      return in.word<std::uint16_t>(kWhat);
    case ValueType::i16:
      return signed_value<std::int16_t>(in.word<std::uint16_t>(kWhat));
    case ValueType::u32:
      return in.word<std::uint32_t>(kWhat);
    case ValueType::i32:
      return signed_value<std::int32_t>(in.word<std::uint32_t>(kWhat));
    case ValueType::u64:
      return in.word<std::uint64_t>(kWhat);
    case ValueType::i64:
      return signed_value<std::int64_t>(in.word<std::uint64_t>(kWhat));
    case ValueType::f32:
      return shortest(std::bit_cast<float>(in.word<std::uint32_t>(kWhat)));
    case ValueType::f64:
      return std::bit_cast<double>(in.word<std::uint64_t>(kWhat));
    case ValueType::boolean: {
      const auto value = in.word<std::uint8_t>(kWhat);
      require<ModelError>(value <= 1, in.where(), ": metadata ", quote(key), " is ", int{value},
                          ", expected 0 or 1 of a truth value", kConvertAgain);
      return value == 1;
    }
    case ValueType::string:
      return in.text("a metadata text");
    case ValueType::array:
      break;
  }
  throw ModelError(base::join(in.where(), ": metadata ", quote(key),
                              " is a list of lists, expected a plain list", kConvertAgain));
}

// An entry of a list takes a byte of the file and many of memory, so all lists together have `entries_left`.
Json read_value(Reader& in, const std::string& key, std::uint64_t& entries_left) {
  const ValueType type = value_type(in, key);
  if (type != ValueType::array) return read_scalar(in, type, key);
  const ValueType element = value_type(in, key);
  const auto count = in.word<std::uint64_t>("the length of a list");
  require<ModelError>(count <= entries_left, in.where(), ": metadata ", quote(key), " claims ", count,
                      " entries, expected at most ", entries_left, ", as all lists together may have ",
                      kMaxGgufEntries, "; the file is damaged", kConvertAgain);
  entries_left -= count;
  in.require_room(count * kLeastBytes[static_cast<std::size_t>(element)], "a metadata list");
  Json list = Json::array();
  list.get_ref<Json::array_t&>().reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) list.push_back(read_scalar(in, element, key));
  return list;
}

bool is_printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

// A text that is not UTF-8 could be written nowhere.  Tokens are checked when they are used.
bool is_name(std::string_view text, std::size_t most_bytes) {
  return !text.empty() && text.size() <= most_bytes && is_printable(text) && base::is_utf8(text);
}

GgufMetadata read_metadata(Reader& in, std::uint64_t count) {
  GgufMetadata metadata;
  std::uint64_t entries_left = kMaxGgufEntries;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = in.text("a metadata key");
    require<ModelError>(is_name(key, kMaxGgufKeyBytes), in.where(), ": metadata key ", i, " is ", quote(key),
                        ", expected printable text of 1 to ", kMaxGgufKeyBytes, " bytes", kConvertAgain);
    Json value = read_value(in, key, entries_left);
    require<ModelError>(!value.is_string() || base::is_utf8(value.get_ref<const std::string&>()), in.where(),
                        ": metadata ", quote(key), " is not UTF-8", kConvertAgain);
    const auto [entry, fresh] = metadata.emplace(std::move(key), std::move(value));
    require<ModelError>(fresh, in.where(), ": metadata ", quote(entry->first), " stands twice",
                        kConvertAgain);
  }
  return metadata;
}

// The file has the fastest dimension first.
std::vector<std::int64_t> read_shape(Reader& in, const std::string& who) {
  const auto rank = in.word<std::uint32_t>("the rank of a tensor");
  require<ModelError>(rank >= 1 && rank <= kMaxGgufRank, who, ": ", rank, " dimensions, expected 1 to ",
                      kMaxGgufRank, kConvertAgain);
  std::vector<std::int64_t> shape;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto extent = in.word<std::uint64_t>("the shape of a tensor");
    require<ModelError>(extent >= 1 && extent <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}, who,
                        ": a dimension of ", extent, ", expected 1 to ",
                        std::numeric_limits<std::int64_t>::max(), kConvertAgain);
    shape.insert(shape.begin(), static_cast<std::int64_t>(extent));
  }
  return shape;
}

std::size_t stored_bytes(const GgufTensor& tensor, const std::string& who) {
  const GgmlBlock block = block_of(tensor.type);
  const auto row = static_cast<std::size_t>(tensor.shape.back());
  require<ModelError>(row % block.values == 0, who, ": rows of ", row, " values, expected whole blocks of ",
                      block.values, " as ", name(tensor.type), kConvertAgain);
  std::size_t bytes = row / block.values;
  bool fits = !__builtin_mul_overflow(bytes, block.bytes, &bytes);
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i)
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::size_t>(tensor.shape[i]), &bytes);
  std::int64_t values = 1;
  for (const std::int64_t extent : tensor.shape)
    fits = fits && !__builtin_mul_overflow(values, extent, &values);
  require<ModelError>(fits, who, ": the shape needs more bytes than can be counted", kConvertAgain);
  return bytes;
}

void read_tensor(Reader& in, GgufHeader& header, std::size_t alignment) {
  std::string tensor_name = in.text("the name of a tensor");
  require<ModelError>(is_name(tensor_name, kMaxNameBytes), in.where(), ": a tensor is named ",
                      quote(tensor_name), ", expected printable text of 1 to ", kMaxNameBytes, " bytes",
                      kConvertAgain);
  const std::string who = base::join(in.where(), ": tensor ", quote(tensor_name));
  GgufTensor tensor;
  tensor.shape = read_shape(in, who);
  const auto number = in.word<std::uint32_t>("the type of a tensor");
  const auto type = ggml_type(number);
  require<ModelError>(
      type.has_value(), who, " is stored as ", ggml_name(number),
      ", expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 or Q2_K to Q6_K; use a file with "
      "one of these types.");
  tensor.type = *type;
  const auto offset = in.word<std::uint64_t>("the place of a tensor");
  require<ModelError>(offset % alignment == 0, who, " begins at byte ", offset,
                      " of the data, expected a multiple of ", alignment, kConvertAgain);
  tensor.begin = static_cast<std::size_t>(offset);
  tensor.size = stored_bytes(tensor, who);
  require<ModelError>(header.tensors.emplace(tensor_name, tensor).second, who, " stands twice",
                      kConvertAgain);
}

std::size_t alignment_of(const GgufMetadata& metadata, const std::string& where) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return kDefaultAlignment;
  const bool whole = found->second.is_number_unsigned();
  const std::size_t value = whole ? found->second.get<std::size_t>() : 0;
  require<ModelError>(std::has_single_bit(value) && value <= kMaxGgufAlignment, where,
                      ": general.alignment is ", shown(found->second), ", expected a power of two up to ",
                      kMaxGgufAlignment, kConvertAgain);
  return value;
}

// Every tensor lies inside the file, and no two share a byte.
void check_places(const GgufHeader& header, std::size_t data_bytes, const std::string& where) {
  std::vector<const std::pair<const std::string, GgufTensor>*> by_place;
  for (const auto& entry : header.tensors) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(),
            [](const auto* a, const auto* b) { return a->second.begin < b->second.begin; });
  std::size_t covered = 0;
  const std::string* before = nullptr;
  for (const auto* entry : by_place) {
    const auto& [tensor_name, tensor] = *entry;
    require<ModelError>(tensor.begin >= covered, where, ": tensor ", quote(tensor_name), " begins at byte ",
                        tensor.begin, " of the data, inside ", quote(before ? *before : std::string()),
                        ", which ends at ", covered, kConvertAgain);
    require<ModelError>(tensor.begin <= data_bytes && tensor.size <= data_bytes - tensor.begin, where,
                        ": tensor ", quote(tensor_name), " needs bytes ", tensor.begin, " to ",
                        tensor.begin + tensor.size, " of the data, found ", data_bytes,
                        "; the file is truncated", kConvertAgain);
    covered = tensor.begin + tensor.size;
    before = &tensor_name;
  }
}

void check_version(Reader& in) {
  const auto magic = in.word<std::uint32_t>("the magic");
  require<ModelError>(magic == kMagic, in.where(),
                      ": does not begin with \"GGUF\"; this is not a GGUF file or it is damaged.");
  const auto version = in.word<std::uint32_t>("the version");
  const bool big_endian = version != 0 && (version & 0xFFFFU) == 0;
  require<ModelError>(!big_endian, in.where(),
                      ": is a big-endian GGUF file, expected little-endian; convert it with gguf's "
                      "gguf-convert-endian.");
  require<ModelError>(version == 2 || version == 3, in.where(), ": is GGUF version ", version,
                      ", expected 2 or 3; convert the model again with a current llama.cpp.");
}

}  // namespace

GgufHeader parse_gguf(std::span<const std::byte> file, const std::string& where) {
  Reader in(file, where);
  check_version(in);
  const auto tensors = in.word<std::uint64_t>("the number of tensors");
  const auto keys = in.word<std::uint64_t>("the number of metadata keys");
  require<ModelError>(tensors <= kMaxTensors, where, ": claims ", tensors, " tensors, expected at most ",
                      kMaxTensors, "; the file is damaged", kConvertAgain);
  require<ModelError>(keys <= kMaxGgufKeys, where, ": claims ", keys, " metadata keys, expected at most ",
                      kMaxGgufKeys, "; the file is damaged", kConvertAgain);
  GgufHeader header;
  header.metadata = read_metadata(in, keys);
  const std::size_t alignment = alignment_of(header.metadata, where);
  for (std::uint64_t i = 0; i < tensors; ++i) read_tensor(in, header, alignment);
  header.data_start = (in.at() + alignment - 1) / alignment * alignment;
  const std::size_t data_bytes = file.size() > header.data_start ? file.size() - header.data_start : 0;
  check_places(header, data_bytes, where);
  return header;
}

GgufFile GgufFile::open(const base::Path& path) {
  MappedFile file = MappedFile::open(path, "a GGUF file", kFixedBytes);
  GgufHeader header = parse_gguf(file.bytes(), path.string());
  return {std::move(file), std::move(header)};
}

std::span<const std::byte> GgufFile::bytes(const GgufTensor& tensor) const {
  return file_.bytes().subspan(header_.data_start + tensor.begin, tensor.size);
}

}  // namespace retort::io
