#include "retort/sparsify/shared_model.h"

#include <ATen/ATen.h>

#include "retort/shard/tensor_buffer.h"

namespace retort::sparsify {

void SharedModel::change(const std::function<void(model::Weights&)>& act) {
  group_.barrier();
  group_.agree([&] {
    if (writes_) act(weights_);
  });
  weights_.blocks_changed();
}

at::Tensor SharedModel::copy_to_write(std::size_t unit) const {
  return writes_ ? weights_.units[unit].clone() : at::Tensor();
}

comm::Share SharedModel::own_rows(const architecture::Tensor& layer) const {
  return comm::share_of(static_cast<std::size_t>(layer.rows()), group_.rank(), group_.size());
}

// A gather takes equal parts, so shorter ones are filled up.
at::Tensor SharedModel::gathered_rows(const architecture::Tensor& layer, const at::Tensor& own_RC) const {
  const auto ranks = group_.size();
  if (ranks == 1) return own_RC;
  const auto most = (layer.rows() + ranks - 1) / ranks;
  const auto part_RC = at::zeros({most, layer.cols()}, own_RC.options());
  part_RC.narrow(0, 0, own_RC.size(0)).copy_(own_RC);
  const auto all_RC = at::empty({ranks * most, layer.cols()}, own_RC.options());
  group_.all_gather(shard::buffer_of(part_RC), shard::buffer_of(all_RC)).wait();
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto rows = comm::share_of(static_cast<std::size_t>(layer.rows()), rank, ranks);
    parts.push_back(all_RC.narrow(0, rank * most, static_cast<std::int64_t>(rows.last - rows.first)));
  }
  return at::cat(parts);
}

}  // namespace retort::sparsify
