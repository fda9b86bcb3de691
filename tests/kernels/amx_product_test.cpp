// Products by AMX against float64: by the unit itself where there is one, and everywhere by its arithmetic in
// plain C++, with the same cutting into pieces and the same order of sums.
#include "retort/kernels/cpu/amx_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/emulated_amx.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using kernels::cpu::AmxResult;

// By the processor's kernels and by those in plain C++.
template <typename Body>
void by_every_kernel(Body body) {
  if (const auto* unit = kernels::amx_kernels()) {
    SCOPED_TRACE("AMX");
    body(*unit);
  }
  SCOPED_TRACE("its arithmetic");
  body(test::emulated_amx());
}

at::Tensor product_of(const kernels::AmxKernels& by, const at::Tensor& a_NK, const at::Tensor& b_KM) {
  auto out_NM = at::empty({a_NK.size(0), b_KM.size(1)});
  kernels::cpu::amx_product(by, out_NM, a_NK, b_KM, AmxResult::assigned);
  return out_NM;
}

// An operand of random numbers with rows, or columns, that are part of longer ones.
at::Tensor part_of_random(std::int64_t rows, std::int64_t columns, bool rows_are_dense, at::ScalarType type) {
  if (!rows_are_dense) return part_of_random(columns, rows, true, type).t();
  return at::randn({rows, columns + 7}).to(type).narrow(1, 3, columns);
}

// Both layouts of both operands, whole squares and rests of each side, several pieces of inner elements and
// of columns, and groups of pieces.  What takes long without the unit is left to it.
template <typename Check>
void for_every_amx_product(bool has_unit, Check check) {
  at::manual_seed(10);
  std::vector<std::array<std::int64_t, 3>> sizes{{1, 1, 1}, {32, 32, 32}, {33, 31, 47}, {40, 650, 65}};
  if (has_unit) sizes.insert(sizes.end(), {{129, 700, 1100}, {300, 1300, 40}, {70, 6000, 65}});
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const auto& [n, k, m] : sizes)
      for (const bool a_rows : {true, false})
        for (const bool b_rows : {true, false}) {
          SCOPED_TRACE(testing::Message() << at::toString(type) << " " << n << " x " << k << " x " << m << " "
                                          << a_rows << b_rows);
          check(part_of_random(n, k, a_rows, type), part_of_random(k, m, b_rows, type));
        }
}

bool is_unit(const kernels::AmxKernels& by) {
  return &by != &test::emulated_amx();
}

// The same bits for any number of threads, and nothing beside the result changed.
void expect_product(const kernels::AmxKernels& by, const at::Tensor& a_NK, const at::Tensor& b_KM) {
  const auto product_NM = at::mm(a_NK.to(at::kDouble), b_KM.to(at::kDouble));
  for (const auto result : {AmxResult::assigned, AmxResult::added}) {
    const bool added = result == AmxResult::added;
    const auto before_NM = at::randn({a_NK.size(0), b_KM.size(1) + 1});
    const auto part_of = [&](const at::Tensor& x) { return x.narrow(1, 0, b_KM.size(1)); };
    at::Tensor first_NM;
    for (const int threads : {1, 2, 3, 4}) {
      if (!is_unit(by) && threads % 2 == 0) continue;
      at::set_num_threads(threads);
      const auto out_NM = before_NM.clone();
      kernels::cpu::amx_product(by, part_of(out_NM), a_NK, b_KM, result);
      const auto expected_NM = added ? part_of(before_NM).to(at::kDouble) + product_NM : product_NM;
      test::expect_close(part_of(out_NM), expected_NM, test::tolerance(at::kFloat));
      test::expect_identical(out_NM.select(1, b_KM.size(1)), before_NM.select(1, b_KM.size(1)));
      if (!first_NM.defined()) first_NM = out_NM;
      test::expect_identical(out_NM, first_NM);
    }
  }
  at::set_num_threads(2);
}

TEST(AmxProduct, IsThatOfDoubleWithTheSameBitsForAnyNumberOfThreads) {
  by_every_kernel([](const kernels::AmxKernels& by) {
    for_every_amx_product(
        is_unit(by), [&](const at::Tensor& a_NK, const at::Tensor& b_KM) { expect_product(by, a_NK, b_KM); });
  });
}

