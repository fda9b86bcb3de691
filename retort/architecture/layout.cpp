#include "retort/architecture/layout.h"

#include <array>
#include <utility>

#include "retort/base/error.h"

namespace retort::architecture {
namespace {

std::int64_t aligned(std::int64_t elements) {
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

// Appends tensors to a unit; those that touch() stay without a gap.
class UnitBuilder {
 public:
  UnitBuilder(Unit::Kind kind, std::int64_t block_index, std::string prefix) : prefix_(std::move(prefix)) {
    unit_.kind = kind;
    unit_.block_index = block_index;
  }

  void add(Role role, const char* name, std::vector<std::int64_t> shape) {
    end_ = aligned(end_);
    touch(role, name, std::move(shape));
  }
  void touch(Role role, const char* name, std::vector<std::int64_t> shape) {
    std::int64_t numel = 1;
    for (const std::int64_t extent : shape) numel *= extent;
    unit_.tensors.push_back({prefix_ + name, role, std::move(shape), end_, numel});
    end_ += numel;
  }
  Unit finish() {
    unit_.size = aligned(end_);
    return std::move(unit_);
  }

 private:
  Unit unit_;
  std::string prefix_;
  std::int64_t end_ = 0;
};

void add_attention(UnitBuilder& unit, const Attention& attention, std::int64_t hidden) {
  const std::int64_t query_rows = attention.num_heads * attention.head_dim;
  const std::int64_t key_rows = attention.num_kv_heads * attention.head_dim;
  unit.add(Role::attention_norm, "input_layernorm.weight", {hidden});
  unit.add(Role::query, "self_attn.q_proj.weight", {query_rows, hidden});
  unit.touch(Role::key, "self_attn.k_proj.weight", {key_rows, hidden});
  unit.touch(Role::value, "self_attn.v_proj.weight", {key_rows, hidden});
  unit.add(Role::output, "self_attn.o_proj.weight", {hidden, query_rows});
}

void add_mlp(UnitBuilder& unit, const DenseMlp& mlp, std::int64_t hidden) {
  unit.add(Role::mlp_norm, "post_attention_layernorm.weight", {hidden});
  unit.add(Role::gate, "mlp.gate_proj.weight", {mlp.width, hidden});
  unit.touch(Role::up, "mlp.up_proj.weight", {mlp.width, hidden});
  unit.add(Role::down, "mlp.down_proj.weight", {hidden, mlp.width});
}

Unit block_unit(const Config& config, std::int64_t index) {
  const Block& block = config.blocks[static_cast<std::size_t>(index)];
  base::ensure(!std::holds_alternative<ExpertsMlp>(block.mlp), "expert blocks have no layout yet");
  UnitBuilder unit(Unit::Kind::block, index, base::join("model.layers.", index, "."));
  if (block.attention) add_attention(unit, *block.attention, config.hidden_size);
  if (const auto* dense = std::get_if<DenseMlp>(&block.mlp)) add_mlp(unit, *dense, config.hidden_size);
  return unit.finish();
}

}  // namespace

std::string_view name(Role role) {
  constexpr std::array<std::string_view, 12> kNames{"embedding", "attention_norm", "query",      "key",
                                                    "value",     "output",         "mlp_norm",   "gate",
                                                    "up",        "down",           "final_norm", "head"};
  return kNames[static_cast<std::size_t>(role)];
}

bool is_norm(Role role) {
  return role == Role::attention_norm || role == Role::mlp_norm || role == Role::final_norm;
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
  UnitBuilder embedding(Unit::Kind::embedding, -1, "");
  embedding.add(Role::embedding, "model.embed_tokens.weight", vocab_matrix);
  if (layout.tied) embedding.add(Role::final_norm, "model.norm.weight", {config.hidden_size});
  layout.units.push_back(embedding.finish());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(config.blocks.size()); ++i)
    layout.units.push_back(block_unit(config, i));
  if (layout.tied) return layout;
  UnitBuilder head(Unit::Kind::head, -1, "");
  head.add(Role::final_norm, "model.norm.weight", {config.hidden_size});
  head.add(Role::head, "lm_head.weight", vocab_matrix);
  layout.units.push_back(head.finish());
  return layout;
}

}  // namespace retort::architecture
