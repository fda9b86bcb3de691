#include "retort/compress/group_mask.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"

namespace retort::compress {

void require_groups(std::int64_t columns, const model::Pattern& pattern, const std::string& who) {
  base::require<base::UsageError>(columns % pattern.group == 0, who, ": has ", columns,
                                  " columns, expected a multiple of ", pattern.group,
                                  "; leave this layer out.");
}

at::Tensor highest_of_groups(const at::Tensor& score_RC, const model::Pattern& pattern) {
  const auto score_RGM = score_RC.unflatten(1, {-1, pattern.group});
  const auto order_RGM = std::get<1>(score_RGM.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/false));
  auto kept_RGM = at::ones(order_RGM.sizes(), order_RGM.options().dtype(at::kBool));
  kept_RGM.scatter_(-1, order_RGM.narrow(-1, 0, pattern.group - pattern.kept), false);
  return kept_RGM.flatten(1);
}

}  // namespace retort::compress
