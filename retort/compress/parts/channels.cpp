// A channel of an MLP: a row of gate_proj and up_proj, and the input of down_proj that they make.
#include "retort/base/error.h"
#include "retort/compress/parts.h"

namespace retort::compress {
namespace {

using architecture::Role;

class Channels final : public Part {
  std::string action() const override { return "narrow"; }
  std::string described(std::int64_t left) const override { return base::join("narrow MLPs to ", left); }
  std::string unit(std::int64_t block) const override {
    return block < 0 ? "width" : base::join("MLP ", block);
  }
  double influence(const calibrate::Influence& influence) const override { return influence.mlp; }
  std::int64_t rows_each(const architecture::Block&, Role role) const override {
    return role == Role::gate || role == Role::up || role == Role::gate_bias || role == Role::up_bias;
  }
  std::int64_t columns_each(const architecture::Block&, Role role) const override {
    return role == Role::down;
  }
};

}  // namespace

const Part& channels() {
  static const Channels part;
  return part;
}

}  // namespace retort::compress
