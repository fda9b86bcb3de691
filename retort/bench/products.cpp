#include "retort/bench/products.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/bench/operands.h"
#include "retort/ops/matrix_product.h"

namespace retort::bench {
namespace {

constexpr std::int64_t kHeadTokens = 256;

// Elements of the largest operands.
struct Largest {
  std::int64_t weight = 0, rows = 0, columns = 0;

  explicit Largest(std::span<const Linear> weights) {
    for (const auto& one : weights) {
      weight = std::max(weight, one.rows * one.columns);
      rows = std::max(rows, one.rows);
      columns = std::max(columns, one.columns);
    }
  }
};

at::Tensor matrix(const at::Tensor& flat, std::int64_t rows, std::int64_t columns) {
  return flat.narrow(0, 0, rows * columns).view({rows, columns});
}

}  // namespace

double flops(const Linear& weight, std::int64_t tokens) {
  return 2.0 * static_cast<double>(tokens) * static_cast<double>(weight.rows) *
         static_cast<double>(weight.columns);
}

Operands::Operands(std::span<const Linear> weights, std::int64_t tokens, at::ScalarType dtype,
                   at::Device device)
    : tokens_(tokens) {
  const Largest sizes(weights);
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  weight_ = irregular(sizes.weight, options);
  weight_gradient_ = at::zeros({sizes.weight}, options.dtype(at::kFloat));
  input_ = irregular(tokens * sizes.columns, options);
  output_gradient_ = irregular(tokens * sizes.rows, options);
}

void Operands::run(const Linear& weight, Pass pass) const {
  const auto weight_MK = matrix(weight_, weight.rows, weight.columns);
  const auto input_NK = matrix(input_, tokens_, weight.columns);
  const auto gradient_NM = matrix(output_gradient_, tokens_, weight.rows);
  switch (pass) {
    case Pass::forward:
      (void)ops::matrix_product(input_NK, weight_MK.t());
      return;
    case Pass::input_gradient:
      (void)ops::matrix_product(gradient_NM, weight_MK);
      return;
    case Pass::weight_gradient:
      ops::add_transposed_product(matrix(weight_gradient_, weight.rows, weight.columns), gradient_NM,
                                  input_NK);
  }
}

std::int64_t Operands::bytes(std::span<const Linear> weights, std::int64_t tokens, std::int64_t item_bytes) {
  const Largest sizes(weights);
  const auto activations = tokens * (sizes.rows + sizes.columns);
  const auto results = std::max({sizes.weight, tokens * sizes.rows, tokens * sizes.columns});
  return item_bytes * (sizes.weight + activations + results) + std::int64_t{sizeof(float)} * sizes.weight;
}

std::vector<NamedLinear> products_of(const architecture::Config& config, std::int64_t tokens) {
  std::vector<NamedLinear> products;
  const auto add = [&](const char* name, const Linear& weight) {
    for (auto& known : products)
      if (known.name == name && known.weight == weight) {
        ++known.blocks;
        return;
      }
    products.push_back({name, weight, 1, tokens});
  };
  const auto hidden = config.hidden_size;
  for (const auto& block : config.blocks) {
    if (const auto& attention = block.attention) {
      const auto queries = attention->num_heads * attention->head_dim;
      add("qkv", {queries + 2 * attention->num_kv_heads * attention->head_dim, hidden});
      add("o", {hidden, queries});
    }
    if (const auto width = architecture::mlp_width(block)) {
      add("gate_up", {2 * width, hidden});
      add("down", {hidden, width});
    }
  }
  products.push_back({"head", {config.vocab_size, hidden}, 0, std::min(tokens, kHeadTokens)});
  return products;
}

std::vector<ProductRate> measure_product(const NamedLinear& product, at::ScalarType dtype, at::Device device,
                                         const Effort& effort) {
  const Operands operands({&product.weight, 1}, product.tokens, dtype, device);
  std::vector<Timed> works;
  for (const auto pass : kPasses) works.push_back({[&, pass] { operands.run(product.weight, pass); }});
  time_in_turn(works, effort, device);
  std::vector<ProductRate> rates;
  for (std::size_t i = 0; i < works.size(); ++i) rates.push_back({product, kPasses[i], works[i].seconds});
  return rates;
}

}  // namespace retort::bench
