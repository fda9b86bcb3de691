#include "retort/ops/work_memory.h"

#include <ATen/Parallel.h>

#include "retort/kernels/cpu/amx_product.h"
#include "retort/kernels/cpu/matrix_unit.h"
#include "retort/kernels/cpu/packed_product.h"
#include "retort/kernels/cpu/tile_sizes.h"
#include "retort/kernels/cuda/attention.h"
#include "retort/kernels/cuda/elementwise.h"
#include "retort/kernels/device/attention.h"
#include "retort/kernels/device/pieces.h"
#include "retort/ops/matrix_product.h"
#include "retort/ops/paged_attention.h"

namespace retort::ops {
namespace {

// Bytes of `exact` temporaries of a piece in the type of statistics, and of `rounded` ones that exist only
// where the compute type is another.
std::int64_t piece_bytes(std::int64_t rows, std::int64_t columns, std::int64_t item_bytes, double exact,
                         double rounded) {
  const auto elements = kernels::device::piece_rows(rows, columns) * columns;
  const double count = item_bytes == 2 ? exact + rounded : exact;
  const auto statistics_bytes = std::max<std::int64_t>(4, item_bytes);
  return static_cast<std::int64_t>(count * static_cast<double>(statistics_bytes * elements));
}

// Every thread has its own.  `unit`: on a matrix unit, in float32 elements.
using TileElements = std::int64_t (*)(std::int64_t longest, std::int64_t head_dim);
std::int64_t tiles_bytes(const AttentionSizes& s, std::int64_t item_bytes, TileElements elements,
                         TileElements unit) {
  if (s.heads == 0) return 0;
  const auto head_dim = s.queries / s.heads, item = std::max<std::int64_t>(4, item_bytes);
  const bool on_unit = item_bytes == 2 && kernels::cpu::suits_matrix_unit(head_dim);
  return at::get_num_threads() * item * (on_unit ? unit : elements)(s.segment, head_dim);
}

// A kernel holds next to nothing; there is none for float64.
bool in_kernels(Path path, std::int64_t item_bytes) {
  return path == Path::cuda && item_bytes < 8;
}

}  // namespace

std::int64_t product_work_bytes(Path path, std::int64_t item_bytes) {
  if (path == Path::cpu) return item_bytes == 2 && bf16_products() != Bf16Products::whole ? kWidenedBytes : 0;
  return path == Path::cuda ? std::int64_t{32} << 20 : 0;
}

// The gradient of the weight, of each block of a kernel.
std::int64_t rms_norm_work_bytes(Path path, std::int64_t rows, std::int64_t dim, std::int64_t item_bytes) {
  if (in_kernels(path, item_bytes) && kernels::cuda::has_norm_backward(dim, item_bytes))
    return std::min(rows, kernels::cuda::kNormBlocks) * dim * 4;
  return path == Path::cpu ? 0 : piece_bytes(rows, dim, item_bytes, 1, 2);
}

std::int64_t rotary_work_bytes(Path path, std::int64_t rows, std::int64_t width, std::int64_t item_bytes) {
  if (in_kernels(path, item_bytes)) return 0;
  return path == Path::cpu ? 0 : piece_bytes(rows, width, item_bytes, 0.5, 1);
}

std::int64_t swiglu_backward_work_bytes(Path path, std::int64_t rows, std::int64_t width,
                                        std::int64_t item_bytes) {
  if (in_kernels(path, item_bytes)) return 0;
  return path == Path::cpu ? 0 : 2 * item_bytes * kernels::device::piece_rows(rows, width) * width;
}

namespace {

// Scores of a piece, so many times, with keys and values of each query head; nothing where a fused kernel
// knows the rule.
std::int64_t composed_bytes(const AttentionSizes& s, std::int64_t item_bytes, std::int64_t scores,
                            std::int64_t copies) {
  if (!s.capped && (s.window == 0 || s.window >= s.segment)) return 0;
  const auto rows = std::min(kernels::device::kAttentionPieceRows, s.segment);
  const auto keys = s.window > 0 ? std::min(s.segment, s.window + rows) : s.segment;
  return scores * rows * keys * s.heads * std::max<std::int64_t>(4, item_bytes) +
         copies * keys * s.queries * item_bytes;
}

// The library's kernels for all segments together.
bool in_attention_kernels(Path path, const AttentionSizes& s, std::int64_t item_bytes) {
  return in_kernels(path, item_bytes) && !s.capped && s.heads > 0 &&
         kernels::cuda::has_attention(s.queries / s.heads);
}

std::int64_t attention_kernel_backward_bytes(const AttentionSizes& s, std::int64_t item_bytes) {
  const auto head_dim = s.queries / s.heads, heads = 4 * s.heads;  // one float of each
  if (item_bytes == 4)
    return s.tokens *
           (item_bytes * (5 + kernels::cuda::kMostPadding) * s.queries + item_bytes * s.keys + heads);
  const auto of_shared_keys = s.keys < s.queries ? 2 * s.queries : 0;
  // What is added up in float32 has rows for the gaps behind documents, and whole tiles of columns.
  const auto columns = (head_dim + 31) / 32 * 32 + (head_dim > 128 ? 32 : 0);
  return s.tokens * (item_bytes * (s.queries + 2 * s.keys + of_shared_keys) +
                     kernels::cuda::kMostPadding * (4 * columns * s.heads + heads));
}

}  // namespace

std::int64_t attention_work_bytes(Path path, const AttentionSizes& s, std::int64_t item_bytes) {
  if (path == Path::cpu)
    return tiles_bytes(s, item_bytes, kernels::cpu::forward_elements, kernels::cpu::unit_forward_elements);
  // In float32 with keys and values of each query head, and sums for the gaps behind documents.
  if (in_attention_kernels(path, s, item_bytes))
    return item_bytes == 4
               ? s.tokens * (2 * item_bytes * s.queries + 4 * s.heads * kernels::cuda::kMostPadding)
               : 0;
  // The output of a segment before it is copied to its place.
  if (const auto bytes = composed_bytes(s, item_bytes, 3, 2)) return bytes;
  return item_bytes * s.segment * s.queries;
}

std::int64_t attention_backward_work_bytes(Path path, const AttentionSizes& s, std::int64_t item_bytes) {
  const auto statistics_bytes = std::max<std::int64_t>(4, item_bytes);
  if (path == Path::cpu)
    return tiles_bytes(s, item_bytes, kernels::cpu::backward_elements, kernels::cpu::unit_backward_elements);
  if (in_attention_kernels(path, s, item_bytes)) return attention_kernel_backward_bytes(s, item_bytes);
  if (const auto bytes = composed_bytes(s, item_bytes, s.capped ? 5 : 4, 4))
    return bytes + 2 * statistics_bytes * s.segment * s.keys;
  // Output and gradients of the segment, and what a fused kernel adds up before it rounds.
  return s.segment *
         (item_bytes * (2 * s.queries + 2 * s.keys) + statistics_bytes * (s.queries + 2 * s.heads));
}

// Log-softmax; with a teacher the same of it, and what the divergence is made of.
std::int64_t score_work_bytes(Path path, std::int64_t rows, std::int64_t vocab, std::int64_t item_bytes,
                              bool teacher) {
  return path == Path::cpu ? 0 : (teacher ? 5 : 1) * rows * vocab * std::max<std::int64_t>(4, item_bytes);
}

// Keys and values out of their pages; on a CPU queries and outputs as long, elsewhere scores of a piece of
// rows, a mask, and keys and values for every query head.
std::int64_t attention_of_end_work_bytes(Path path, const AttentionSizes& s, std::int64_t item_bytes) {
  const auto gathered = 2 * s.segment * s.keys * item_bytes;
  if (path == Path::cpu) return gathered + 2 * s.segment * s.queries * item_bytes;
  const auto rows = std::min(s.segment, kEndRows);
  return gathered + s.segment * (2 * s.queries * item_bytes +
                                 rows * (3 * s.heads * std::max<std::int64_t>(4, item_bytes) + 1));
}

std::int64_t accumulate_work_bytes(Path path, std::int64_t rows, std::int64_t columns,
                                   std::int64_t item_bytes) {
  if (in_kernels(path, item_bytes)) return 0;
  return path == Path::cpu ? 0 : piece_bytes(rows, columns, item_bytes, 0, 1);
}

std::int64_t add_transposed_product_work_bytes(Path path, std::int64_t inner, std::int64_t rows,
                                               std::int64_t columns, std::int64_t item_bytes) {
  if (item_bytes != 2 || path == Path::cuda) return 0;
  if (path == Path::cpu) {
    if (kernels::cpu::has_amx_product(inner, rows, columns) || kernels::cpu::packs_bf16(inner, rows, columns))
      return 0;
    const auto widened = rows + columns;  // of a piece, in float32
    return std::int64_t{sizeof(float)} * kernels::device::piece_rows(inner, widened) * widened;
  }
  return item_bytes * rows * columns + accumulate_work_bytes(path, rows, columns, item_bytes);
}

std::int64_t optimizer_work_bytes(Path path, std::int64_t count) {
  return path == Path::device ? piece_bytes(count, 1, 4, 2, 0) : 0;
}

}  // namespace retort::ops