// More rows than are summed at once in groups; b is in one part, which takes half as long.
TEST(AmxProduct, OfManyRowsAndPieces) {
  at::manual_seed(16);
  const auto a_NK = at::randn({1060, 5200}), b_KM = at::randn({5200, 20}).to(at::kBFloat16).to(at::kFloat);
  by_every_kernel([&](const kernels::AmxKernels& by) {
    test::expect_close(product_of(by, a_NK, b_KM), at::mm(a_NK.to(at::kDouble), b_KM.to(at::kDouble)),
                       test::tolerance(at::kFloat));
  });
}

// Several pieces of columns, of which some lie below the diagonal, and groups of pieces.
TEST(AmxProduct, AboveTheDiagonalHasTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(13);
  by_every_kernel([](const kernels::AmxKernels& by) {
    for (const auto& [n, c] : {std::pair{200, 1111}, std::pair{70, 200}, std::pair{5300, 70}}) {
      if (c > 1000 && !is_unit(by)) continue;  // takes long
      const auto x_NC = at::randn({n, c}), before_CC = at::randn({c, c});
      const auto expected_CC =
          at::triu(before_CC.to(at::kDouble) + at::mm(x_NC.to(at::kDouble).t(), x_NC.to(at::kDouble)));
      at::Tensor first_CC;
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        const auto sum_CC = before_CC.clone();
        kernels::cpu::amx_product(by, sum_CC, x_NC.t(), x_NC, AmxResult::added_above_the_diagonal);
        test::expect_close(at::triu(sum_CC), expected_CC, test::tolerance(at::kFloat));
        if (!first_CC.defined()) first_CC = at::triu(sum_CC);
        test::expect_identical(at::triu(sum_CC), first_CC);
      }
    }
  });
  at::set_num_threads(2);
}

// Three bfloat16 hold 24 bits, as float32 does: the root mean square error is no more than that of libtorch's
// product, with a tenth for chance.  How libtorch divides a sum differs by processor; on some the error of a
// short one is below a step of float32, which is as exact as anyone asks for.
void expect_as_exact(const at::Tensor& found_NM, const at::Tensor& a_NK, const at::Tensor& b_KM, bool upper) {
  const auto expected_NM = at::mm(a_NK.to(at::kDouble), b_KM.to(at::kDouble));
  const auto error = [&](const at::Tensor& x_NM) {
    const auto off_NM = x_NM.to(at::kDouble) - expected_NM;
    return ((upper ? at::triu(off_NM) : off_NM).norm() / expected_NM.norm()).item<double>();
  };
  const double step = std::numeric_limits<float>::epsilon();
  EXPECT_LE(error(found_NM), 1.1 * std::max(step, error(at::mm(a_NK, b_KM))));
}

TEST(AmxProduct, OfFloat32IsAsExactAsByVectors) {
  at::manual_seed(11);
  by_every_kernel([](const kernels::AmxKernels& by) {
    const auto side = is_unit(by) ? 256 : 64;
    for (const std::int64_t k : {64, 576, 2048}) {
      SCOPED_TRACE(k);
      const auto a_NK = at::randn({side, k}) * at::exp(3 * at::randn({side, k})), b_KM = at::randn({k, side});
      expect_as_exact(product_of(by, a_NK, b_KM), a_NK, b_KM, /*upper=*/false);
    }
  });
}

// Tokens, in gradients of weights and in sums of x^T x, and tokens of the vocabulary, in the head's gradient.
// A mean makes sums that grow with each element.  By one thread: libtorch divides a long sum of a small
// product among threads, which makes it shorter.
TEST(AmxProduct, OfLongSumsIsAsExactAsByVectors) {
  at::manual_seed(17);
  at::set_num_threads(1);
  by_every_kernel([](const kernels::AmxKernels& by) {
    const auto side = is_unit(by) ? 96 : 32;
    for (const std::int64_t k : {1000, 4096, 16384, 49152}) {
      for (const double mean : {0.0, 0.5}) {
        SCOPED_TRACE(testing::Message() << k << " elements of mean " << mean);
        const auto a_NK = at::randn({side, k}) + mean, b_KM = at::randn({k, side}) + mean;
        expect_as_exact(product_of(by, a_NK, b_KM), a_NK, b_KM, /*upper=*/false);
      }
      SCOPED_TRACE(testing::Message() << k << " rows of a sum of x^T x");
      const auto x_KM = at::randn({k, side}) + 0.5, sum_MM = at::zeros({side, side});
      kernels::cpu::amx_product(by, sum_MM, x_KM.t(), x_KM, AmxResult::added_above_the_diagonal);
      expect_as_exact(sum_MM, x_KM.t(), x_KM, /*upper=*/true);
    }
  });
  at::set_num_threads(2);
}

