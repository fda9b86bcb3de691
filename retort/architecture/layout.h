#pragma once
// A model is a row of units: embedding, blocks, head.  The tensors of a unit lie in one flat buffer of
// elements; this file says where.  Parameters, gradients, moments and masks of a unit all have this one
// layout.
//
//   unit 0       embed_tokens (tied: and model.norm; then there is no head unit)
//   unit 1 + i   block i: input_layernorm | q k v | o | post_attention_layernorm | gate up | down
//   last unit    model.norm | lm_head
//
// Groups between the bars start at a multiple of kAlignment elements; q k v and gate up touch, so that each
// group is one matrix [sum of rows, hidden] as well.  Gaps and the tail are padding, always zero.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/architecture/config.h"

namespace retort::architecture {

/// Elements; 256 bytes even for 2-byte types.
inline constexpr std::int64_t kAlignment = 128;

enum class Role {
  embedding,       ///< model.embed_tokens            [V, D]
  attention_norm,  ///< input_layernorm               [D]
  query,           ///< self_attn.q_proj              [Hq * hd, D]
  key,             ///< self_attn.k_proj              [Hkv * hd, D]
  value,           ///< self_attn.v_proj              [Hkv * hd, D]
  output,          ///< self_attn.o_proj              [D, Hq * hd]
  mlp_norm,        ///< post_attention_layernorm      [D]
  gate,            ///< mlp.gate_proj                 [I, D]
  up,              ///< mlp.up_proj                   [I, D]
  down,            ///< mlp.down_proj                 [D, I]
  final_norm,      ///< model.norm                    [D]
  head,            ///< lm_head                       [V, D]
};

/// "query", "mlp_norm", ...
std::string_view name(Role role);
bool is_norm(Role role);

/// One tensor as a range of its unit's flat buffer, row-major.
struct Tensor {
  std::string name;  ///< as in Hugging Face files, for example "model.layers.3.mlp.up_proj.weight"
  Role role = Role::embedding;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  ///< elements from the start of the unit
  std::int64_t numel = 0;

  bool is_matrix() const { return shape.size() == 2; }
  std::int64_t rows() const { return is_matrix() ? shape[0] : 1; }
  std::int64_t cols() const { return shape.back(); }
};

struct Unit {
  enum class Kind { embedding, block, head };
  Kind kind = Kind::block;
  std::int64_t block_index = -1;  ///< -1 unless kind is block
  std::vector<Tensor> tensors;
  std::int64_t size = 0;  ///< elements with padding, a multiple of kAlignment

  /// Null when the unit has no such tensor.
  const Tensor* find(Role role) const;
  /// Elements without padding.
  std::int64_t numel() const;
};

struct Layout {
  struct Place {
    std::size_t unit = 0;
    std::size_t tensor = 0;
  };

  std::vector<Unit> units;
  bool tied = false;

  std::int64_t num_units() const { return static_cast<std::int64_t>(units.size()); }
  std::int64_t num_blocks() const { return num_units() - (tied ? 1 : 2); }
  /// The unit that holds final norm and head matrix: 0 when the embedding serves as head.
  std::int64_t head_unit() const { return tied ? 0 : num_units() - 1; }
  static std::int64_t block_unit(std::int64_t block) { return 1 + block; }
  /// Role of the matrix that makes logits.
  Role head_role() const { return tied ? Role::embedding : Role::head; }
  /// The tensor with this Hugging Face name.
  std::optional<Place> find(std::string_view tensor_name) const;
  const Tensor& at(Place place) const { return units[place.unit].tensors[place.tensor]; }
  /// Elements of all units, with padding.
  std::int64_t size() const;
};

/// Throws InternalError for an experts MLP.
Layout make_layout(const Config& config);

}  // namespace retort::architecture
