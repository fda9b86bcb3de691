#pragma once
// Matrices out of JSON files.

#include <ATen/ATen.h>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::test {

inline base::Json read_json(const base::Path& path) {
  return base::parse_json(base::read_file(path), {.max_bytes = std::size_t{1} << 26});
}

inline at::Tensor matrix(const base::Json& rows) {
  const auto height = static_cast<std::int64_t>(rows.size()),
             width = static_cast<std::int64_t>(rows.at(0).size());
  auto values = at::empty({height, width}, at::kDouble);
  auto* out = values.mutable_data_ptr<double>();
  for (const auto& row : rows)
    for (const auto& value : row) *out++ = value.get<double>();
  return values;
}

}  // namespace retort::test
