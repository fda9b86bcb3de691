#include "retort/loss/losses.h"

#include <algorithm>
#include <set>

#include "retort/base/error.h"

namespace retort::loss {
namespace {

// The one place that knows which class is behind a kind; the compiler misses a kind that is left out.
void make_loss(const LossOptions& options, const Blocks& blocks, Losses& losses) {
  switch (options.kind) {
    case LossKind::cross_entropy:
      losses.on_logits.push_back(cross_entropy(options));
      return;
    case LossKind::kl_divergence:
      losses.on_logits.push_back(kl_divergence(options));
      return;
    case LossKind::jensen_shannon:
      losses.on_logits.push_back(jensen_shannon(options));
      return;
    case LossKind::total_variation:
      losses.on_logits.push_back(total_variation(options));
      return;
    case LossKind::squarehead:
      losses.on_hidden.push_back(squarehead(options, blocks));
      return;
  }
}

}  // namespace

std::vector<const Loss*> Losses::all() const {
  std::vector<const Loss*> list;
  for (const auto& loss : on_logits) list.push_back(loss.get());
  for (const auto& loss : on_hidden) list.push_back(loss.get());
  return list;
}

bool Losses::needs_teacher() const {
  return std::ranges::any_of(all(), &Loss::needs_teacher);
}
bool Losses::needs_teacher_logits() const {
  return std::ranges::any_of(on_logits, [](const auto& loss) { return loss->needs_teacher(); });
}

std::vector<LossOptions> losses_on_written_text(const std::vector<LossOptions>& options) {
  auto compared = options;
  std::erase_if(compared, [](const auto& loss) { return !traits_of(loss.kind).compares_distributions(); });
  return compared;
}

Losses make_losses(const std::vector<LossOptions>& options, const Blocks& blocks) {
  base::require<base::UsageError>(!options.empty(), "loss: expected at least one loss, found none.");
  Losses losses;
  losses.num_tokens = blocks.num_tokens;
  for (const auto& option : options) make_loss(option, blocks, losses);
  std::set<std::string> names;
  for (const Loss* loss : losses.all())
    base::require<base::UsageError>(names.insert(loss->name()).second, "loss: ", loss->name(),
                                    " stands twice; expected each loss once.");
  return losses;
}

}  // namespace retort::loss
