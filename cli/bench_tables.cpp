#include "cli/bench_tables.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cli/print.h"
#include "retort/base/error.h"
#include "retort/base/units.h"

namespace retort::cli {
namespace {

using base::Json;

std::string giga(const Json& per_second) {
  const double value = per_second.get<double>() / 1e9;
  return fixed(value, value < 100 ? 1 : 0);
}

std::string milliseconds(const Json& seconds) {
  return fixed(1e3 * seconds.get<double>(), 3);
}

std::string percent(const Json& share) {
  return fixed(100 * share.get<double>(), 0) + " %";
}

std::string text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string ceilings(const Json& rates) {
  const Json &machine = rates.at("machine"), &memory = rates.at("memory");
  std::string out =
      base::join(text(machine.at("processor")), ", ", text(machine.at("threads")), " threads, ",
                 text(machine.at("device")), ", torch ", text(machine.at("torch")), ", oneDNN ",
                 text(machine.at("onednn")), "\nmemory   ", giga(memory.at("read_bytes_per_second")),
                 " GB/s reading, ", giga(memory.at("update_bytes_per_second")), " GB/s updating, ",
                 giga(memory.at("triad_bytes_per_second")), " GB/s triad, arrays of ",
                 base::human_bytes(memory.at("array_bytes").get<std::uint64_t>()), "\n");
  for (const auto& [dtype, measured] : rates.at("dtypes").items())
    out += base::join("product  ", giga(measured.at("square_flops_per_second")), " GFLOP/s in ", dtype,
                      ", 1024 x 1024 x 1024\n");
  return out;
}

std::string name_of(const Json& rates) {
  const auto name = text(rates.at("model").at("name"));
  return name.empty() ? "a usual shape" : name;
}

std::string product_table(const Json& products) {
  Rows rows = {{"product", "pass", "tokens", "rows", "columns", "ms", "GFLOP/s", "of ceiling"}};
  for (const auto& one : products)
    rows.push_back({text(one.at("product")), text(one.at("pass")), text(one.at("tokens")),
                    text(one.at("rows")), text(one.at("columns")), milliseconds(one.at("seconds")),
                    giga(one.at("flops_per_second")), percent(one.at("share_of_ceiling"))});
  return table(rows, 2);
}

std::string kernel_table(const Json& kernels) {
  Rows rows = {{"operation", "shape", "ms", "moved", "GB/s", "GFLOP/s", "of ceiling", ""}};
  for (const auto& one : kernels) {
    const bool computes = one.contains("flops");
    rows.push_back(
        {text(one.at("kernel")), text(one.at("shape")), milliseconds(one.at("seconds")),
         computes ? "" : base::human_bytes(static_cast<std::uint64_t>(one.at("bytes").get<double>())),
         computes ? "" : giga(one.at("bytes_per_second")), computes ? giga(one.at("flops_per_second")) : "",
         percent(one.at("share_of_ceiling")), text(one.at("ceiling"))});
  }
  return table(rows, 2);
}

}  // namespace

std::string gemm_tables(const Json& rates) {
  std::string out = ceilings(rates);
  for (const auto& [dtype, measured] : rates.at("dtypes").items())
    out += base::join("\n", dtype, ": products of ", name_of(rates), ", ceiling ",
                      giga(measured.at("ceiling_flops_per_second")), " GFLOP/s\n",
                      product_table(measured.at("products")));
  return out;
}

std::string kernel_tables(const Json& rates) {
  std::string out = ceilings(rates);
  for (const auto& [dtype, measured] : rates.at("dtypes").items())
    out += base::join("\n", dtype, ": operations of ", name_of(rates), ", operands in memory\n",
                      kernel_table(measured.at("kernels")));
  return out;
}

}  // namespace retort::cli
