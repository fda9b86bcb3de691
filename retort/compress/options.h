#pragma once
// How the weights that go are chosen when a layer is made sparse.

#include "retort/base/words.h"

namespace retort::compress {

/// How the weights of a group that go are chosen.
enum class MaskChoice {
  saliency,  ///< each for itself, w^2 / U_kk^2: the authors' approximation
  exact  ///< all sets of a group compared, six for 2:4, by what removing them together costs when all that is
         ///< not yet fixed makes up for it
};
constexpr auto words_of(MaskChoice) {
  return base::words<MaskChoice::exact>("saliency", "exact");
}

/// What makes a layer sparse.
enum class SparseMethod {
  alps,        ///< all masks of a layer at once, by alternating directions.  Source: Meng et al. (2024)
  sparse_gpt,  ///< column after column, with update of the weights that stay.  Source: Frantar & Alistarh
               ///< (2023)
  wanda,       ///< the least |w| ||x||_2 of each group become 0.  Source: Sun et al. (2023)
  magnitude    ///< the least |w|
};
constexpr auto words_of(SparseMethod) {
  return base::words<SparseMethod::magnitude>("alps", "sparse_gpt", "wanda", "magnitude");
}

/// Whether it changes the weights that stay, which takes a factor of the Hessian.
constexpr bool updates_weights(SparseMethod method) {
  return method == SparseMethod::sparse_gpt || method == SparseMethod::alps;
}

}  // namespace retort::compress
