#include "retort/loss/losses.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/loss/layer_map.h"

namespace retort::loss {

std::vector<LossOptions> default_distillation_losses() {
  return {{.kind = LossKind::cross_entropy, .weight = 0.25},
          {.kind = LossKind::kl_divergence, .weight = 1.0, .temperature = 3.0},
          {.kind = LossKind::squarehead, .weight = 1.0}};
}

bool Losses::needs_teacher_logits() const {
  return std::any_of(on_logits.begin(), on_logits.end(),
                     [](const auto& loss) { return loss->needs_teacher(); });
}

double Losses::total(const LossSums& means) const {
  double sum = 0;
  for (const auto& [name, weight] : weights) sum += weight * means.at(name);
  return sum;
}

namespace {

std::vector<std::int64_t> layer_map_of(const LossOptions& option, const Blocks& blocks) {
  base::require<base::UsageError>(
      option.layer_map == LayerMap::relative_depth || blocks.survivors_of == 0 ||
          blocks.survivors_of == blocks.teacher,
      "squarehead: the student was cut from a model of ", blocks.survivors_of, " blocks, the teacher has ",
      blocks.teacher, "; use layer_map: relative_depth, or the teacher that the student was cut from.");
  return layer_map(option.layer_map, blocks.student, blocks.teacher, blocks.survivors);
}

}  // namespace

Losses make_losses(const std::vector<LossOptions>& options, const Blocks& blocks) {
  base::require<base::UsageError>(!options.empty(), "loss: expected at least one loss, found none.");
  Losses losses;
  losses.num_tokens = blocks.num_tokens;
  for (const auto& option : options) {
    std::string name = "squarehead";
    if (option.kind == LossKind::squarehead) {
      losses.squarehead.emplace(option, layer_map_of(option, blocks), blocks.features);
    } else {
      losses.on_logits.push_back(option.kind == LossKind::cross_entropy ? cross_entropy(option)
                                                                        : kl_divergence(option));
      name = losses.on_logits.back()->name();
    }
    base::require<base::UsageError>(losses.weights.emplace(name, option.weight).second, "loss: ", name,
                                    " stands twice; expected each loss once.");
  }
  return losses;
}

}  // namespace retort::loss
