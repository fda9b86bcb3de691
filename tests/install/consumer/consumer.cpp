// Another project with the library: it counts the parameters of a model directory, and computes a loss with
// torch.
#include <ATen/ATen.h>
#include <retort/architecture/counts.h>
#include <retort/architecture/hf_config.h>
#include <retort/base/error.h>
#include <retort/eval/evaluate.h>
#include <retort/model/weights.h>

#include <iostream>

int main(int, char** arguments) try {
  const auto config = retort::architecture::read_config(arguments[1]);
  const auto weights = retort::model::load_weights(arguments[1], at::kFloat, at::kCPU);
  std::cout << retort::architecture::num_parameters(config) << ' ' << weights.units.size() << '\n';
} catch (const retort::base::Error& error) {
  std::cout << "refused: " << error.what() << '\n';
  return static_cast<int>(error.code());
}
