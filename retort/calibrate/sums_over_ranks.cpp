#include "retort/calibrate/sums_over_ranks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

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

void agree_on_units(comm::Group& group, HessianSums& sums, std::int64_t columns,
                    const at::TensorOptions& inputs) {
  if (sum_type(columns, c10::typeMetaToScalarType(inputs.dtype())) != at::kDouble) return;
  std::vector<double> has(static_cast<std::size_t>(group.size()));
  has[static_cast<std::size_t>(group.rank())] = sums.products_CC.defined() ? 1 : 0;
  group.all_sum(has);
  const auto first = std::find(has.begin(), has.end(), 1.0) - has.begin();
  base::ensure(first < std::ssize(has), "sums of a text need some");
  const auto diagonal_C = sums.products_CC.defined() ? sums.products_CC.diagonal().contiguous().clone()
                                                     : at::zeros({columns}, inputs.dtype(at::kDouble));
  if (group.size() > 1) group.broadcast(shard::buffer_of(diagonal_C), static_cast<int>(first)).wait();
  use_units(sums, exact_units(diagonal_C));
}

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

void join_over_ranks(comm::Group& group, const std::vector<Batch>& batches,
                     std::vector<DocumentSums>& documents) {
  if (group.size() == 1) return;
  static_assert(std::is_trivially_copyable_v<DocumentSums>);
  const auto own = std::exchange(documents, {});
  // Whether the first one began before, then the sums as they lie in memory.
  std::string text(1, !batches.empty() && batches.front().goes_on.front() ? 1 : 0);
  text.append(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(DocumentSums));
  for (const auto& of_rank : group.all_texts(text)) {
    std::vector<DocumentSums> part((of_rank.size() - 1) / sizeof(DocumentSums));
    if (!part.empty()) std::memcpy(part.data(), of_rank.data() + 1, part.size() * sizeof(DocumentSums));
    join_documents(of_rank.front() != 0, part, documents);
  }
}

}  // namespace retort::calibrate
