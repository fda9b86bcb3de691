#pragma once
// Whether one model makes texts faster than another, as JSON: docs/formats/rates.md.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/bench/machine.h"
#include "retort/bench/paired_ratio.h"
#include "retort/bench/run_measures.h"

namespace retort::bench {

/// From fewer runs a ratio says little.
inline constexpr std::size_t kEnoughRuns = 10;

struct GenerationModel {
  std::string name;
  std::int64_t parameters = 0;
  double flops_per_token = 0;   ///< at the longest context of the measurement
  bool random_weights = false;  ///< of a shape alone
  bool same_ids = true;         ///< its prompts have the ids of the baseline's
  std::string packing = {};     ///< types in which its matrices lie, "bf16, fp32"
};

/// What was asked of all models.
struct GenerationWork {
  std::int64_t batch = 1;                                ///< texts at once
  std::size_t texts = 0;                                 ///< of a run
  std::int64_t shortest_prompt = 0, longest_prompt = 0;  ///< tokens, of the baseline
};

struct GenerationRuns {
  GenerationWork work;
  std::vector<std::vector<RunMeasures>> by_model;  ///< runs in their order
};

struct GenerationBench {
  Machine machine;
  std::string dtype;
  std::string prompts;  ///< the file; empty: random ids
  std::int64_t new_tokens = 0, warmup = 0;
  bool free_length = false;  ///< texts end where the model ends them
  std::vector<GenerationModel> models;
  std::size_t baseline = 0;
  std::vector<std::string> energy_zones;
  std::string no_energy;  ///< why energy was not measured; empty: it was
  std::vector<GenerationRuns> runs;
};

/// How a model stands to the baseline, by the interval of the ratio of their rates.
enum class Standing { faster, slower, not_told_apart };
constexpr auto words_of(Standing) {
  return base::words<Standing::not_told_apart>("faster", "slower", "not told apart");
}
Standing standing_of(const PairedRatio& rates);

/// "pruned: 1.31 times the tokens/s of whole at batch 16 (95 %: 1.27 to 1.35, p = 0.002)"
std::string sentence_of(const std::string& model, const std::string& baseline, const std::string& place,
                        const PairedRatio& rates);

base::Json generation_json(const GenerationBench& bench);

}  // namespace retort::bench
