#include "retort/pipeline/float32_products.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "retort/base/error.h"
#include "retort/comm/lead.h"
#include "retort/record/keys.h"
#include "retort/record/run_files.h"

namespace retort::pipeline {
namespace {

using ops::Float32Products;

constexpr const char *kProductsVariable = "RETORT_FLOAT32_PRODUCTS", *kProductsKey = "float32_products";

std::string word_of(Float32Products products) {
  return std::string(base::word(products));
}

bool is_asked(const Float32Question& question) {
  if (question.asked.empty() || question.asked == "auto") return false;
  base::require<base::UsageError>(question.asked == "amx" || question.asked == "vectors", kProductsVariable,
                                  " is '", question.asked, "', expected amx, vectors or auto.");
  base::require<base::EnvironmentError>(
      question.asked == "vectors" || question.has_amx, kProductsVariable,
      " asks for AMX, which not every process of this job has; set it to vectors or auto.");
  return true;
}

// Of the last start that says it.  A file that is damaged says nothing.
std::string float32_begun_with(const base::Path& run_directory) {
  if (run_directory.empty()) return {};
  const record::RunFiles run(run_directory);
  if (!run.holds_run()) return {};
  std::string begun;
  try {
    const auto provenance = run.provenance();
    for (const auto& start : provenance.at(record::keys::kStarts)) begun = start.value(kProductsKey, begun);
  } catch (const base::Error&) {
  } catch (const base::Json::exception&) {
  }
  return begun;
}

std::string in_gigaflops(double flops) {
  return base::join(std::llround(flops / 1e9), " GFLOP/s");
}

void say_products(const Float32Choice& choice, record::Level level, record::Observer& observer) {
  if (const auto& rates = choice.measured)
    observer.message(
        level, base::join("float32 products: ", in_gigaflops(rates->amx), " by AMX and ",
                          in_gigaflops(rates->vectors), " by vectors, so by ", word_of(choice.products)));
  else if (ops::has_float32_amx())
    observer.message(level, base::join("float32 products by ", word_of(choice.products)));
  if (!choice.differs.empty()) observer.message(record::Level::warning, choice.differs);
}

}  // namespace

Float32Choice choose_float32_products(const Float32Question& question) {
  Float32Choice choice;
  if (is_asked(question))
    choice.products = question.asked == "amx" ? Float32Products::amx : Float32Products::vectors;
  else if (!question.begun.empty())
    choice.products =
        question.begun == "amx" && question.has_amx ? Float32Products::amx : Float32Products::vectors;
  else if (question.has_amx)
    choice.products = choice.measured.emplace(question.measure()).faster();
  if (!question.begun.empty() && question.begun != word_of(choice.products))
    choice.differs = base::join(
        "this run began with float32 products by ", question.begun, " and goes on by ",
        word_of(choice.products),
        question.has_amx ? base::join(", as ", kProductsVariable, " says") : ", as not every process has AMX",
        "; its numbers have other bits than if it had gone on as it began.");
  return choice;
}

Float32Choice settle_float32_products(const base::Path& run_directory, at::Device device,
                                      record::Observer& observer, comm::Group& group) {
  Float32Choice choice{.products = ops::float32_products(), .measured = {}, .differs = {}};
  if (!device.is_cpu()) return choice;
  const bool has_amx = std::ranges::min(group.all_values(ops::has_float32_amx() ? 1 : 0)) == 1;
  comm::lead(group, [&] {
    const char* const asked = std::getenv(kProductsVariable);
    choice = choose_float32_products(
        {.has_amx = has_amx, .asked = asked ? asked : "", .begun = float32_begun_with(run_directory)});
    say_products(choice, run_directory.empty() ? record::Level::debug : record::Level::info, observer);
  });
  auto chosen = word_of(choice.products);
  group.share(chosen);
  ops::set_float32_products(chosen == "amx" ? Float32Products::amx : Float32Products::vectors);
  return choice;
}

void settle_float32_products(at::Device device, record::Observer& observer) {
  const auto alone = comm::single_group();
  settle_float32_products({}, device, observer, *alone);
}

void add_to_start(base::Json& start, const Float32Choice& choice) {
  start[kProductsKey] = word_of(choice.products);
  if (const auto& rates = choice.measured)
    start["float32_auto"] = {{"vectors_flops", rates->vectors}, {"amx_flops", rates->amx}};
}

}  // namespace retort::pipeline
