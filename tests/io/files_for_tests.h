#pragma once
// Bytes of small safetensors files, sound or not.

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "retort/base/files.h"
#include "support/message_of.h"

namespace retort::test {

/// Length field, header, data: nothing is checked or padded.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xFFU);
  return file + header + data;
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

inline void write_file(const base::Path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

}  // namespace retort::test
