// Losses on logits against other programs' formulas, written by tests/oracles/loss.py.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/loss/chunk.h"
#include "retort/loss/losses.h"
#include "support/oracle_case.h"
#include "support/tolerance.h"

namespace retort {
namespace {

loss::LossOptions options_of(const base::Json& json) {
  loss::LossOptions options{
      .temperature = json.at("temperature"), .temperature_squared = false, .beta = json.value("beta", 0.5)};
  for (const auto& traits : loss::kLossTraits)
    if (traits.name == json.at("kind").get<std::string>()) options.kind = traits.kind;
  if (json.value("direction", "forward") == "reverse") options.direction = loss::KlDirection::reverse;
  return options;
}

TEST(LossesOfOtherPrograms, AreOurs) {
  const auto folder = test::oracles("loss");
  const auto tensor = [&](const char* file, const std::string& name) {
    return test::tensor_of_file(folder / file, name);
  };
  const auto student = tensor("logits.safetensors", "student"),
             teacher = tensor("logits.safetensors", "teacher");
  const auto targets = tensor("logits.safetensors", "targets");
  const auto cases = test::json_file(folder / "cases.json");
  EXPECT_GE(cases.size(), 16U);
  for (const auto& [name, json] : cases.items())
    for (const auto type : {at::kDouble, at::kFloat})
      for (const auto computed : {loss::Computed::in_kernels, loss::Computed::by_composition}) {
        SCOPED_TRACE(json.dump() + " in " + at::toString(type));
        const auto losses = loss::make_losses({options_of(json)}, {});
        EXPECT_EQ(losses.on_logits.front()->name(), json.at("kind").get<std::string>());
        const auto logits = student.to(type);
        const auto gradient = at::empty_like(logits);
        const auto values_L = loss::losses_of_chunk(losses.on_logits, {logits, teacher.to(type), targets}, 1,
                                                    gradient, computed);
        const double value = tensor("results.safetensors", "value." + name).item<double>();
        EXPECT_NEAR(values_L.item<double>(), value, test::tolerance(type) * value);
        test::expect_close(gradient, tensor("results.safetensors", "gradient." + name),
                           2 * test::tolerance(type));
      }
}

}  // namespace
}  // namespace retort
