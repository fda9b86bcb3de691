#pragma once
// Ways in which scores come about, for tests of attention.

#include <vector>

#include "retort/ops/attention.h"

namespace retort::test {

inline std::vector<ops::ScoreRule> rules() {
  return {{},
          {.window = 7},
          {.scale = 0.3, .softcap = 2},
          {.scale = 0.5, .softcap = 1.5, .window = 33},
          {.window = 1},
          {.window = 1000}};
}

}  // namespace retort::test
