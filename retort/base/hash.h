#pragma once
// Checksums: XXH3, which `xxh64sum -H3` and `xxh128sum` compute too.  They find damage, not malice.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace retort::base {

/// XXH3 64-bit of bytes.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

/// XXH3 128-bit fed in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(const void* bytes, std::size_t size);
  /// 32 hexadecimal digits, as xxh128sum prints them.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// XXH3 128-bit of a whole file; throws StorageError when it cannot be read.
std::string hash_file(const std::filesystem::path& path);

}  // namespace retort::base
