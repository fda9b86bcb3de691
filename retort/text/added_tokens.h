#pragma once
// Added tokens: strings that are cut out of the text before the model sees it.  Leftmost match first, longest
// first.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace retort::text {

struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< takes white space on its left along
  bool rstrip = false;
  bool normalized = false;  ///< looked for, normalized itself, in normalized text
  bool special = false;
};

/// A part of a text: an added token, or what is left for the model (`token` is null).
struct TextPart {
  std::string_view text;
  const AddedToken* token = nullptr;
};

class AddedTokenFinder {
 public:
  /// Looks for `pattern`, which stands for `token`; patterns are not empty.
  void add(std::string_view pattern, const AddedToken& token);
  /// Cuts `text` into parts, none of them empty.  The tokens given to add() must outlive the parts.
  std::vector<TextPart> cut(std::string_view text) const;

 private:
  struct Match {
    std::size_t begin;
    std::size_t end;
    const AddedToken* token;
  };
  // The next match at or after `from`; its token is null if there is none.
  Match next_match(std::string_view text, std::size_t from) const;
  Match longest_at(std::string_view text, std::size_t begin) const;

  // A trie: (node, byte) -> node; node 0 is the root.
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<const AddedToken*> ends_ = {nullptr};
  std::array<bool, 256> starts_{};
};

}  // namespace retort::text
