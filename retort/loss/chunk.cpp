#include "retort/loss/chunk.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "retort/kernels/device/pieces.h"
#include "retort/ops/logit_losses.h"
#include "retort/ops/operation_clock.h"

namespace retort::loss {
namespace {

// The places of losses in their list, by who computes them.
struct Shares {
  std::vector<std::size_t> composed, in_kernels;
  std::vector<kernels::LogitTerm> terms;  // of those in kernels
};

Shares shares_of(const LogitLosses& losses, ops::Path path, std::int64_t item_bytes, Computed computed,
                 double step_targets = 1) {
  Shares shares;
  const auto known =
      std::ranges::count_if(losses, [](const auto& loss) { return loss->fused().has_value(); });
  const bool kernels = computed == Computed::in_kernels && ops::has_logit_losses(path, item_bytes, known);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto term = kernels ? losses[i]->fused() : std::nullopt;
    (term ? shares.in_kernels : shares.composed).push_back(i);
    if (!term) continue;
    shares.terms.push_back(*term);
    shares.terms.back().gradient_scale =
        losses[i]->weight() / step_targets * term->value_scale / term->temperature;
  }
  return shares;
}

// On a CPU each thread has a piece of its own, whose temporaries stay in its cache.
std::int64_t piece_rows(ops::Path path, std::int64_t rows, std::int64_t vocab) {
  if (path != ops::Path::cpu) return kernels::device::piece_rows(rows, vocab);
  constexpr std::int64_t kElements = std::int64_t{1} << 17;
  return std::clamp<std::int64_t>(kElements / vocab, 1, std::max<std::int64_t>(1, rows));
}
std::int64_t count_pieces(std::int64_t rows, std::int64_t of_piece) {
  return (rows + of_piece - 1) / of_piece;
}

class Chunk {
 public:
  Chunk(const LogitLosses& losses, const Shares& shares, const LogitRows& rows, double step_targets,
        const at::Tensor& grad_NV)
      : losses_(losses), shares_(shares), rows_(rows), step_targets_(step_targets), grad_NV_(grad_NV) {}

  /// Writes the gradient of `count` rows from `begin` on; returns the sums of their losses, [L].
  at::Tensor of_piece(std::int64_t begin, std::int64_t count) const {
    const auto part = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, begin, count) : x; };
    auto grad_RV = part(grad_NV_);
    const auto type = grad_RV.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto exact = [&](const at::Tensor& x) { return x.defined() ? part(x).to(type) : x; };
    const LogitRows rows{exact(rows_.student_RV), exact(rows_.teacher_RK), part(rows_.targets_R)};
    auto sum_RV = at::zeros(grad_RV.sizes(), grad_RV.options().dtype(type));
    const auto values_L = at::zeros({std::ssize(losses_)}, grad_RV.options().dtype(at::kDouble));
    compose(rows, values_L, sum_RV);
    // Last, for it may write over the logits.
    if (!shares_.terms.empty())
      add_of_kernels(rows, values_L, type == grad_RV.scalar_type() ? grad_RV : rows.student_RV, sum_RV);
    grad_RV.copy_(sum_RV);
    return values_L;
  }

 private:
  void compose(const LogitRows& rows, const at::Tensor& values_L, at::Tensor sum_RV) const {
    const auto skipped_R1 = rows.targets_R.lt(0).unsqueeze(1);
    for (const auto i : shares_.composed) {
      const auto& loss = *losses_[i];
      const auto of = loss.of(rows);
      sum_RV.narrow(1, 0, of.gradient_RK.size(1))
          .add_(of.gradient_RK.masked_fill_(skipped_R1, 0),
                loss.weight() / step_targets_ * of.gradient_scale);
      values_L[static_cast<std::int64_t>(i)] =
          of.value_R1.masked_fill(skipped_R1, 0).sum(at::kDouble).mul_(of.value_scale);
    }
  }

  void add_of_kernels(const LogitRows& rows, const at::Tensor& values_L, const at::Tensor& work_RV,
                      at::Tensor sum_RV) const {
    const auto values_K =
        ops::logit_losses(rows.student_RV, rows.teacher_RK, rows.targets_R, shares_.terms, work_RV);
    for (std::size_t k = 0; k < shares_.in_kernels.size(); ++k)
      values_L[static_cast<std::int64_t>(shares_.in_kernels[k])] = values_K[static_cast<std::int64_t>(k)];
    sum_RV.add_(work_RV);
  }

  const LogitLosses& losses_;
  const Shares& shares_;
  const LogitRows& rows_;
  double step_targets_;
  at::Tensor grad_NV_;
};

}  // namespace

at::Tensor LogitRows::student_RK() const {
  return student_RV.narrow(1, 0, teacher_RK.size(1));
}

at::Tensor losses_of_chunk(const LogitLosses& losses, const LogitRows& chunk, double step_targets,
                           at::Tensor grad_NV, Computed computed) {
  const ops::InOperation timed(ops::Operation::logit_losses);
  const auto rows = chunk.student_RV.size(0), vocab = chunk.student_RV.size(1);
  const auto path = ops::path_of(chunk.student_RV.device());
  const auto sums_options = chunk.student_RV.options().dtype(at::kDouble);
  auto sums_L = at::zeros({std::ssize(losses)}, sums_options);
  if (losses.empty()) {
    grad_NV.zero_();
    return sums_L;
  }
  const auto shares = shares_of(losses, path, chunk.student_RV.element_size(), computed, step_targets);
  if (shares.composed.empty())
    return ops::logit_losses(chunk.student_RV, chunk.teacher_RK, chunk.targets_R, shares.terms, grad_NV);
  const auto of_piece = piece_rows(path, rows, vocab), pieces = count_pieces(rows, of_piece);
  const auto values_PL = at::empty({pieces, std::ssize(losses)}, sums_options);
  const Chunk whole(losses, shares, chunk, step_targets, grad_NV);
  const auto compute = [&](std::int64_t begin, std::int64_t end) {
    for (auto piece = begin; piece < end; ++piece)
      values_PL[piece] = whole.of_piece(piece * of_piece, std::min(of_piece, rows - piece * of_piece));
  };
  if (path == ops::Path::cpu)
    at::parallel_for(0, pieces, 1, compute);
  else
    compute(0, pieces);
  for (std::int64_t piece = 0; piece < pieces; ++piece) sums_L.add_(values_PL[piece]);
  return sums_L;
}

std::int64_t composed_matrices(const LogitLosses& losses, ops::Path path, std::int64_t item_bytes,
                               Computed computed) {
  const auto shares = shares_of(losses, path, item_bytes, computed);
  if (shares.composed.empty()) return 0;
  const bool teacher = std::ranges::any_of(losses, [](const auto& loss) { return loss->needs_teacher(); });
  std::int64_t most = 0;
  for (const auto i : shares.composed) most = std::max(most, losses[i]->matrices());
  // With the sum of the gradients, and with the logits in float32 where they are not.
  return most + 1 + (item_bytes < 4 ? 1 + teacher : 0);
}

std::int64_t composed_bytes(std::int64_t matrices, ops::Path path, std::int64_t rows, std::int64_t vocab,
                            std::int64_t item_bytes) {
  if (rows == 0 || matrices == 0) return 0;
  const auto of_piece = piece_rows(path, rows, vocab);
  const auto at_once = path == ops::Path::cpu
                           ? std::min<std::int64_t>(at::get_num_threads(), count_pieces(rows, of_piece))
                           : 1;
  return at_once * matrices * of_piece * vocab * std::max<std::int64_t>(4, item_bytes);
}

}  // namespace retort::loss
