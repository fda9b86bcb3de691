#pragma once
// What a recipe may say about a loss.

#include <string>
#include <vector>

namespace retort::loss {

enum class LossKind { cross_entropy, kl_divergence, squarehead };
enum class KlDirection { forward, reverse };  ///< forward: KL(teacher || student)
/// Which teacher block a student block is compared with.
enum class LayerMap {
  relative_depth,   ///< round((i + 1) L_T / L_S) - 1
  surviving,        ///< the teacher block that student block i was
  before_survivor,  ///< the teacher block just before the next survivor
};

struct LossOptions {
  LossKind kind = LossKind::cross_entropy;
  double weight = 1.0;
  double temperature = 3.0;                       ///< kl_divergence
  KlDirection direction = KlDirection::forward;   ///< kl_divergence
  bool temperature_squared = true;                ///< kl_divergence: scale by T squared
  LayerMap layer_map = LayerMap::relative_depth;  ///< squarehead
  double eps = 1.0e-6;                            ///< squarehead: added to the teacher's mean square
};

/// 0.25 CE + 1.0 KL at T = 3 + 1.0 SquareHead.  Source: Dickmann et al. 2025, section 3.6.3.
std::vector<LossOptions> default_distillation_losses();

}  // namespace retort::loss
