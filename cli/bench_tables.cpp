#include "cli/bench_tables.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cli/print.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
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

std::string machine_line(const Json& machine) {
  return base::join(text(machine.at("processor")), ", ", text(machine.at("threads")), " threads, ",
                    text(machine.at("device")), ", torch ", text(machine.at("torch")), ", oneDNN ",
                    text(machine.at("onednn")));
}

std::string ceilings(const Json& rates) {
  const Json& memory = rates.at("memory");
  std::string out =
      base::join(machine_line(rates.at("machine")), "\nmemory   ", giga(memory.at("read_bytes_per_second")),
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

// A mean over runs; empty where it was not measured.
std::string mean_of(const Json& measures, const char* measure, double unit, int digits) {
  return measures.contains(measure) ? fixed(measures.at(measure).at("mean").get<double>() * unit, digits)
                                    : "";
}

std::string spread_of(const Json& measure) {
  return fixed(100 * measure.at("deviation").get<double>() / measure.at("mean").get<double>(), 1) + " %";
}

std::string ratio_of(const Json& model) {
  if (!model.contains("ratios")) return "baseline";
  const Json& rates = model.at("ratios").at("tokens_per_second");
  const Json& interval = rates.at("interval");
  std::string out = fixed(rates.at("ratio").get<double>(), 3);
  if (interval.is_array())
    out +=
        " (" + fixed(interval.at(0).get<double>(), 3) + " to " + fixed(interval.at(1).get<double>(), 3) + ")";
  return out;
}

struct TimesColumn {
  const char *title, *measure;
  double unit;
  int digits;
};
constexpr TimesColumn kTimesColumns[] = {
    {"prompts/s", "prompts_per_second", 1, 3},     {"first ms", "first_token_seconds", 1e3, 2},
    {"p95", "first_token_seconds_p95", 1e3, 2},    {"between ms", "between_tokens_seconds", 1e3, 3},
    {"p95", "between_tokens_seconds_p95", 1e3, 3}, {"J/token", "joules_per_token", 1, 4}};

// Columns of what no model was measured by are left out.
std::string generation_table(const Json& work) {
  const Json& models = work.at("models");
  const auto is_measured = [&](const TimesColumn& column) {
    return std::ranges::any_of(
        models, [&](const Json& model) { return model.at("measures").contains(column.measure); });
  };
  Rows rows = {{"model", "tokens/s", "spread"}};
  for (const auto& column : kTimesColumns)
    if (is_measured(column)) rows.front().push_back(column.title);
  rows.front().push_back("times the baseline's");
  for (const auto& model : models) {
    const Json& measures = model.at("measures");
    auto& row = rows.emplace_back();
    row = {text(model.at("name")), mean_of(measures, "tokens_per_second", 1, 1),
           spread_of(measures.at("tokens_per_second"))};
    for (const auto& column : kTimesColumns)
      if (is_measured(column)) row.push_back(mean_of(measures, column.measure, column.unit, column.digits));
    row.push_back(ratio_of(model));
  }
  return table(rows, 1);
}

std::string work_line(const Json& rates, const Json& work) {
  const auto shortest = text(work.at("shortest_prompt_tokens")),
             longest = text(work.at("longest_prompt_tokens"));
  const bool free_length = rates.at("length") == "free";
  return base::join("batch ", text(work.at("batch")), ": ", text(work.at("texts")), " prompts of ",
                    shortest == longest ? longest : shortest + " to " + longest, " tokens, ",
                    free_length ? "at most " : "", text(rates.at("new_tokens")), " new ones each");
}

// Numbers of half the bytes are read in half the time, so other packings are not other models alone.
std::string packings(const Json& models) {
  std::string list;
  bool same = true;
  for (const auto& model : models) {
    same = same && model.at("packing") == models.at(0).at("packing");
    list += base::join(list.empty() ? "" : "; ", text(model.at("name")), " in ", text(model.at("packing")));
  }
  return same ? "weights lie in " + text(models.at(0).at("packing"))
              : "compares other packings: weights of " + list;
}

std::string generation_head(const Json& rates) {
  const Json& energy = rates.at("energy");
  return base::join(machine_line(rates.at("machine")), "\n", text(rates.at("dtype")), ", ",
                    text(rates.at("runs")), " runs of each model in turn after ", text(rates.at("warmup")),
                    " to warm up; loading and packing do not count\nlength   ",
                    rates.at("length") == "free" ? "free: texts end where a model ends them, so work differs"
                                                 : "fixed: the same work for all",
                    "\npacking  ", base::printable(packings(rates.at("models"))), "\nenergy   ",
                    energy.at("measured").get<bool>() ? "of all that the machine does meanwhile"
                                                      : "not measured: " + text(energy.at("why_not")),
                    "\n");
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

std::string generation_tables(const Json& rates) {
  std::string out = generation_head(rates);
  for (const auto& work : rates.at("works"))
    out += "\n" + work_line(rates, work) + "\n" + generation_table(work);
  out += "\n";
  for (const auto& work : rates.at("works"))
    for (const auto& model : work.at("models"))
      if (model.contains("verdict")) out += base::printable(text(model.at("verdict"))) + "\n";
  for (const auto& conclusion : rates.at("conclusions"))
    out += base::printable(text(conclusion.at("sentence"))) + "\n";
  return out;
}

}  // namespace retort::cli
