#pragma once
// The product of two packed panels, by a unit that multiplies squares.
//
// A unit is a type: AMX in vector_amx.cpp, and its arithmetic in plain C++ in tests, which so test this order
// of sums on every processor.  It has 2 by 2 squares of sums, to which it adds the products of two squares of
// a, one below the other, and two of b, beside each other: load_a() and load_b() take them, add_products()
// adds.

#include "retort/kernels/cpu/amx_kernels.h"

namespace retort::kernels::amx {

template <int kOfA, int kOfB>
struct PartsOf {};
inline constexpr auto kAmxPart = 2 * kAmxWordsOfSquare;

// The six products of parts that count in float32, in an order of few loads that ends with the largest; the
// other three together are below 2^-24 of the whole.
template <typename Unit>
void add_step(const std::uint32_t* a, const std::uint32_t* b, PartsOf<3, 3>) {
  const auto *high = b, *middle = b + kAmxPart, *low = b + 2 * kAmxPart;
  Unit::load_a(a + 2 * kAmxPart), Unit::load_b(high), Unit::add_products();
  Unit::load_a(a + kAmxPart), Unit::add_products();
  Unit::load_b(middle), Unit::add_products();
  Unit::load_a(a), Unit::add_products();
  Unit::load_b(low), Unit::add_products();
  Unit::load_b(high), Unit::add_products();
}
// Those of them that are not zero; the sums have the same bits.
template <typename Unit>
void add_step(const std::uint32_t* a, const std::uint32_t* b, PartsOf<3, 1>) {
  Unit::load_a(a + 2 * kAmxPart), Unit::load_b(b), Unit::add_products();
  Unit::load_a(a + kAmxPart), Unit::add_products();
  Unit::load_a(a), Unit::add_products();
}
template <typename Unit>
void add_step(const std::uint32_t* a, const std::uint32_t* b, PartsOf<1, 1>) {
  Unit::load_a(a), Unit::load_b(b), Unit::add_products();
}

template <typename Unit, int kParts, typename Parts>
void add_steps(const AmxProduct& p, Parts parts) {
  constexpr auto kStep = kParts * kAmxPart;
  for (std::int64_t step = 0; step < p.steps; ++step)
    add_step<Unit>(p.a + step * kStep, p.b + step * kStep, parts);
}

// A sum in float32 is rounded at each of a step's six products, and the larger it is the more.  So the sum of
// a piece begins at zero, and is added to others once.  In bfloat16 the operands' own rounding is a thousand
// times that, and one sum goes on.
template <typename Unit, int kParts>
void multiply(const AmxProduct& p) {
  constexpr bool kApart = kParts > 1;
  const bool add_after = kApart && p.add;
  if (p.add && !add_after)
    Unit::load_sums(p.out, p.out_row);
  else
    Unit::zero_sums();
  if (p.b_in_one_part)
    add_steps<Unit, kParts>(p, PartsOf<kParts, 1>{});
  else
    add_steps<Unit, kParts>(p, PartsOf<kParts, kParts>{});
  if (!add_after) return Unit::store_sums(p.out, p.out_row);
  alignas(64) float sums[kAmxLines * kAmxLines];
  Unit::store_sums(sums, kAmxLines);
  for (std::int64_t row = 0; row < kAmxLines; ++row)
    for (std::int64_t column = 0; column < kAmxLines; ++column)
      p.out[row * p.out_row + column] += sums[row * kAmxLines + column];
}

}  // namespace retort::kernels::amx