// float32 numbers that are bfloat16 ones have two parts of zero, which are left out: the sums have the same
// bits as beside a column that needs all parts.
TEST(AmxProduct, OfNumbersInOnePartHasTheBitsOfThoseInThree) {
  at::manual_seed(14);
  at::set_num_threads(1);  // which packs all columns together
  const auto a_NK = at::randn({100, 700}), in_one_KM = at::randn({700, 96}).to(at::kBFloat16).to(at::kFloat);
  const auto in_three_KM = at::cat({in_one_KM, at::randn({700, 1})}, 1);
  by_every_kernel([&](const kernels::AmxKernels& by) {
    test::expect_identical(product_of(by, a_NK, in_one_KM),
                           product_of(by, a_NK, in_three_KM).narrow(1, 0, 96).contiguous());
  });
  at::set_num_threads(2);
}

TEST(AmxProduct, SeesWhichNumbersOnePartHolds) {
  at::manual_seed(15);
  by_every_kernel([](const kernels::AmxKernels& by) {
    const auto x = at::randn({40, 50}).to(at::kBFloat16).to(at::kFloat);
    const auto words = at::empty({64 * 64 * 3 / 2}, at::kInt);  // aligned as tensors are
    const auto in_one_part = [&](bool rows) {
      return by.f32.pack({x.const_data_ptr<float>(), rows ? 50 : 1, rows ? 1 : 50}, rows ? 40 : 50,
                         rows ? 50 : 40, /*lines_are_columns=*/true,
                         static_cast<std::uint32_t*>(words.mutable_data_ptr()));
    };
    EXPECT_TRUE(in_one_part(true) && in_one_part(false));
    x[39][49] = 1.001f;
    EXPECT_FALSE(in_one_part(true) || in_one_part(false));
  });
}

// Products of parts below 2^-126 count as zero.
TEST(AmxProduct, OfFloat32KeepsTheRangeOfFloat32) {
  at::manual_seed(12);
  const auto a_NK = at::randn({64, 96}), b_KM = at::randn({96, 64});
  by_every_kernel([&](const kernels::AmxKernels& by) {
    const auto tiny_NM = product_of(by, a_NK * 1e-18, b_KM * 1e-18);
    const auto expected_NM = at::mm((a_NK * 1e-18).to(at::kDouble), (b_KM * 1e-18).to(at::kDouble));
    EXPECT_LE((tiny_NM.to(at::kDouble) - expected_NM).abs().max().item<double>(),
              6.0 * 96 * std::numeric_limits<float>::min());
    const auto subnormal_NK = at::full({64, 96}, 1e-39), large_KM = at::full({96, 64}, 1e20);
    EXPECT_EQ(product_of(by, subnormal_NK, large_KM).abs().max().item<double>(), 0);
    for (const double scale : {1e-15, 1e18})
      test::expect_close(product_of(by, a_NK * scale, b_KM * scale) / (scale * scale),
                         at::mm(a_NK.to(at::kDouble), b_KM.to(at::kDouble)), test::tolerance(at::kFloat));
  });
}

TEST(AmxProduct, ShowsWhatIsNotFiniteInItsRowAndColumnAndNowhereElse) {
  at::manual_seed(12);
  const auto a_NK = at::randn({64, 96}), b_KM = at::randn({96, 64});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto all_ones = std::bit_cast<float>(std::uint32_t{0x7fffffff});  // a NaN that rounds up to zero
  by_every_kernel([&](const kernels::AmxKernels& by) {
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), all_ones}) {
      const auto with_bad_NK = a_NK.clone(), bad_KM = b_KM.clone();
      with_bad_NK[3][5] = bad;
      bad_KM[5][7] = bad;
      auto finite_NM = at::isfinite(product_of(by, with_bad_NK, b_KM));
      EXPECT_FALSE(finite_NM[3].any().item<bool>()) << bad;
      EXPECT_EQ(finite_NM.sum().item<std::int64_t>(), 63 * 64) << bad;
      finite_NM = at::isfinite(product_of(by, a_NK, bad_KM));
      EXPECT_FALSE(finite_NM.select(1, 7).any().item<bool>()) << bad;
      EXPECT_EQ(finite_NM.sum().item<std::int64_t>(), 63 * 64) << bad;
    }
  });
}

}  // namespace
}  // namespace retort
