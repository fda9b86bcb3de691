#include "retort/calibrate/histogram.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace retort::calibrate {
namespace {

constexpr int kMantissaBits = 23;
constexpr int kBucketBits = std::bit_width(static_cast<std::uint64_t>(kBucketsPerOctave)) - 1;
// The highest bits of a float32 count octaves and their eighths, beginning at 2^-127.
constexpr std::int64_t kFirst = (kLowestOctave + 127) * kBucketsPerOctave - 1;

std::int64_t bucket_of(std::int32_t bits) {
  return std::clamp<std::int64_t>((bits >> (kMantissaBits - kBucketBits)) - kFirst, 0, kBuckets - 1);
}

// In one pass, where tensor operations take ten.
at::Tensor counts_on_processor(const at::Tensor& x_NC, const at::Tensor& scale_C) {
  const auto rows = x_NC.size(0), columns = x_NC.size(1);
  auto counts_CB = at::zeros({columns, kBuckets}, at::kLong);
  const auto* x = x_NC.const_data_ptr<float>();
  const auto* scale = scale_C.const_data_ptr<float>();
  auto* counts = counts_CB.mutable_data_ptr<std::int64_t>();
  constexpr std::int64_t kColumns = 64;  // whose counters stay in a cache
  at::parallel_for(0, (columns + kColumns - 1) / kColumns, 1, [&](std::int64_t from, std::int64_t to) {
    for (auto block = from; block < to; ++block)
      for (std::int64_t row = 0; row < rows; ++row)
        for (auto c = block * kColumns; c < std::min(columns, (block + 1) * kColumns); ++c) {
          const auto value = std::abs(x[row * columns + c]) * scale[c];
          ++counts[c * kBuckets + bucket_of(std::bit_cast<std::int32_t>(value))];
        }
  });
  return counts_CB;
}

at::Tensor counts_on_device(const at::Tensor& x_NC, const at::Tensor& scale_C) {
  const auto values_NC = x_NC.abs() * scale_C;
  const auto bucket_NC = at::bitwise_right_shift(values_NC.view(at::kInt), kMantissaBits - kBucketBits)
                             .sub_(kFirst)
                             .clamp_(0, kBuckets - 1);
  const auto columns = x_NC.size(1);
  const auto rows_C = at::arange(columns, x_NC.options().dtype(at::kLong)) * kBuckets;
  return at::bincount((bucket_NC + rows_C).view(-1), {}, columns * kBuckets).view({columns, kBuckets});
}

}  // namespace

at::Tensor magnitude_counts(const at::Tensor& x_NC, const at::Tensor& scale_C) {
  const auto x = x_NC.to(at::kFloat).contiguous();
  const auto scale = scale_C.to(at::kFloat).contiguous();
  return x.is_cpu() ? counts_on_processor(x, scale) : counts_on_device(x, scale);
}

at::Tensor bucket_values(at::Device device) {
  auto values_B = at::zeros({kBuckets}, at::kDouble);
  auto* values = values_B.mutable_data_ptr<double>();
  const auto lower = [](std::int64_t bucket) {  // edge, of buckets from 1
    const auto octave = (bucket - 1) / kBucketsPerOctave, part = (bucket - 1) % kBucketsPerOctave;
    return std::ldexp(1 + static_cast<double>(part) / static_cast<double>(kBucketsPerOctave),
                      static_cast<int>(kLowestOctave + octave));
  };
  for (std::int64_t bucket = 1; bucket + 1 < kBuckets; ++bucket)
    values[bucket] = (lower(bucket) + lower(bucket + 1)) / 2;
  values[kBuckets - 1] = lower(kBuckets - 1);
  return values_B.to(device);
}

at::Tensor magnitude_quantile(const at::Tensor& counts_CB, double quantile) {
  const auto reached_CB = counts_CB.cumsum(1).to(at::kDouble);
  const auto needed_C = (reached_CB.select(1, kBuckets - 1) * quantile).ceil_();
  const auto bucket_C = reached_CB.lt(needed_C.unsqueeze(1)).sum(1);  // those that do not suffice
  return bucket_values(counts_CB.device()).index_select(0, bucket_C.clamp_max(kBuckets - 1));
}

}  // namespace retort::calibrate
