#include "retort/kernels/tables.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "retort/kernels/cpu/dispatch.h"

namespace retort::kernels::cpu {
namespace {

// Where the scores of a row go.
template <typename C>
struct Columns {
  C *nll, *kl, *confidence, *teacher_nll;
  std::int64_t *top1, *teacher_top1;
  bool* agreed;
};

ChunkScores empty_scores(const at::Tensor& logits_NV, bool with_teacher) {
  const auto column = [&](at::ScalarType type) {
    return at::empty({logits_NV.size(0)}, logits_NV.options().dtype(type));
  };
  const auto value = [&] { return column(statistics_type(logits_NV)); };
  ChunkScores scores;
  scores.nll_N = value();
  scores.top1_N = column(at::kLong);
  scores.confidence_N = value();
  if (!with_teacher) return scores;
  scores.kl_N = value();
  scores.agreed_N = column(at::kBool);
  scores.teacher_nll_N = value();
  scores.teacher_top1_N = column(at::kLong);
  return scores;
}

template <typename C>
Columns<C> columns_of(const ChunkScores& scores) {
  const auto of = [](const at::Tensor& x, auto* none) {
    return x.defined() ? data<std::remove_pointer_t<decltype(none)>>(x) : nullptr;
  };
  constexpr C* kValue = nullptr;
  constexpr std::int64_t* kIndex = nullptr;
  constexpr bool* kFlag = nullptr;
  return {of(scores.nll_N, kValue),         of(scores.kl_N, kValue),   of(scores.confidence_N, kValue),
          of(scores.teacher_nll_N, kValue), of(scores.top1_N, kIndex), of(scores.teacher_top1_N, kIndex),
          of(scores.agreed_N, kFlag)};
}

template <typename T>
struct Row {
  using C = typename ComputeOf<T>::type;
  const T* logits_V;
  std::int64_t vocab;
  RowSum<C> sum;

  Row(const at::Tensor& logits_NV, std::int64_t row)
      : logits_V(data<T>(logits_NV) + row * logits_NV.stride(0)),
        vocab(logits_NV.size(1)),
        sum(kernels<T>().row_sum(logits_V, vocab)) {}

  C nll(std::int64_t target) const {
    if (target < 0) return C(0);
    return static_cast<C>(sum.log_sum - static_cast<double>(widened(logits_V[target])));
  }
  C probability(C logit) const { return static_cast<C>(std::exp(static_cast<double>(logit) - sum.log_sum)); }
  /// Of the first `tokens` entries alone.
  RowSum<C> of_tokens(std::int64_t tokens) const {
    return tokens == vocab ? sum : kernels<T>().row_sum(logits_V, tokens);
  }
};

ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens) {
  const auto scores = empty_scores(student_NV, teacher_NV.defined());
  const auto* targets = targets_N.const_data_ptr<std::int64_t>();
  with_element(student_NV, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    const auto to = columns_of<C>(scores);
    const auto tokens = num_tokens == 0 ? student_NV.size(1) : num_tokens;
    at::parallel_for(0, student_NV.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto n = begin; n < end; ++n) {
        const Row<T> student(student_NV, n);
        const auto s = student.of_tokens(tokens);
        to.nll[n] = student.nll(targets[n]);
        to.top1[n] = s.top_index;
        to.confidence[n] = student.probability(s.top);
        if (!teacher_NV.defined()) continue;
        const Row<T> teacher(teacher_NV, n);
        const auto t = teacher.of_tokens(tokens);
        to.teacher_nll[n] = teacher.nll(targets[n]);
        to.teacher_top1[n] = t.top_index;
        to.agreed[n] = s.top_index == t.top_index;
        to.kl[n] = targets[n] < 0
                       ? C(0)
                       : static_cast<C>(kernels<T>().row_divergence(
                             student.logits_V, teacher.logits_V, t.log_sum, s.log_sum - t.log_sum, tokens));
      }
    });
  });
  return scores;
}

std::pair<at::Tensor, at::Tensor> sums_without(const at::Tensor& logits_NV, const at::Tensor& ids_NK) {
  const auto rows = logits_NV.size(0), vocab = logits_NV.size(1), kept = ids_NK.size(1);
  const auto ids = ids_NK.contiguous();
  const auto options = logits_NV.options().dtype(statistics_type(logits_NV));
  const auto sums_N1 = at::empty({rows, 1}, options), least_N1 = at::empty({rows, 1}, options);
  with_element(logits_NV, [&](auto element) {
    using T = typename decltype(element)::type;
    using C = typename ComputeOf<T>::type;
    at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<C> copy_V(static_cast<std::size_t>(vocab));
      for (auto n = begin; n < end; ++n)
        data<C>(sums_N1)[n] =
            static_cast<C>(kernels<T>()
                               .row_sum_without(data<T>(logits_NV) + n * logits_NV.stride(0),
                                                data<std::int32_t>(ids) + n * kept, kept, vocab,
                                                copy_V.data(), data<C>(least_N1) + n)
                               .log_sum);
    });
  });
  return {sums_N1, least_N1};
}

}  // namespace

const ScoreKernels kScores{.score_chunk = score_chunk, .sums_without = sums_without};

}  // namespace retort::kernels::cpu
