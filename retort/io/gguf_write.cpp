#include "retort/io/gguf_write.h"

#include <bit>
#include <cstdio>
#include <set>

#include "retort/base/error.h"
#include "retort/io/gguf_parts.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::InternalError;
using base::ModelError;
using base::require;

constexpr std::size_t kAlignment = 32;
constexpr std::uint32_t kVersion = 3;

// The numbers of types of values in files.
constexpr std::uint32_t kU16 = 2, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Little-endian words and what is made of them.
class Header {
 public:
  template <typename Word>
  void word(Word value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      text_ += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
  void raw(std::string_view bytes) { text_ += bytes; }
  void text(std::string_view value) {
    word(std::uint64_t{value.size()});
    text_ += value;
  }

  void value(std::uint16_t number) { word(number); }
  void value(std::uint32_t number) { word(number); }
  void value(std::int32_t number) { word(static_cast<std::uint32_t>(number)); }
  void value(float number) { word(std::bit_cast<std::uint32_t>(number)); }
  void value(bool flag) { text_ += flag ? '\1' : '\0'; }
  void value(const std::string& value) { text(value); }

  void pad() { text_.resize(aligned(text_.size()), '\0'); }
  const std::string& bytes() const { return text_; }

 private:
  std::string text_;
};

constexpr std::uint32_t type_of(std::uint16_t) {
  return kU16;
}
constexpr std::uint32_t type_of(std::uint32_t) {
  return kU32;
}
constexpr std::uint32_t type_of(std::int32_t) {
  return kI32;
}
constexpr std::uint32_t type_of(float) {
  return kF32;
}
constexpr std::uint32_t type_of(bool) {
  return kBool;
}
std::uint32_t type_of(const std::string&) {
  return kString;
}

template <typename T>
void write_value(Header& header, const T& value) {
  header.word(type_of(value));
  header.value(value);
}

template <typename T>
void write_value(Header& header, const std::vector<T>& values) {
  header.word(kArray);
  header.word(type_of(T{}));
  header.word(std::uint64_t{values.size()});
  for (const T& value : values) header.value(value);
}

void write_tensor_info(Header& header, const GgufTensorToWrite& tensor, std::size_t offset) {
  header.text(tensor.name);
  header.word(static_cast<std::uint32_t>(tensor.shape.size()));
  for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent)
    header.word(static_cast<std::uint64_t>(*extent));
  header.word(ggml_number(tensor.type));
  header.word(std::uint64_t{offset});
}

Header make_header(const GgufEntries& entries, std::span<const GgufTensorToWrite> tensors) {
  Header header;
  std::set<std::string_view> names;
  const auto require_fresh = [&](const std::string& name) {
    require<InternalError>(names.insert(name).second, "write_gguf: ", quote(name), " is given twice.");
  };
  header.raw("GGUF");
  header.word(kVersion);
  header.word(std::uint64_t{tensors.size()});
  header.word(std::uint64_t{entries.size()});
  for (const auto& [key, value] : entries) {
    require_fresh(key);
    header.text(key);
    std::visit([&](const auto& of_type) { write_value(header, of_type); }, value);
  }
  std::size_t offset = 0;
  for (const GgufTensorToWrite& tensor : tensors) {
    require_fresh(tensor.name);
    write_tensor_info(header, tensor, offset);
    offset += aligned(gguf_bytes(tensor));
  }
  header.pad();
  return header;
}

void write_tensor(base::AtomicFile& file, const GgufTensorToWrite& tensor) {
  const std::size_t expected = gguf_bytes(tensor);
  std::size_t produced = 0;
  tensor.produce([&](std::span<const std::byte> piece) {
    produced += piece.size();
    require<InternalError>(produced <= expected, "write_gguf: tensor ", quote(tensor.name),
                           " gives more than the announced ", expected, " bytes.");
    file.write(piece.data(), piece.size());
  });
  require<InternalError>(produced == expected, "write_gguf: tensor ", quote(tensor.name), " gives ", produced,
                         " bytes, expected ", expected, ".");
  file.write(std::string(aligned(expected) - expected, '\0'));
}

std::vector<std::span<const GgufTensorToWrite>> plan_parts(std::span<const GgufTensorToWrite> tensors,
                                                           std::size_t max_bytes) {
  std::vector<std::span<const GgufTensorToWrite>> parts;
  std::size_t first = 0, filled = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t size = aligned(gguf_bytes(tensors[i]));
    if (i > first && (size > max_bytes || filled > max_bytes - size)) {
      parts.push_back(tensors.subspan(first, i - first));
      first = i;
      filled = 0;
    }
    filled += size;
  }
  parts.push_back(tensors.subspan(first));
  return parts;
}

base::Path part_path(const base::Path& path, std::size_t part, std::size_t count) {
  char ending[64];
  std::snprintf(ending, sizeof ending, "-%05zu-of-%05zu.gguf", part + 1, count);
  return path.parent_path() / (path.stem().string() + ending);
}

}  // namespace

std::size_t gguf_bytes(const GgufTensorToWrite& tensor) {
  const GgmlBlock block = block_of(tensor.type);
  const auto row = static_cast<std::size_t>(tensor.shape.back());
  require<ModelError>(row % block.values == 0, "tensor ", quote(tensor.name), " has rows of ", row,
                      " values, expected a multiple of ", block.values, ", which a block of ",
                      name(tensor.type), " holds; choose another type.");
  return tensor_bytes(tensor.name, Dtype::u8, tensor.shape) / block.values * block.bytes;
}

void write_gguf(const base::Path& path, const GgufEntries& entries,
                std::span<const GgufTensorToWrite> tensors) {
  const Header header = make_header(entries, tensors);
  base::AtomicFile file(path);
  file.write(header.bytes());
  for (const GgufTensorToWrite& tensor : tensors) write_tensor(file, tensor);
  file.commit();
}

std::vector<base::Path> write_gguf_parts(const base::Path& path, const GgufEntries& entries,
                                         std::span<const GgufTensorToWrite> tensors, std::size_t max_bytes) {
  const auto parts = plan_parts(tensors, max_bytes);
  if (parts.size() == 1) {
    write_gguf(path, entries, tensors);
    return {path};
  }
  require<ModelError>(std::ssize(parts) <= kMaxGgufParts, path.string(), ": would have ", parts.size(),
                      " parts, expected at most ", kMaxGgufParts, "; make them larger.");
  std::vector<base::Path> paths;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    GgufEntries own = part == 0 ? entries : GgufEntries{};
    own.emplace_back("split.no", static_cast<std::uint16_t>(part));
    own.emplace_back("split.count", static_cast<std::uint16_t>(parts.size()));
    own.emplace_back("split.tensors.count", static_cast<std::int32_t>(tensors.size()));
    paths.push_back(part_path(path, part, parts.size()));
    write_gguf(paths.back(), own, parts[part]);
  }
  return paths;
}

}  // namespace retort::io
