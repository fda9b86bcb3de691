#pragma once
// All families, each in a file of its own.

#include "retort/architecture/family.h"

namespace retort::architecture {

extern const Family kLlama, kMistral, kMinistral, kMinistral3, kQwen2, kQwen3, kSmolLM3, kPhi3, kOlmo2,
    kOlmo3, kGemma2, kGemma3, kGranite;

}  // namespace retort::architecture
