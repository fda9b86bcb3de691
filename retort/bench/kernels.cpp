#include "retort/bench/kernels.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "retort/base/error.h"
#include "retort/bench/memory_rate.h"
#include "retort/bench/operands.h"
#include "retort/ops/attention.h"
#include "retort/ops/elementwise.h"
#include "retort/ops/logit_losses.h"
#include "retort/ops/matrix_product.h"
#include "retort/ops/optimizer_step.h"
#include "retort/ops/packed_linear.h"
#include "retort/ops/paged_attention.h"

namespace retort::bench {
namespace {

constexpr std::int64_t kHeadRows = 256, kMostSets = 64;

// The sizes that the operations work on.
struct Sizes {
  std::int64_t tokens, hidden, width, vocab, head_rows, parameters, item_bytes;
  architecture::Attention heads;

  Sizes(const architecture::Config& config, std::int64_t count, std::int64_t bytes)
      : tokens(count),
        hidden(config.hidden_size),
        width(0),
        vocab(config.vocab_size),
        head_rows(std::min(count, kHeadRows)),
        item_bytes(bytes) {
    for (const auto& block : config.blocks) {
      width = std::max(width, architecture::mlp_width(block));
      if (block.attention && block.attention->num_heads > heads.num_heads) heads = *block.attention;
    }
    parameters = std::max<std::int64_t>(1, 3 * hidden * width);
  }
};

// Operands of an operation and what it returned, which stays until the same set is used again: so results are
// written to memory that no cache holds either.
struct Set {
  std::vector<at::Tensor> in, out;
  ops::PackedLinear packed = {};  ///< where the operation wants weights so
};

struct Kernel {
  std::string name, shape;
  Work work;
  std::int64_t set_bytes;  ///< of operands and results
  std::function<std::vector<at::Tensor>()> operands;
  std::function<void(Set&)> run;
};

class KernelList {
 public:
  KernelList(const Sizes& sizes, at::ScalarType dtype, at::Device device)
      : s_(sizes), options_(at::TensorOptions().dtype(dtype).device(device)) {
    add_elementwise();
    if (s_.heads.num_heads > 0) add_attention();
    add_head();
    add_weights();
  }
  const std::vector<Kernel>& all() const { return kernels_; }

 private:
  at::Tensor tensor(at::IntArrayRef shape) const {
    return irregular(c10::multiply_integers(shape), options_).view(shape);
  }
  at::Tensor floats(std::int64_t count) const { return irregular(count, options_.dtype(at::kFloat)); }

  template <typename... Parts>
  static std::string shape_of(const Parts&... parts) {
    return base::join(parts...);
  }

  void add_elementwise() {
    const auto n = s_.tokens, d = s_.hidden, w = s_.width, item = s_.item_bytes;
    kernels_.push_back({"rms_norm", shape_of(n, " x ", d), rms_norm_work(n, d, item), 2 * n * d * item,
                        [=, this] {
                          return std::vector{tensor({n, d}), tensor({d})};
                        },
                        [](Set& set) {
                          auto norm = ops::rms_norm(set.in[0], set.in[1], 1e-5);
                          set.out = {norm.y_ND, norm.rstd_N};
                        }});
    kernels_.push_back({"rms_norm_backward", shape_of(n, " x ", d), rms_norm_backward_work(n, d, item),
                        4 * n * d * item,
                        [=, this] {
                          return std::vector{tensor({n, d}), tensor({n, d}), tensor({d}),
                                             floats({n}),    tensor({n, d}), floats({d})};
                        },
                        [](Set& set) {
                          set.out = {ops::rms_norm_backward(set.in[0], set.in[1], set.in[2], set.in[3],
                                                            set.in[4], set.in[5])};
                        }});
    if (w == 0) return;
    kernels_.push_back({"swiglu", shape_of(n, " x ", w), swiglu_work(n, w, item), 3 * n * w * item,
                        [=, this] {
                          return std::vector{tensor({n, 2 * w})};
                        },
                        [](Set& set) { set.out = {ops::swiglu(set.in[0])}; }});
    kernels_.push_back({"swiglu_backward", shape_of(n, " x ", w), swiglu_backward_work(n, w, item),
                        4 * n * w * item,
                        [=, this] {
                          return std::vector{tensor({n, w}), tensor({n, 2 * w})};
                        },
                        [](Set& set) { set.out = {ops::swiglu_backward_(set.in[0], set.in[1]).out_NI}; }});
  }

