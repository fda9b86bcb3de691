#pragma once
// The vocabulary of a tokenizer that stands in another format than tokenizer.json.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace retort::io {

/// A file that has more is taken for damaged.
inline constexpr std::int64_t kMaxVocabularyTokens = 1 << 22;

/// The numbers are those of SentencePiece, which tokenizer.ggml.token_type shares.
enum class TokenKind {
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct Vocabulary {
  std::vector<std::string> tokens;  ///< by id
  std::vector<TokenKind> kinds;     ///< as many as tokens
  std::vector<double> scores;       ///< as many as tokens, or none

  /// Whether the token only fills the vocabulary up to the rows of an embedding.
  bool is_padding(std::size_t id) const;
  bool has_bytes() const;
};

/// Of those that are found in the text first.  A file that has more is taken for damaged.
inline constexpr std::size_t kMaxAddedTokens = std::size_t{1} << 18;

/// Throws ModelError where a token stands twice; `list` names the list of tokens in the file `where`.
void require_distinct(const Vocabulary& vocabulary, const std::string& where, std::string_view list);

/// Two tokens that become one.
using Merge = std::pair<std::string_view, std::string_view>;

/// Bounds the search for the pairs of tokens that make another one.  Each way to cut a token is looked up by
/// its two parts, so long tokens take the square of their length; and tokens that are made of each other have
/// many pairs.  Throws ModelError where all tokens would need far more time or memory than those of any
/// model.
class MergeBudget {
 public:
  /// `where` names the file, and is not copied.
  explicit MergeBudget(const std::string& where) : where_(where) {}
  /// Before the ways to cut `token` are looked up.
  void compare(std::string_view token);
  /// Before a pair that makes `token` is kept.
  void merge(std::string_view token);

 private:
  void take(std::size_t& taken, std::size_t bytes, std::size_t most) const;

  const std::string& where_;
  std::size_t compared_ = 0, merged_ = 0;
};

/// SentencePiece joins the neighbours that make the token of the highest score.  As merges by rank that are
/// all pairs of tokens that make a token, best score first and then by id: the order of the converters that
/// wrote tokenizer.json of such models.  Only normal tokens are joined or made.  Pairs live as long as the
/// vocabulary.  Throws ModelError as MergeBudget does; `where` names the file.
std::vector<Merge> merges_by_score(const Vocabulary& vocabulary, const std::string& where);

}  // namespace retort::io
