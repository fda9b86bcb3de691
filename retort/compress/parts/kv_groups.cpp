// A KV group: one key and value head with the query heads that use it, and the inputs of o_proj that they
// make.
#include "retort/base/error.h"
#include "retort/compress/parts.h"

namespace retort::compress {
namespace {

using architecture::Role;

std::int64_t inputs_each(const architecture::Block& block) {
  const auto& shape = block.attention;
  return shape ? shape->num_heads / shape->num_kv_heads * shape->head_dim : 0;
}

class KvGroups final : public Part {
  std::string action() const override { return "narrow_attention"; }
  std::string described(std::int64_t left) const override {
    return base::join("narrow attentions to ", left, " KV groups");
  }
  std::string unit(std::int64_t block) const override {
    return block < 0 ? "KV groups" : base::join("attention ", block);
  }
  double influence(const calibrate::Influence& influence) const override { return influence.attention; }
  std::int64_t rows_each(const architecture::Block& block, Role role) const override {
    if (role == Role::query || role == Role::query_bias) return inputs_each(block);
    const bool of_keys =
        role == Role::key || role == Role::value || role == Role::key_bias || role == Role::value_bias;
    return of_keys ? block.attention->head_dim : 0;
  }
  std::int64_t columns_each(const architecture::Block& block, Role role) const override {
    return role == Role::output ? inputs_each(block) : 0;
  }
};

}  // namespace

const Part& kv_groups() {
  static const KvGroups part;
  return part;
}

}  // namespace retort::compress