  void add_attention() {
    const auto n = s_.tokens, item = s_.item_bytes, dim = s_.heads.head_dim, queries = s_.heads.num_heads,
               keys = s_.heads.num_kv_heads;
    const auto heads = s_.heads;
    const auto shape = shape_of(n, " x ", queries, "/", keys, " heads of ", dim);
    const auto qkv_bytes = n * (queries + 2 * keys) * dim * item, q_bytes = n * queries * dim * item;
    const std::vector<std::int64_t> starts = {0, n};
    const auto qkv = [=, this] {
      return std::vector{tensor({n, queries, dim}), tensor({n, keys, dim}), tensor({n, keys, dim})};
    };
    kernels_.push_back(
        {"rotary", shape, rotary_work(heads, n, item), qkv_bytes,
         [=, this] {
           const auto tables = ops::rotary_tables(at::arange(n, options_.dtype(at::kLong)),
                                                  ops::rotary_frequencies(dim, 1e4).to(options_.device()));
           return std::vector{tensor({n, (queries + keys) * dim}), tables.cos_NE2, tables.sin_NE2};
         },
         [=](Set& set) {
           ops::apply_rotary(set.in[0], queries + keys, dim, {set.in[1], set.in[2]}, 1);
         }});
    kernels_.push_back(
        {"attention", shape, attention_work(heads, n), qkv_bytes + q_bytes, qkv, [=](Set& set) {
           auto made = ops::attention(set.in[0], set.in[1], set.in[2], starts);
           set.out = {made.out_NHE, made.lse_HN};
         }});
    kernels_.push_back(
        {"attention_backward", shape, attention_backward_work(heads, n), 2 * qkv_bytes + 2 * q_bytes,
         [=, this] {
           auto in = qkv();
           const auto made = ops::attention(in[0], in[1], in[2], starts);
           for (const auto& more : {made.out_NHE, made.lse_HN, tensor({n, queries, dim})}) in.push_back(more);
           for (const auto& more : qkv()) in.push_back(more);
           return in;
         },
         [=](Set& set) {
           const auto& in = set.in;
           ops::attention_backward(in[5], in[0], in[1], in[2], {in[3], in[4]}, starts, in[6], in[7], in[8]);
         }});
    const auto pages = ops::pages_up_to(n);
    std::vector<std::int32_t> order(static_cast<std::size_t>(pages));
    std::iota(order.begin(), order.end(), 0);
    kernels_.push_back(
        {"paged_attention", shape_of("1 to ", n, " x ", queries, "/", keys, " heads of ", dim),
         paged_attention_work(heads, n, item), 2 * n * keys * dim * item,
         [=, this] {
           const auto page_rows = [&] { return tensor({pages, ops::kPageTokens, keys, dim}); };
           return std::vector{tensor({1, (queries + 2 * keys) * dim}), page_rows(), page_rows()};
         },
         [=](Set& set) {
           const ops::PagedText text[] = {{order, n}};
           set.out = {ops::attention_of_texts(set.in[0], text, {set.in[1], set.in[2]})};
         }});
  }

  void add_head() {
    const auto rows = s_.head_rows, vocab = s_.vocab, item = s_.item_bytes;
    if (!ops::has_logit_losses(ops::path_of(options_.device()), item, 1)) return;
    const auto shape = shape_of(rows, " x ", vocab);
    const auto targets = [=, this] { return at::zeros({rows}, options_.dtype(at::kLong)); };
    kernels_.push_back({"cross_entropy", shape, cross_entropy_work(rows, vocab, item),
                        2 * rows * vocab * item,
                        [=, this] {
                          return std::vector{tensor({rows, vocab}), tensor({rows, vocab}), targets()};
                        },
                        [](Set& set) {
                          ops::logit_losses(set.in[0], {}, set.in[2], {{.gradient_scale = 1e-6}}, set.in[1]);
                        }});
    kernels_.push_back(
        {"kl_divergence", shape, kl_divergence_work(rows, vocab, item), 3 * rows * vocab * item,
         [=, this] {
           return std::vector{tensor({rows, vocab}), tensor({rows, vocab}), targets(), tensor({rows, vocab})};
         },
         [](Set& set) {
           ops::logit_losses(
               set.in[0], set.in[1], set.in[2],
               {{.kind = kernels::LogitTermKind::forward_kl, .temperature = 3, .gradient_scale = 1e-6}},
               set.in[3]);
         }});
  }

