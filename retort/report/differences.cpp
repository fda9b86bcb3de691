#include "retort/report/differences.h"

#include "retort/report/fields.h"

namespace retort::report {

using base::Json;

Number documents(const Json& model) {
  Number sum;
  for (const Json& source : elements(field(model, keys::kSources)))
    if (const auto count = number(source, keys::kDocuments)) sum = sum.value_or(0) + *count;
  return sum;
}

Difference nll_difference(const Json& model, bool is_teacher) {
  const Json& mean = field(model, keys::kMean);
  const auto value = number(mean, keys::kNllDifference);
  if (!value || is_teacher) return {kMissing, kMissing};
  const auto& ends = elements(field(mean, keys::kNllDifferenceInterval));
  if (ends.size() != 2) {
    const auto why = text(mean, keys::kNoInterval);
    return {signed_fixed(value, 4), why.empty() ? "too few documents" : why};  // of before there were reasons
  }
  return {signed_fixed(value, 4),
          signed_fixed(number(ends[0]), 4) + " to " + signed_fixed(number(ends[1]), 4)};
}

std::vector<ModelNote> dequantised_notes(const Json& evaluation) {
  std::vector<ModelNote> notes;
  for (const Json& model : elements(field(evaluation, keys::kModels)))
    if (const auto types = text(model, keys::kDequantisedFrom); !types.empty())
      notes.push_back({label_of(model), "values dequantised from " + types});
  return notes;
}

}  // namespace retort::report
