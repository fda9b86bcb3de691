#pragma once
// What a recipe may say about a loss.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "retort/base/words.h"

namespace retort::loss {

enum class LossKind { cross_entropy, kl_divergence, jensen_shannon, total_variation, squarehead };

/// What is known of a kind of loss before one is made.
struct LossTraits {
  LossKind kind = {};
  std::string_view name;          ///< in recipes and metrics
  bool needs_teacher = false;     ///< compares with another model
  bool on_hidden_states = false;  ///< looks at the outputs of blocks; else at logits

  /// Compares the student's probabilities with the teacher's, and asks for no token that is right.
  constexpr bool compares_distributions() const { return needs_teacher && !on_hidden_states; }
};

/// The one list of the kinds of losses, in the order of LossKind.
inline constexpr auto kLossTraits = std::to_array<LossTraits>({
    {.kind = LossKind::cross_entropy, .name = "cross_entropy"},
    {.kind = LossKind::kl_divergence, .name = "kl_divergence", .needs_teacher = true},
    {.kind = LossKind::jensen_shannon, .name = "jensen_shannon", .needs_teacher = true},
    {.kind = LossKind::total_variation, .name = "total_variation", .needs_teacher = true},
    {.kind = LossKind::squarehead, .name = "squarehead", .needs_teacher = true, .on_hidden_states = true},
});
static_assert([] {
  std::size_t place = 0;
  for (const auto& traits : kLossTraits)
    if (traits.kind != static_cast<LossKind>(place++)) return false;
  return true;
}());

constexpr const LossTraits& traits_of(LossKind kind) {
  return kLossTraits.at(static_cast<std::size_t>(kind));
}

constexpr auto words_of(LossKind) {
  std::array<std::string_view, kLossTraits.size()> words;
  for (std::size_t kind = 0; kind < words.size(); ++kind) words[kind] = kLossTraits[kind].name;
  return words;
}

enum class KlDirection { forward, reverse };  ///< forward: KL(teacher || student)
constexpr auto words_of(KlDirection) {
  return base::words<KlDirection::reverse>("forward", "reverse");
}

/// Which teacher block a student block is compared with.
enum class LayerMap {
  relative_depth,   ///< round((i + 1) L_T / L_S) - 1
  surviving,        ///< the teacher block that student block i was
  before_survivor,  ///< the teacher block just before the next survivor
};
constexpr auto words_of(LayerMap) {
  return base::words<LayerMap::before_survivor>("relative_depth", "surviving", "before_survivor");
}

struct LossOptions {
  LossKind kind = LossKind::cross_entropy;
  double weight = 1.0;
  double temperature = 1.0;                       ///< kl_divergence, jensen_shannon, total_variation
  KlDirection direction = KlDirection::forward;   ///< kl_divergence
  bool temperature_squared = true;                ///< kl_divergence, jensen_shannon: scale by T squared
  double beta = 0.5;                              ///< jensen_shannon: the teacher's share of the mixture
  LayerMap layer_map = LayerMap::relative_depth;  ///< squarehead
  double eps = 1.0e-6;                            ///< squarehead: added to the teacher's mean square
};

/// 0.5 CE + 1.0 KL at T = 1: of eleven sums on a real model the least loss on other text, near the least on
/// the text that is learned (docs/decisions/0041-default-losses.md).
inline std::vector<LossOptions> default_distillation_losses() {
  return {{.kind = LossKind::cross_entropy, .weight = 0.5},
          {.kind = LossKind::kl_divergence, .weight = 1.0, .temperature = 1.0}};
}

/// 0.25 CE + 1.0 KL at T = 3 + 1.0 SquareHead.  Source: Dickmann et al. 2025, section 3.6.3.
inline std::vector<LossOptions> paper_distillation_losses() {
  return {{.kind = LossKind::cross_entropy, .weight = 0.25},
          {.kind = LossKind::kl_divergence, .weight = 1.0, .temperature = 3.0},
          {.kind = LossKind::squarehead, .weight = 1.0}};
}

}  // namespace retort::loss
