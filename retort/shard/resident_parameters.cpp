#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/shard/parameters.h"

namespace retort::shard {
namespace {

class ResidentParameters final : public Parameters {
 public:
  ResidentParameters(model::Weights weights, Use use, at::ScalarType compute) : weights_(std::move(weights)) {
    for (auto& unit : weights_.units) {
      if (use == Use::frozen) {
        unit = unit.to(compute);
        continue;
      }
      unit = unit.to(compute == at::kDouble ? at::kDouble : at::kFloat);
      gradients_.push_back(at::zeros_like(unit));
      if (compute == at::kBFloat16) copies_.push_back(unit.to(compute));
    }
  }

  const architecture::Config& config() const override { return weights_.config; }
  const architecture::Layout& layout() const override { return weights_.layout; }

  void prefetch(std::int64_t) override {}
  at::Tensor acquire(std::int64_t unit) override {
    return copies_.empty() ? at(weights_.units, unit) : at(copies_, unit);
  }
  void release(std::int64_t) override {}
  bool resident() const override { return true; }

  at::Tensor gradient(std::int64_t unit) override { return at(gradients_, unit); }
  void reduce(std::int64_t, bool) override {}
  void finish_reduces() override {}
  void zero_gradients() override {
    for (auto& gradient : gradients_) gradient.zero_();
  }

  optim::UnitRange range(std::int64_t unit) const override {
    return {0, weights_.layout.units[static_cast<std::size_t>(unit)].size};
  }
  at::Tensor master(std::int64_t unit) override { return at(weights_.units, unit); }
  at::Tensor own_gradient(std::int64_t unit) override { return at(gradients_, unit); }
  at::Tensor compute_copy(std::int64_t unit) override {
    return copies_.empty() ? at::Tensor() : at(copies_, unit);
  }
  void updated(std::int64_t) override {}
  at::Tensor whole_master(std::int64_t unit) override { return at(weights_.units, unit); }

 private:
  static at::Tensor at(const std::vector<at::Tensor>& list, std::int64_t unit) {
    base::ensure(unit >= 0 && unit < static_cast<std::int64_t>(list.size()),
                 "a unit that the model has (and trains)");
    return list[static_cast<std::size_t>(unit)];
  }

  model::Weights weights_;
  std::vector<at::Tensor> copies_;
  std::vector<at::Tensor> gradients_;
};

}  // namespace

std::unique_ptr<Parameters> resident_parameters(model::Weights weights, Use use, at::ScalarType compute) {
  return std::make_unique<ResidentParameters>(std::move(weights), use, compute);
}

}  // namespace retort::shard
