#include "retort/io/text_file.h"

#include <array>

#include "retort/base/error.h"

namespace retort::io {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::string_view format;
  std::size_t offset = 0;
};

// Longer signatures before those that they begin with.
constexpr std::array kSignatures = {
    Signature{"PAR1"sv, "a Parquet file"},
    Signature{"PARE"sv, "an encrypted Parquet file"},
    Signature{"ARROW1"sv, "an Arrow file"},
    Signature{"\xFF\xFF\xFF\xFF"sv, "an Arrow stream"},
    Signature{"Obj\x01"sv, "an Avro file"},
    Signature{"PK\x03\x04"sv, "a zip archive"},
    Signature{"PK\x05\x06"sv, "a zip archive"},
    Signature{"7z\xBC\xAF\x27\x1C"sv, "a 7z archive"},
    Signature{"Rar!\x1A\x07"sv, "a rar archive"},
    Signature{"ustar"sv, "a tar archive", 257},
    Signature{"\xFD"
              "7zXZ\0"sv,
              "an xz file"},
    Signature{"1AY&SY"sv, "a bzip2 file", 4},
    Signature{"\x04\x22\x4D\x18"sv, "an lz4 file"},
    Signature{"\x02\x21\x4C\x18"sv, "an lz4 file"},
    Signature{"\x1F\x8B"sv, "a gzip file"},
    Signature{"\x28\xB5\x2F\xFD"sv, "a zstd file"},
    Signature{"\xFF\x06\0\0sNaPpY"sv, "a snappy file"},
    Signature{"%PDF-"sv, "a PDF"},
    Signature{"\x89PNG\r\n"sv, "a PNG image"},
    Signature{"\xFF\xD8\xFF"sv, "a JPEG image"},
    Signature{"GGUF"sv, "a GGUF model"},
    Signature{"SQLite format 3\0"sv, "an SQLite database"},
    Signature{"\x89HDF\r\n"sv, "an HDF5 file"},
    Signature{"\x93NUMPY"sv, "a NumPy array"},
    Signature{"\x80\x02"sv, "a pickle"},
    Signature{"\x80\x03"sv, "a pickle"},
    Signature{"\x80\x04"sv, "a pickle"},
    Signature{"\x80\x05"sv, "a pickle"},
    Signature{"\x7F"
              "ELF"sv,
              "a program"},
    Signature{"\xFF\xFE\0\0"sv, "text in UTF-32"},
    Signature{"\0\0\xFE\xFF"sv, "text in UTF-32"},
    Signature{"\xFF\xFE"sv, "text in UTF-16"},
    Signature{"\xFE\xFF"sv, "text in UTF-16"},
};

// A safetensors file begins with the length of its header, 8 bytes of which the highest are zero, and "{".
bool is_safetensors(std::string_view bytes) {
  return bytes.size() > 9 && bytes.substr(4, 4) == "\0\0\0\0"sv && bytes[8] == '{' &&
         bytes.find('\0') != bytes.npos;
}

}  // namespace

std::string binary_format(std::string_view first_bytes) {
  if (is_safetensors(first_bytes)) return "a safetensors file";  // its length may begin like another format
  for (const auto& signature : kSignatures)
    if (first_bytes.size() >= signature.offset &&
        first_bytes.substr(signature.offset).starts_with(signature.bytes))
      return std::string(signature.format);
  return "";
}

std::string why_not_text(std::string_view first_bytes) {
  const auto format = binary_format(first_bytes);
  if (!format.empty()) return format;
  const auto nul = first_bytes.find('\0');
  return nul == first_bytes.npos ? "" : base::join("binary data (a NUL byte at byte ", nul, ")");
}

}  // namespace retort::io
