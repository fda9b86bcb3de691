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
#include "retort/model/block.h"
#include "retort/model/head.h"
#include "retort/model/tokens.h"
#include "retort/ops/packed_linear.h"
#include "retort/ops/paged_attention.h"
#include "retort/shard/parameters.h"

namespace retort::eval {

/// A text and what a decoder remembers of it.
struct GrowingText {
  std::vector<std::int32_t> ids = {};
  std::int64_t most_tokens = 0;                       ///< that it may get
  std::int64_t seen = 0;                              ///< tokens whose keys and values are kept
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
  /// Packs the weights where they are resident.  `parameters` outlive it.  Collective over the ranks that
  /// gather units from each other.
  TextDecoder(shard::Parameters& parameters, const CacheRoom& room);

  /// Pages of each attention that sees `window` tokens, 0: all.
  static std::int64_t pages_of(const CacheRoom& room, std::int64_t window);

  /// Takes a text in if there is room for `most_tokens` of it.
  bool admit(GrowingText& text);
  void release(GrowingText& text);

  /// Logits [N, V] after the last id of each text, float32 on the host.  Ids that a text has beyond those
  /// seen are read: the whole prompt at first, later what was added.  On a CPU a row is what the text gets
  /// alone, to the bit.  Collective as the constructor.
  at::Tensor pass(std::span<GrowingText* const> texts);

 private:
  /// What goes through the blocks together: fresh texts first.
  struct Batch {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> last_rows;  ///< by text, as given
    std::vector<std::int64_t> fresh_starts{0};
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
  at::Tensor logits_of(const at::Tensor& hidden_ND);
  /// Packs the weights of a block where they do not stay in memory; `act` may use them while it runs.
  void with_weights(std::size_t block, const std::function<void(const model::BlockWeights&)>& act);
  void pack_head();

  shard::Parameters& parameters_;
  at::Device device_;
  model::RopeFrequencies frequencies_;
  std::vector<PagePool> pools_;
  std::vector<std::int64_t> unreserved_;      ///< pages, by pool
  std::vector<std::size_t> pool_of_;          ///< by block
  std::vector<ops::KeyValuePages> caches_;    ///< by block
  std::vector<model::BlockWeights> weights_;  ///< of all blocks, where they stay in memory
  at::Tensor final_norm_D_;
  ops::PackedLinear head_;
};

}  // namespace retort::eval
