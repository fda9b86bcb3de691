#include "retort/bench/machine.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include "retort/ops/float32_products.h"
#include "retort/record/keys.h"
#include "retort/record/provenance.h"

namespace retort::bench {
namespace {

namespace keys = record::keys;

// "Intel(R) MKL-DNN v3.7.1 (Git Hash ...)", or a sentence that says there is none.
std::string version_in(const std::string& text) {
  const auto begin = text.find_first_of("0123456789");
  if (begin == std::string::npos) return "none";
  return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
}

}  // namespace

Machine this_machine(c10::Device device) {
  const auto told = record::describe({.command = {}, .torch_version = TORCH_VERSION, .threads = 0});
  return {
      .processor = told.at(keys::kProcessor),
      .features = told.at("features"),
      .device = c10::DeviceTypeName(device.type(), /*lower_case=*/true),
      .threads = at::get_num_threads(),
      .float32_products = device.is_cpu() ? std::string(base::word(ops::float32_products())) : std::string(),
      .retort = record::version(),
      .torch = TORCH_VERSION,
      .mkl = version_in(at::get_mkl_version()),
      .onednn = version_in(at::get_mkldnn_version())};
}

base::Json to_json(const Machine& machine) {
  base::Json json = {{keys::kProcessor, machine.processor},
                     {"features", machine.features},
                     {keys::kDevice, machine.device},
                     {"threads", machine.threads},
                     {keys::kRetort, machine.retort},
                     {keys::kTorch, machine.torch},
                     {"mkl", machine.mkl},
                     {"onednn", machine.onednn}};
  if (!machine.float32_products.empty()) json["float32_products"] = machine.float32_products;
  return json;
}

}  // namespace retort::bench
