#include "retort/kernels/cpu/two_four.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/types.h"

namespace retort::kernels::cpu {
namespace {

bool is_zero(float x) {
  return x == 0;
}
bool is_zero(Bf16 x) {
  return (x.bits & 0x7fff) == 0;
}

constexpr std::int8_t kNoPair = -1;

// By the places of a group that are not zero, a bit for each: the first of kTwoFourPairs that has them.
struct PairOfPlaces {
  std::array<std::int8_t, 1 << kTwoFourGroupInputs> of{};
  constexpr PairOfPlaces() {
    for (unsigned places = 0; places < of.size(); ++places) {
      of[places] = kNoPair;
      for (std::int8_t pair = kTwoFourUsedPairs - 1; pair >= 0; --pair)
        if ((places & ~(1U << kTwoFourPairs[pair][0] | 1U << kTwoFourPairs[pair][1])) == 0) of[places] = pair;
    }
  }
};

// Packs the groups of one row that belong to a piece; false where one of them is not 2:4.
template <typename T>
bool pack_groups(const T* weights, std::int64_t groups, Choices choices, std::int64_t row, std::byte* piece) {
  static constexpr PairOfPlaces pairs;
  std::uint32_t words[2] = {};  // by value: of the two weights; by pair: of even and of odd groups
  auto* kept = reinterpret_cast<T*>(piece + kTwoFourWeightsAt) + 2 * row;
  for (std::int64_t g = 0; g < groups; ++g, weights += kTwoFourGroupInputs, kept += 2 * kTwoFourTileRows) {
    unsigned places = 0;
    for (unsigned place = 0; place < kTwoFourGroupInputs; ++place)
      places |= static_cast<unsigned>(!is_zero(weights[place])) << place;
    const auto pair = pairs.of[places];
    if (pair == kNoPair) return false;
    const auto* at = kTwoFourPairs[pair];
    for (int i = 0; i < 2; ++i) kept[i] = weights[at[i]];
    if (choices == Choices::by_value) {
      for (int i = 0; i < 2; ++i) words[i] |= std::uint32_t{at[i]} << (2 * g);
    } else {
      const auto slot = kTwoFourPairSlots * (g % 2) + pair;
      words[g % 2] |= static_cast<std::uint32_t>(slot) << (4 * (g / 2));
    }
  }
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto word = choices == Choices::by_value ? 2 * row + i : kTwoFourTileRows * i + row;
    std::memcpy(piece + word * std::int64_t{sizeof *words}, &words[i], sizeof *words);
  }
  return true;
}

template <typename T>
bool pack_tile(const T* w_RK, std::int64_t rows, std::int64_t inputs, Choices choices, std::byte* tile) {
  if (rows < kTwoFourTileRows || inputs % kTwoFourPieceInputs != 0)
    std::memset(tile, 0, static_cast<std::size_t>(two_four_tile_bytes(inputs, sizeof(T))));
  for (std::int64_t row = 0; row < rows; ++row, w_RK += inputs) {
    auto* piece = tile;
    for (std::int64_t input = 0; input < inputs;
         input += kTwoFourPieceInputs, piece += two_four_piece_bytes(sizeof(T))) {
      const auto groups = std::min(inputs - input, kTwoFourPieceInputs) / kTwoFourGroupInputs;
      if (!pack_groups(w_RK + input, groups, choices, row, piece)) return false;
    }
  }
  return true;
}

template <typename T>
bool pack_tiles(const at::Tensor& w_RK, Choices choices, const at::Tensor& packed) {
  const auto rows = w_RK.size(0), inputs = w_RK.size(1), bytes = two_four_tile_bytes(inputs, sizeof(T));
  std::atomic<bool> holds = true;
  at::parallel_for(0, two_four_tiles(rows), 1, [&](std::int64_t first, std::int64_t last) {
    for (auto tile = first; tile < last && holds; ++tile) {
      const auto row = tile * kTwoFourTileRows;
      if (!pack_tile(data<T>(w_RK) + row * inputs, std::min(kTwoFourTileRows, rows - row), inputs, choices,
                     data<std::byte>(packed) + tile * bytes))
        holds = false;
    }
  });
  return holds;
}

}  // namespace

std::optional<Choices> two_four_choices(at::ScalarType type) {
  if (type == at::kBFloat16 && pair_kernels()) return Choices::by_pair;
  if (type == at::kBFloat16 && kernels<Bf16>().two_four) return Choices::by_value;
  if (type == at::kFloat && kernels<float>().two_four) return Choices::by_value;
  return {};
}

at::Tensor two_four_packed(const at::Tensor& w_RK, Choices choices) {
  const auto rows = w_RK.size(0), inputs = w_RK.size(1);
  if (inputs % kTwoFourGroupInputs != 0) return {};
  const auto item_bytes = static_cast<std::int64_t>(w_RK.element_size());
  const auto packed = at::empty({two_four_tiles(rows) * two_four_tile_bytes(inputs, item_bytes)}, at::kByte);
  const bool holds = w_RK.scalar_type() == at::kFloat ? pack_tiles<float>(w_RK, choices, packed)
                                                      : pack_tiles<Bf16>(w_RK, choices, packed);
  return holds ? packed : at::Tensor();
}

}  // namespace retort::kernels::cpu
