#pragma once
// Texts that grow together: one pass takes prompts of any length and the last tokens of all others.
//
// Shape legend: N texts, V vocabulary.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "retort/eval/page_pool.h"
#include "retort/eval/text_weights.h"
#include "retort/model/tokens.h"
#include "retort/ops/paged_attention.h"

namespace retort::eval {

/// A text and what a decoder remembers of it.
struct GrowingText {
  std::vector<std::int32_t> ids = {};
  std::int64_t most_tokens = 0;                       ///< that it may get
  std::int64_t seen = 0;                              ///< tokens whose keys and values are kept
  bool begun = false;                                 ///< a pass has read it
  std::vector<std::vector<std::int32_t>> pages = {};  ///< by pool
};

/// Room for keys and values.
struct CacheRoom {
  std::int64_t texts = 1;           ///< at once
  std::int64_t longest_tokens = 0;  ///< of a text
  std::int64_t tokens = 0;          ///< of all texts at once
};

class TextDecoder {
 public:
  /// `weights` outlive it.
  TextDecoder(TextWeights& weights, const CacheRoom& room);

  /// Pages of each attention that sees `window` tokens, 0: all.
  static std::int64_t pages_of(const CacheRoom& room, std::int64_t window);

  /// Takes a text in if there is room for `most_tokens` of it.  What it begins with is seen already as far as
  /// earlier texts began so: whole pages, but not its last token.
  bool admit(GrowingText& text);
  void release(GrowingText& text);
  /// Whether `ids` would begin with more that is seen, after a pass of `texts`, than now.
  bool gains_by_waiting(std::span<const std::int32_t> ids, std::span<GrowingText* const> texts) const;

  /// Logits [N, V] after the last id of each text, float32 on the host.  Ids that a text has beyond those
  /// seen are read: the whole prompt at first, later what was added.  On a CPU a row is what the text gets
  /// alone, to the bit.  Collective as those of TextWeights.
  at::Tensor pass(std::span<GrowingText* const> texts);

 private:
  /// What goes through the blocks together: fresh texts, those that go on with several tokens, those with
  /// one.
  struct Batch {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> last_rows;  ///< by text, as given
    std::vector<std::int64_t> fresh_starts{0};
    std::vector<std::int64_t>
        added_starts;  ///< of texts that go on with several tokens; last: the first of one
    std::vector<std::vector<ops::PagedText>> rows;  ///< by pool
    model::TokenLayout layout;
  };

  bool outgrows(const GrowingText& text) const;
  void read_up_to_the_last_tokens(std::span<GrowingText* const> texts);
  void lend(GrowingText& text);
  Batch batch_of(std::span<GrowingText* const> texts);
  at::Tensor hidden_of(const Batch& batch);
  at::Tensor attended(const Batch& batch, std::size_t block, const at::Tensor& qkv_NX,
                      const ops::ScoreRule& rule) const;

  TextWeights& weights_;
  at::Device device_;
  model::RopeFrequencies frequencies_;
  std::vector<PagePool> pools_;
  std::vector<std::int64_t> unreserved_;    ///< pages, by pool
  bool shares_beginnings_ = false;          ///< then there is one pool
  std::vector<std::size_t> pool_of_;        ///< by block
  std::vector<ops::KeyValuePages> caches_;  ///< by block
};

}  // namespace retort::eval
