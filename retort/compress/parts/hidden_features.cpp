// A feature of the hidden state: what every layer that reads it or adds to it has of it, embedding and head
// too.
#include <cmath>

#include "retort/base/error.h"
#include "retort/compress/parts.h"

namespace retort::compress {
namespace {

using architecture::Role;

bool writes(Role role) {
  return role == Role::output || role == Role::down || role == Role::output_bias || role == Role::down_bias ||
         architecture::is_hidden_norm(role);
}

// Without some hidden features a norm divides a sum over the others by a smaller number, and eps grows in
// proportion.  Weights grow with it: those of norms over the features, and those that make what other norms
// of the same eps read, which keep all their inputs.
bool grows(Role role, const architecture::Block& shape) {
  const bool normalised = shape.attention && shape.attention->kind.norm != architecture::QueryKeyNorm::none;
  return architecture::is_hidden_norm(role) ||
         (normalised &&
          (role == Role::query || role == Role::key || role == Role::query_bias || role == Role::key_bias));
}

class HiddenFeatures final : public Part {
  std::string action() const override { return "narrow_hidden"; }
  std::string described(std::int64_t left) const override {
    return base::join("narrow hidden states to ", left);
  }
  std::string unit(std::int64_t) const override { return "hidden size"; }
  double influence(const calibrate::Influence& influence) const override { return influence.block; }
  std::int64_t rows_each(const architecture::Block&, Role role) const override { return writes(role); }
  std::int64_t columns_each(const architecture::Block&, Role role) const override {
    return !writes(role);  // of matrices only
  }
  double factor(const architecture::Block& shape, Role role, std::int64_t count,
                std::int64_t left) const override {
    return grows(role, shape) ? std::sqrt(static_cast<double>(count) / static_cast<double>(left)) : 1;
  }
};

}  // namespace

const Part& hidden_features() {
  static const HiddenFeatures part;
  return part;
}

}  // namespace retort::compress
