#include "retort/calibrate/sums_over_ranks.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/calibrate/histogram.h"
#include "retort/shard/tensor_buffer.h"

namespace retort::calibrate {
namespace {

std::int64_t summed(comm::Group& group, std::int64_t count) {
  double sum[1] = {static_cast<double>(count)};
  group.all_sum(sum);
  return static_cast<std::int64_t>(sum[0]);
}

void sum_in_place(comm::Group& group, const at::Tensor& values) {
  group.all_reduce(shard::buffer_of(values)).wait();
}

at::Tensor largest(comm::Group& group, const at::Tensor& own_I) {
  const auto all_RI = at::empty({group.size(), own_I.numel()}, own_I.options());
  group.all_gather(shard::buffer_of(own_I), shard::buffer_of(all_RI)).wait();
  return all_RI.amax(0);
}

}  // namespace

void sum_over_ranks(comm::Group& group, HessianSums& sums, std::int64_t columns,
                    const at::TensorOptions& inputs) {
  if (group.size() == 1) return;
  if (!sums.products_CC.defined())
    sums.products_CC = at::zeros({columns, columns},
                                 inputs.dtype(sum_type(columns, c10::typeMetaToScalarType(inputs.dtype()))));
  sum_in_place(group, sums.products_CC);
  sums.sequences = summed(group, sums.sequences);
}

void sum_over_ranks(comm::Group& group, InputStatistics& statistics, const at::TensorOptions& inputs) {
  if (group.size() == 1 || !statistics.scale_I.defined()) return;
  base::ensure(!statistics.gradient_I.defined(), "statistics of several ranks have no gradient");
  const auto features = statistics.scale_I.numel();
  const auto doubles = inputs.dtype(at::kDouble);
  const auto or_zeros = [&](const at::Tensor& x) { return x.defined() ? x : at::zeros({features}, doubles); };
  const auto sums_4I = at::stack({or_zeros(statistics.absolute_I), or_zeros(statistics.sum_I),
                                  or_zeros(statistics.squares_I), or_zeros(statistics.sequence_squares_I)});
  sum_in_place(group, sums_4I);
  statistics.absolute_I = sums_4I[0];
  statistics.sum_I = sums_4I[1];
  statistics.squares_I = sums_4I[2];
  statistics.sequence_squares_I = sums_4I[3];
  statistics.maximum_I = largest(group, or_zeros(statistics.maximum_I));
  const auto counts_IB = statistics.counts_IB.defined() ? statistics.counts_IB.to(at::kDouble)
                                                        : at::zeros({features, kBuckets}, doubles);
  sum_in_place(group, counts_IB);  // exact below 2^53
  statistics.counts_IB = counts_IB.to(at::kLong);
  statistics.tokens = summed(group, statistics.tokens);
  if (statistics.with_products) sum_over_ranks(group, statistics.hessian, features, inputs);
}

}  // namespace retort::calibrate
