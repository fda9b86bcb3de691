#pragma once
// A model is a row of units: embedding, blocks, head.  The tensors of a unit lie in one flat buffer of
// elements; this file says where.  Parameters, gradients, moments and masks of a unit all have this one
// layout.
//
//   unit 0       embed_tokens (tied: and model.norm; then there is no head unit)
//   unit 1 + i   block i: norm | q k v | their biases | norms of q and k | o | bias | norm after
//                         | norm | gate up | their biases | down | bias | norm after
//   last unit    model.norm | lm_head
//
// A block has those of them that its configuration asks for.  Groups between the bars start at a multiple of
// kAlignment elements; q k v and gate up touch, so that each group is one matrix [sum of rows, hidden] as
// well, and their biases one vector.  Gaps and the tail are padding, always zero.

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

/// What a tensor is for; the names are those of most families.
enum class Role {
  embedding,            ///< model.embed_tokens            [V, D]
  attention_norm,       ///< input_layernorm               [D]
  query,                ///< self_attn.q_proj              [Hq * hd, D]
  key,                  ///< self_attn.k_proj              [Hkv * hd, D]
  value,                ///< self_attn.v_proj              [Hkv * hd, D]
  query_bias,           ///< self_attn.q_proj.bias         [Hq * hd]
  key_bias,             ///< self_attn.k_proj.bias         [Hkv * hd]
  value_bias,           ///< self_attn.v_proj.bias         [Hkv * hd]
  query_norm,           ///< self_attn.q_norm              [hd], across heads [Hq * hd]
  key_norm,             ///< self_attn.k_norm              [hd], across heads [Hkv * hd]
  output,               ///< self_attn.o_proj              [D, Hq * hd]
  output_bias,          ///< self_attn.o_proj.bias         [D]
  attention_post_norm,  ///< of what attention adds   [D]
  mlp_norm,             ///< post_attention_layernorm      [D]
  gate,                 ///< mlp.gate_proj                 [I, D]
  up,                   ///< mlp.up_proj                   [I, D]
  gate_bias,            ///< mlp.gate_proj.bias            [I]
  up_bias,              ///< mlp.up_proj.bias              [I]
  down,                 ///< mlp.down_proj                 [D, I]
  down_bias,            ///< mlp.down_proj.bias            [D]
  mlp_post_norm,        ///< of what the MLP adds          [D]
  final_norm,           ///< model.norm                    [D]
  head,                 ///< lm_head                       [V, D]
};
inline constexpr std::size_t kRoles = 23;

/// "query", "mlp_norm", ...
std::string_view name(Role role);
/// Its weights scale what an RMSNorm gives.
bool is_norm(Role role);
/// A norm over the features of the hidden state.
bool is_hidden_norm(Role role);
bool is_bias(Role role);

/// How a model's files hold a tensor: as rows of one that several share, and with something subtracted.
struct Stored {
  std::string name;
  std::int64_t first_row = 0, rows = 0;  ///< of all that share it
  double subtracted = 0;                 ///< 1 where a file holds w of a norm by 1 + w
};

/// One tensor as a range of its unit's flat buffer, row-major.
struct Tensor {
  std::string name;  ///< as in Hugging Face files, for example "model.layers.3.mlp.up_proj.weight"
  Role role = Role::embedding;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  ///< elements from the start of the unit
  std::int64_t numel = 0;
  Stored stored = {};

  bool is_matrix() const { return shape.size() == 2; }
  std::int64_t rows() const { return is_matrix() ? shape[0] : 1; }
  std::int64_t cols() const { return shape.back(); }
  /// Of the tensor in the file.
  std::vector<std::int64_t> stored_shape() const;
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

/// Throws InternalError for an experts MLP, ModelError for an architecture of no family.
Layout make_layout(const Config& config);

}  // namespace retort::architecture
