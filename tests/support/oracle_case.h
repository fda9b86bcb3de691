#pragma once
// One model with what transformers computed for it, as tests/oracles/model.py wrote it.

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/safetensors.h"
#include "retort/model/dtype.h"
#include "support/outside_data.h"

namespace retort::test {

inline base::Json json_file(const std::filesystem::path& path) {
  return base::parse_json(base::read_file(path), {.max_bytes = std::size_t{1} << 28});
}

inline at::Tensor tensor_of_file(const std::filesystem::path& path, const std::string& name) {
  const auto file = io::SafetensorsFile::open(path);
  const auto& info = file.tensors().at(name);
  const auto bytes = file.bytes(name);
  auto tensor = at::empty(info.shape, model::scalar_type(info.dtype));
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

struct OracleCase {
  std::string name;
  std::filesystem::path directory;
  std::vector<std::int64_t> ids, starts;
  std::vector<std::int32_t> prompt, greedy;
  std::int64_t new_tokens = 0;
  at::Tensor logits_NV;
};

inline std::vector<OracleCase> oracle_cases() {
  std::vector<OracleCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(oracles("model") / "cases")) {
    const auto json = json_file(entry.path() / "case.json");
    cases.push_back({entry.path().filename(), json.at("directory").get<std::string>(), json.at("ids"),
                     json.at("starts"), json.at("prompt"), json.at("greedy"), json.at("new_tokens"),
                     tensor_of_file(entry.path() / "logits.safetensors", "logits")});
  }
  std::sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return cases;
}

/// Small models of each family that tests/oracles/_families.py draws.
constexpr int kDrawsOfFamily = 6;

/// All of them, or one of each family by its number.
inline std::vector<OracleCase> family_cases(int draw = -1) {
  const std::string end = draw < 0 ? "" : "_" + std::to_string(draw);
  std::vector<OracleCase> cases;
  for (auto& c : oracle_cases())
    if (std::filesystem::exists(c.directory.parent_path() / "gradients.safetensors") && c.name.ends_with(end))
      cases.push_back(std::move(c));
  return cases;
}

}  // namespace retort::test
