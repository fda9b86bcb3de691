#include "retort/bench/kernel_work.h"

namespace retort::bench {
namespace {

constexpr std::int64_t kFloat = 4, kBf16 = 2;  // bytes

Work moved(std::int64_t read, std::int64_t written) {
  return {static_cast<double>(read + written), 0, static_cast<double>(written)};
}

// Pairs of a token with one before it or itself, in all heads, times the features of a head.
double attended_features(const architecture::Attention& shape, std::int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return count * (count + 1) / 2 * static_cast<double>(shape.num_heads * shape.head_dim);
}

}  // namespace

Work rms_norm_work(std::int64_t tokens, std::int64_t hidden, std::int64_t item_bytes) {
  return moved(item_bytes * (tokens * hidden + hidden), item_bytes * tokens * hidden + kFloat * tokens);
}

Work rms_norm_backward_work(std::int64_t tokens, std::int64_t hidden, std::int64_t item_bytes) {
  return moved(item_bytes * (3 * tokens * hidden + hidden) + kFloat * (tokens + hidden),
               item_bytes * tokens * hidden + kFloat * hidden);
}

Work rotary_work(const architecture::Attention& shape, std::int64_t tokens, std::int64_t item_bytes) {
  const auto features = (shape.num_heads + shape.num_kv_heads) * shape.head_dim;
  return moved(tokens * (item_bytes * features + kFloat * shape.head_dim), tokens * item_bytes * features);
}

Work swiglu_work(std::int64_t tokens, std::int64_t width, std::int64_t item_bytes) {
  return moved(item_bytes * 2 * tokens * width, item_bytes * tokens * width);
}

Work swiglu_backward_work(std::int64_t tokens, std::int64_t width, std::int64_t item_bytes) {
  return moved(item_bytes * 3 * tokens * width, item_bytes * 3 * tokens * width);
}

Work attention_work(const architecture::Attention& shape, std::int64_t tokens) {
  return {0, 4 * attended_features(shape, tokens)};
}

Work attention_backward_work(const architecture::Attention& shape, std::int64_t tokens) {
  return {0, 10 * attended_features(shape, tokens)};
}

Work paged_attention_work(const architecture::Attention& shape, std::int64_t tokens,
                          std::int64_t item_bytes) {
  return moved(item_bytes * shape.head_dim * (2 * tokens * shape.num_kv_heads + shape.num_heads),
               item_bytes * shape.head_dim * shape.num_heads);
}

Work cross_entropy_work(std::int64_t rows, std::int64_t vocab, std::int64_t item_bytes) {
  return moved(item_bytes * rows * vocab, item_bytes * rows * vocab);
}

Work kl_divergence_work(std::int64_t rows, std::int64_t vocab, std::int64_t item_bytes) {
  return moved(item_bytes * 2 * rows * vocab, item_bytes * rows * vocab);
}

Work adamw_work(std::int64_t parameters, std::int64_t item_bytes) {
  return moved(parameters * 4 * kFloat, parameters * (3 * kFloat + (item_bytes == kBf16 ? kBf16 : 0)));
}

Work decode_product_work(std::int64_t rows, std::int64_t columns, std::int64_t item_bytes) {
  return moved(item_bytes * (rows * columns + columns), item_bytes * rows);
}

}  // namespace retort::bench
