#include "retort/tasks/few_shot.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;

std::optional<double> number_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

void remove_equal(std::vector<Json>& documents, const Json& own) {
  std::erase_if(documents, [&](const Json& one) { return python_equal(one, own); });
}

}  // namespace

bool python_equal(const Json& a, const Json& b) {
  if (a.is_number_integer() && b.is_number_integer()) return a == b;
  if (const auto x = number_of(a), y = number_of(b); x || y) return x && y && *x == *y;
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), python_equal);
  if (!a.is_object()) return a == b;
  for (auto one = a.begin(), other = b.begin(); one != a.end(); ++one, ++other) {
    const auto found = other.key() == one.key() ? other : b.find(one.key());
    if (found == b.end() || !python_equal(one.value(), found.value())) return false;
  }
  return true;
}

ExampleSampler::ExampleSampler(Sampler sampler, std::vector<Json> pool, std::string where)
    : sampler_(sampler), pool_(std::move(pool)), where_(std::move(where)) {}

std::vector<Json> ExampleSampler::sample(std::int64_t count, const Json* own) {
  const auto wanted = static_cast<std::size_t>(count);
  if (sampler_ == Sampler::first_n) return first(wanted, own);
  if (own == nullptr) return drawn(pool_, wanted);
  auto chosen = drawn(pool_, wanted + 1);
  remove_equal(chosen, *own);
  chosen.resize(std::min(chosen.size(), wanted));
  if (chosen.size() == wanted) return chosen;
  auto others = pool_;  // the pool has the document more than once
  remove_equal(others, *own);
  return drawn(others, wanted);
}

std::vector<Json> ExampleSampler::first(std::size_t count, const Json* own) const {
  std::vector<Json> chosen;
  for (const Json& one : pool_) {
    if (chosen.size() == count) break;
    if (own == nullptr || !python_equal(one, *own)) chosen.push_back(one);
  }
  base::require<DataError>(chosen.size() == count, where_, ": ", count, " examples are asked for, and the ",
                           "documents for examples are ", chosen.size(), "; ask for fewer.");
  return chosen;
}

std::vector<Json> ExampleSampler::drawn(const std::vector<Json>& pool, std::size_t count) {
  base::require<DataError>(count <= pool.size(), where_, ": ", count,
                           " examples are drawn for a document, and ", "the documents for examples are ",
                           pool.size(), "; ask for fewer.");
  std::vector<Json> chosen;
  for (const auto at : random_.sample(pool.size(), count)) chosen.push_back(pool[at]);
  return chosen;
}

}  // namespace retort::tasks
