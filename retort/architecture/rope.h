#pragma once
// What follows from a rotary embedding alone.

#include "retort/architecture/config.h"

namespace retort::architecture {

/// What cos and sin are multiplied by.  Source: transformers 5.23.0, modeling_rope_utils.
double rope_factor(const Rope& rope);

}  // namespace retort::architecture
