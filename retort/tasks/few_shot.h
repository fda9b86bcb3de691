#pragma once
// The examples before a question, drawn as lm-evaluation-harness draws them.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/tasks/python_random.h"
#include "retort/tasks/task.h"

namespace retort::tasks {

/// Whether two values are equal in Python: whatever the order of keys, and 1 is 1.0 and True.
bool python_equal(const base::Json& a, const base::Json& b);

/// Draws for one document after the other; its generator goes on from one to the next.
class ExampleSampler {
 public:
  static constexpr std::uint64_t kSeed = 1234;

  /// `where` names the task in errors.
  ExampleSampler(Sampler sampler, std::vector<base::Json> pool, std::string where);

  /// Examples for a document; `own` is the document where it may be in the pool, else null.  Throws DataError
  /// where the pool has too few.
  std::vector<base::Json> sample(std::int64_t count, const base::Json* own);

 private:
  std::vector<base::Json> first(std::size_t count, const base::Json* own) const;
  std::vector<base::Json> drawn(const std::vector<base::Json>& pool, std::size_t count);

  Sampler sampler_;
  std::vector<base::Json> pool_;
  std::string where_;
  PythonRandom random_{kSeed};
};

}  // namespace retort::tasks
