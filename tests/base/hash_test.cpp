#include "retort/base/hash.h"

#include <gtest/gtest.h>

#include <fstream>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::base {
namespace {

std::string hex_of(std::string_view bytes) {
  Hasher hasher;
  hasher.update(bytes.data(), bytes.size());
  return hasher.hex();
}

// As `xxh64sum -H3` and `xxh128sum` print them; files and identities of earlier releases hold such values.
TEST(Hash, IsThatOfOtherPrograms) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2U);
  EXPECT_EQ(hash64("abc"), 0x78af5f94892f3950U);
  EXPECT_EQ(hex_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex_of("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, DependsOnTheSeed) {
  EXPECT_EQ(hash64("abc", 0), hash64("abc"));
  EXPECT_NE(hash64("abc", 1), hash64("abc"));
}

TEST(Hash, IsTheSameInPieces) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, text.size()}) {
    Hasher hasher;
    for (std::size_t begin = 0; begin < text.size(); begin += piece) {
      const auto part = text.substr(begin, piece);
      hasher.update(part.data(), part.size());
    }
    EXPECT_EQ(hasher.hex(), hex_of(text)) << piece;
  }
}

TEST(Hash, OfAFileIsThatOfItsBytes) {
  const test::TemporaryDirectory directory;
  const std::string bytes =
      std::string((1 << 20) + 3, 'x') + std::string("\0\n\xff", 3);  // more than a buffer
  std::ofstream(directory / "file", std::ios::binary) << bytes;
  std::ofstream(directory / "empty");

  EXPECT_EQ(hash_file(directory / "file"), hex_of(bytes));
  EXPECT_EQ(hash_file(directory / "empty"), hex_of(""));
  const auto message = test::message_of<StorageError>([&] { hash_file(directory / "none"); });
  // It opens, and its first bytes cannot be read.
  EXPECT_SAYS(test::message_of<StorageError>([] { hash_file("/proc/self/mem"); }),
              "cannot be read: Input/output error");
  EXPECT_SAYS(message, "none: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace retort::base