  void add_weights() {
    const auto d = s_.hidden, w = s_.width, count = s_.parameters, item = s_.item_bytes;
    const bool copies = options_.dtype() == at::kBFloat16;
    kernels_.push_back(
        {"adamw", shape_of(count, " parameters"), adamw_work(count, item), 18 * count,
         [=, this] {
           return std::vector{floats(count), floats(count), floats(count), floats(count).abs_(),
                              copies ? tensor({count}) : at::Tensor()};
         },
         [](Set& set) {
           ops::adamw_(
               set.in[0], set.in[1], set.in[2], set.in[3], set.in[4],
               {.lr = 1e-6, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .step = 10});
         }});
    const auto rows = w > 0 ? 2 * w : s_.vocab;
    kernels_.push_back({"decode_product", shape_of("1 x ", d, " by ", d, " x ", rows),
                        decode_product_work(rows, d, item), rows * d * item,
                        [=, this] {
                          return std::vector{tensor({1, d}), tensor({rows, d})};
                        },
                        [](Set& set) {
                          if (!set.packed.defined()) {  // in the first run, which is not timed
                            set.packed = ops::PackedLinear(set.in[1]);
                            set.in[1] = at::Tensor();
                          }
                          set.out = {ops::linear_apart(set.in[0], set.packed)};
                        }});
  }

  Sizes s_;
  at::TensorOptions options_;
  std::vector<Kernel> kernels_;
};

std::int64_t sets_of(const Kernel& kernel, at::Device device) {
  return std::clamp<std::int64_t>(cold_bytes(device) / std::max<std::int64_t>(1, kernel.set_bytes), 1,
                                  kMostSets);
}

double measured_seconds(const Kernel& kernel, at::Device device, const Effort& effort) {
  std::vector<Set> sets(static_cast<std::size_t>(sets_of(kernel, device)));
  for (auto& set : sets) set.in = kernel.operands();
  for (auto& set : sets) kernel.run(set);  // results of all sets have their memory from here on
  std::size_t next = 0;
  Timed work{[&] { kernel.run(sets[next++ % sets.size()]); }};
  time_in_turn({&work, 1}, effort, device);
  return work.seconds;
}

}  // namespace

std::vector<KernelRate> measure_kernels(const architecture::Config& config, std::int64_t tokens,
                                        at::ScalarType dtype, at::Device device, const Effort& effort,
                                        const std::function<void(double share)>& done) {
  const auto item_bytes = static_cast<std::int64_t>(at::elementSize(dtype));
  const KernelList list({config, tokens, item_bytes}, dtype, device);
  const auto count = static_cast<double>(list.all().size());
  Effort each = effort;
  each.seconds /= count;
  std::vector<KernelRate> rates;
  for (const auto& kernel : list.all()) {
    rates.push_back({kernel.name, kernel.shape, kernel.work, measured_seconds(kernel, device, each)});
    if (done) done(static_cast<double>(rates.size()) / count);
  }
  return rates;
}

std::int64_t kernel_bytes(const architecture::Config& config, std::int64_t tokens, std::int64_t item_bytes,
                          at::Device device) {
  const auto dtype = item_bytes == 2 ? at::kBFloat16 : at::kFloat;
  const KernelList list({config, tokens, item_bytes}, dtype, device);
  std::int64_t most = 0;
  for (const auto& kernel : list.all()) most = std::max(most, kernel.set_bytes * sets_of(kernel, device));
  return most;
}

}  // namespace retort::bench
