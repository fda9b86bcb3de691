#include "retort/architecture/layout.h"

#include <array>
#include <utility>

#include "retort/architecture/families.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

std::int64_t aligned(std::int64_t elements) {
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

// Appends tensors to a unit; those that touch() stay without a gap.
class UnitBuilder {
 public:
  UnitBuilder(const Family& family, Unit::Kind kind, std::int64_t block_index, std::string prefix)
      : family_(family), prefix_(std::move(prefix)) {
    unit_.kind = kind;
    unit_.block_index = block_index;
  }

  void add(Role role, std::vector<std::int64_t> shape) {
    end_ = aligned(end_);
    touch(role, std::move(shape));
  }
  void touch(Role role, std::vector<std::int64_t> shape) {
    std::int64_t numel = 1;
    for (const std::int64_t extent : shape) numel *= extent;
    Tensor tensor{prefix_ + tensor_name(family_, role), role, std::move(shape), end_, numel};
    tensor.stored = {.name = prefix_ + stored_name(family_, role), .rows = tensor.shape.front()};
    if (is_norm(role)) tensor.stored.subtracted = family_.norm_weights_less;
    unit_.tensors.push_back(std::move(tensor));
    end_ += numel;
  }
  Unit finish() {
    unit_.size = aligned(end_);
    share_storage();
    return std::move(unit_);
  }

 private:
  // Tensors of one stored name follow each other in it.
  void share_storage() {
    for (auto& tensor : unit_.tensors) {
      std::int64_t before = 0, all = 0;
      for (const auto& other : unit_.tensors) {
        if (other.stored.name != tensor.stored.name) continue;
        if (other.offset < tensor.offset) before += other.shape.front();
        all += other.shape.front();
      }
      tensor.stored.first_row = before;
      tensor.stored.rows = all;
    }
  }

  const Family& family_;
  Unit unit_;
  std::string prefix_;
  std::int64_t end_ = 0;
};

void add_attention(UnitBuilder& unit, const Block& block, std::int64_t hidden) {
  const Attention& attention = *block.attention;
  const std::int64_t query_rows = attention.num_heads * attention.head_dim;
  const std::int64_t key_rows = attention.num_kv_heads * attention.head_dim;
  if (block.norms_before()) unit.add(Role::attention_norm, {hidden});
  unit.add(Role::query, {query_rows, hidden});
  unit.touch(Role::key, {key_rows, hidden});
  unit.touch(Role::value, {key_rows, hidden});
  if (attention.kind.query_key_value_bias) {
    unit.add(Role::query_bias, {query_rows});
    unit.touch(Role::key_bias, {key_rows});
    unit.touch(Role::value_bias, {key_rows});
  }
  if (attention.kind.norm != QueryKeyNorm::none) {
    const bool across = attention.kind.norm == QueryKeyNorm::across_heads;
    unit.add(Role::query_norm, {across ? query_rows : attention.head_dim});
    unit.add(Role::key_norm, {across ? key_rows : attention.head_dim});
  }
  unit.add(Role::output, {hidden, query_rows});
  if (attention.kind.output_bias) unit.add(Role::output_bias, {hidden});
  if (block.norms_after()) unit.add(Role::attention_post_norm, {hidden});
}

void add_mlp(UnitBuilder& unit, const Block& block, const DenseMlp& mlp, std::int64_t hidden) {
  if (block.norms_before()) unit.add(Role::mlp_norm, {hidden});
  unit.add(Role::gate, {mlp.width, hidden});
  unit.touch(Role::up, {mlp.width, hidden});
  if (mlp.bias) {
    unit.add(Role::gate_bias, {mlp.width});
    unit.touch(Role::up_bias, {mlp.width});
  }
  unit.add(Role::down, {hidden, mlp.width});
  if (mlp.bias) unit.add(Role::down_bias, {hidden});
  if (block.norms_after()) unit.add(Role::mlp_post_norm, {hidden});
}

Unit block_unit(const Family& family, const Config& config, std::int64_t index) {
  const Block& block = config.blocks[static_cast<std::size_t>(index)];
  base::ensure(!std::holds_alternative<ExpertsMlp>(block.mlp), "expert blocks have no layout yet");
  UnitBuilder unit(family, Unit::Kind::block, index, base::join("model.layers.", index, "."));
  if (block.attention) add_attention(unit, block, config.hidden_size);
  if (const auto* dense = std::get_if<DenseMlp>(&block.mlp)) add_mlp(unit, block, *dense, config.hidden_size);
  return unit.finish();
}

}  // namespace

std::string_view name(Role role) {
  constexpr std::array<std::string_view, kRoles> kNames{"embedding",
                                                        "attention_norm",
                                                        "query",
                                                        "key",
                                                        "value",
                                                        "query_bias",
                                                        "key_bias",
                                                        "value_bias",
                                                        "query_norm",
                                                        "key_norm",
                                                        "output",
                                                        "output_bias",
                                                        "attention_post_norm",
                                                        "mlp_norm",
                                                        "gate",
                                                        "up",
                                                        "gate_bias",
                                                        "up_bias",
                                                        "down",
                                                        "down_bias",
                                                        "mlp_post_norm",
                                                        "final_norm",
                                                        "head"};
  return kNames[static_cast<std::size_t>(role)];
}

bool is_hidden_norm(Role role) {
  return role == Role::attention_norm || role == Role::attention_post_norm || role == Role::mlp_norm ||
         role == Role::mlp_post_norm || role == Role::final_norm;
}

bool is_norm(Role role) {
  return is_hidden_norm(role) || role == Role::query_norm || role == Role::key_norm;
}

bool is_bias(Role role) {
  return role == Role::query_bias || role == Role::key_bias || role == Role::value_bias ||
         role == Role::output_bias || role == Role::gate_bias || role == Role::up_bias ||
         role == Role::down_bias;
}

std::vector<std::int64_t> Tensor::stored_shape() const {
  auto whole = shape;
  whole.front() = stored.rows;
  return whole;
}

const Tensor* Unit::find(Role role) const {
  for (const Tensor& tensor : tensors)
    if (tensor.role == role) return &tensor;
  return nullptr;
}

std::int64_t Unit::numel() const {
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.numel;
  return total;
}

std::optional<Layout::Place> Layout::find(std::string_view tensor_name) const {
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    for (std::size_t tensor = 0; tensor < units[unit].tensors.size(); ++tensor)
      if (units[unit].tensors[tensor].name == tensor_name) return Place{unit, tensor};
  return std::nullopt;
}

std::int64_t Layout::size() const {
  std::int64_t total = 0;
  for (const Unit& unit : units) total += unit.size;
  return total;
}

Layout make_layout(const Config& config) {
  const std::vector<std::int64_t> vocab_matrix{config.vocab_size, config.hidden_size};
  Layout layout;
  layout.tied = config.tie_word_embeddings;
  const Family& family = family_of(config.architecture);
  UnitBuilder embedding(family, Unit::Kind::embedding, -1, "");
  embedding.add(Role::embedding, vocab_matrix);
  if (layout.tied) embedding.add(Role::final_norm, {config.hidden_size});
  layout.units.push_back(embedding.finish());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(config.blocks.size()); ++i)
    layout.units.push_back(block_unit(family, config, i));
  if (layout.tied) return layout;
  UnitBuilder head(family, Unit::Kind::head, -1, "");
  head.add(Role::final_norm, {config.hidden_size});
  head.add(Role::head, vocab_matrix);
  layout.units.push_back(head.finish());
  return layout;
}

}  // namespace retort::architecture
