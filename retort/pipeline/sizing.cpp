#include "retort/pipeline/sizing.h"

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/bench/sizing.h"
#include "retort/model/dtype.h"
#include "retort/prune/moves.h"

namespace retort::pipeline {
namespace {

using record::Level;

const bench::Sizing::Sweeps& rates_in(const bench::Sizing& sizing, const std::string& dtype,
                                      const recipe::Stage& stage) {
  const auto found = sizing.by_dtype.find(dtype);
  base::require<base::UsageError>(found != sizing.by_dtype.end(), "stage '", stage.name,
                                  "': expected rates in ", dtype, ", the type that the run computes in, in ",
                                  stage.sizing, ", found none; measure them: retort bench gemm MODEL --out ",
                                  stage.sizing, ".");
  return found->second;
}

class SizedStage {
 public:
  SizedStage(const recipe::Stage& stage, const std::string& dtype, record::Observer& observer)
      : stage_(stage),
        observer_(observer),
        sizing_(bench::read_sizing(stage.sizing)),
        sweeps_(rates_in(sizing_, dtype, stage)) {}

  void warn_of_differences(const KnownModels& models, c10::Device device) const {
    if (const auto differs = sizing_.machine.difference(bench::this_machine(device)); !differs.empty())
      say(Level::warning, base::join("was measured with ", differs,
                                     "; that is right only if the model is going to run there"));
    auto names = stage_.models;
    if (!stage_.from.empty()) names.push_back(stage_.from);
    for (const auto& name : names) {
      const auto config = models.config(name);
      if (!config || config->hidden_size == sizing_.hidden_size) continue;
      say(Level::warning,
          base::join("was measured for a hidden size of ", sizing_.hidden_size, ", and the model has ",
                     config->hidden_size, "; measure this model: retort bench gemm ", name, " --out ",
                     stage_.sizing));
    }
  }

  void settle(prune::PruneOptions& options, std::int64_t usual_multiple) const {
    const auto advised = advised_multiple(options);
    if (options.width_multiple == prune::kWidthMultipleOfModel) {
      options.width_multiple = (usual_multiple + advised - 1) / advised * advised;
      say(Level::info,
          base::join("advises multiples of ", advised, "; width_multiple is ", options.width_multiple));
    } else if (const auto share = share_at(options); share < 1 - bench::kLoss) {
      say(Level::warning, base::join("widths in multiples of ", options.width_multiple, " reach ",
                                     std::lround(100 * share), " % of the best rate, and those of ", advised,
                                     " more than ", std::lround(100 * (1 - bench::kLoss)), " %"));
    }
  }

 private:
  void say(Level level, const std::string& what) const {
    observer_.message(level, base::join("stage '", stage_.name, "': ", stage_.sizing, ": ", what, "."));
  }
  std::int64_t advised_multiple(const prune::PruneOptions& options) const {
    const auto of_channels = sweeps_.mlp_width.advised_multiple();
    return options.hidden ? std::max(of_channels, sweeps_.hidden_size.advised_multiple()) : of_channels;
  }
  double share_at(const prune::PruneOptions& options) const {
    const auto of_channels = sweeps_.mlp_width.share_of(power_in(options.width_multiple));
    return options.hidden
               ? std::min(of_channels, sweeps_.hidden_size.share_of(power_in(options.width_multiple)))
               : of_channels;
  }
  // The largest power of two that divides it.
  static std::int64_t power_in(std::int64_t multiple) { return multiple & -multiple; }

  const recipe::Stage& stage_;
  record::Observer& observer_;
  bench::Sizing sizing_;
  const bench::Sizing::Sweeps& sweeps_;
};

std::vector<prune::PruneOptions*> prune_options(recipe::Recipe& recipe) {
  std::vector<prune::PruneOptions*> found;
  for (auto& stage : recipe.stages)
    if (auto* options = std::get_if<prune::PruneOptions>(&stage.options)) found.push_back(options);
  return found;
}

// What the run began with, else that of its model.  A model that is not there yet, or not any more, is no
// matter of widths: who needs it says so.
std::int64_t usual_multiple_of(const recipe::Stage& stage, const KnownModels& models) {
  if (const auto begun = models.recorded(stage.name); begun.is_object() && begun.contains("width_multiple"))
    return begun.at("width_multiple").get<std::int64_t>();
  try {
    return prune::usual_width_multiple(models.config_of_origin(stage.from));
  } catch (const base::Error&) {
    return prune::kUsualWidthMultiple;
  }
}

}  // namespace

void settle_widths(recipe::Recipe& recipe, const KnownModels& models, const std::string& dtype,
                   c10::Device device, record::Observer& observer) {
  for (auto& stage : recipe.stages) {
    auto* options = std::get_if<prune::PruneOptions>(&stage.options);
    const bool open = options && options->width_multiple == prune::kWidthMultipleOfModel;
    if (stage.sizing.empty()) {
      if (open) options->width_multiple = usual_multiple_of(stage, models);
      continue;
    }
    const auto usual = open ? usual_multiple_of(stage, models) : 0;
    const SizedStage sized(stage, dtype, observer);
    if (!models.finished(stage.name)) sized.warn_of_differences(models, device);
    if (options) sized.settle(*options, usual);
  }
}

std::optional<eval::OtherMachine> other_machine(const recipe::Stage& stage, c10::ScalarType dtype,
                                                c10::Device device) {
  if (stage.sizing.empty()) return {};
  const auto sizing = bench::read_sizing(stage.sizing);
  if (sizing.machine.is_like(bench::this_machine(device))) return {};
  return eval::OtherMachine{sizing.machine.name(), dtype, rates_in(sizing, model::dtype_name(dtype), stage)};
}

std::optional<double> sized_flops_per_second(const recipe::Stage& stage) {
  if (stage.sizing.empty()) return {};
  const auto rates = bench::read_sizing(stage.sizing).by_dtype;
  const auto found = rates.find("fp32");
  if (found == rates.end()) return {};
  return found->second.square_flops;
}

void share_widths(recipe::Recipe& recipe, comm::Group& group) {
  auto widths = base::Json::array();
  for (auto* options : prune_options(recipe)) widths.push_back(options->width_multiple);
  auto text = widths.dump();
  group.share(text);
  widths = base::Json::parse(text);
  std::size_t stage = 0;
  for (auto* options : prune_options(recipe)) widths[stage++].get_to(options->width_multiple);
}

}  // namespace retort::pipeline
