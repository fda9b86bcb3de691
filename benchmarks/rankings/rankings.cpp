// Which score of channels, KV groups and hidden features works best: every ranking at some widths, all layers
// alike or by one ranking over all of them, with outliers cut and not, with and without compensation.  Scores
// are made on calibration text; f and perplexity are measured on held-out documents.  Prints JSON.

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "retort/base/random.h"
#include "retort/calibrate/importance.h"
#include "retort/calibrate/ranking.h"
#include "retort/calibrate/split_text.h"
#include "retort/compress/compensate.h"
#include "retort/compress/surgery.h"
#include "retort/data/windows.h"
#include "retort/eval/score.h"
#include "retort/model/forward.h"
#include "retort/model/weights.h"
#include "retort/pipeline/context.h"

namespace {

using namespace retort;
using Scores = std::vector<std::vector<double>>;
using calibrate::ChannelRanking;
using calibrate::SourceText;

struct Settings {
  std::string model;
  std::vector<std::string> texts;
  std::string separator, field = "text";
  std::vector<std::string> parts = {"channels", "kv_groups", "hidden"};
  std::vector<double> keep = {0.75, 0.5};
  std::int64_t tokens = 16384, held_out_tokens = 8192, length = 512, every = 20;
};

struct Ranking {
  const char* name;
  ChannelRanking ranking;
};
constexpr Ranking kRankings[] = {{"wanda", ChannelRanking::wanda},
                                 {"activation", ChannelRanking::activation},
                                 {"fluctuation", ChannelRanking::fluctuation},
                                 {"minitron", ChannelRanking::minitron},
                                 {"taylor", ChannelRanking::taylor},
                                 {"obs", ChannelRanking::obs}};
constexpr std::uint64_t kRandomSeed = 0;

struct Texts {
  std::vector<SourceText> calibration, held_out;
  calibrate::TextSplit fitted;  ///< of the calibration text
};

Texts read_texts(const Settings& s, const architecture::Config& config) {
  const auto text = pipeline::read_model_text(s.model, config);
  const auto sources = std::ssize(s.texts);
  Texts texts;
  for (const auto& path : s.texts) {
    data::SourceOptions source;
    source.name = path;
    source.paths = {path};
    source.separator = s.separator;
    source.field = s.field;
    source.held_out = {.fraction = 0, .every = s.every, .paths = {}};
    const data::PackingOptions packing{.sequence_length = s.length};
    texts.calibration.push_back(
        {path, data::calibration_sequences(source, packing, text.encode(), text.special, 0,
                                           s.tokens / sources / s.length)});
    data::WindowReader reader(
        source, data::Split::held_out,
        {.context = s.length, .tokens = s.held_out_tokens / sources, .attend_across_documents = false},
        text.encode(), text.special);
    SourceText held_out{path, {}};
    for (data::Sequence window; reader.next(window);) held_out.sequences.push_back(window);
    texts.held_out.push_back(std::move(held_out));
  }
  texts.fitted = calibrate::split_by_document(texts.calibration);
  return texts;
}

class HeldOut {
 public:
  HeldOut(const model::Weights& teacher, const std::vector<SourceText>& sources)
      : batches_(calibrate::calibration_batches(sources, teacher.config, at::kCPU)),
        scorer_(scorer_of(teacher)) {
    for (const auto& batch : batches_) teacher_ND_.push_back(output(teacher, batch));
  }

  // f and perplexity, sources with equal weights.
  base::Json measure(const model::Weights& weights) const {
    const auto scorer = scorer_of(weights);
    std::vector<eval::ScoreSums> sums;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      sums.resize(std::max(sums.size(), batches_[i].source + 1));
      sums[batches_[i].source].add(eval::score_hidden(scorer, output(weights, batches_[i]), &scorer_,
                                                      teacher_ND_[i], batches_[i].targets_N, 512));
    }
    double objective = 0, nll = 0;
    for (const auto& sum : sums) {
      const auto targets = static_cast<double>(sum.targets);
      objective += (sum.nll - sum.teacher_nll + sum.kl) / targets;
      nll += sum.nll / targets;
    }
    const auto sources = static_cast<double>(sums.size());
    return {{"objective", objective / sources}, {"perplexity", std::exp(nll / sources)}};
  }

 private:
  static eval::HeadScorer scorer_of(const model::Weights& weights) {
    return {weights.config, weights.layout,
            weights.units[static_cast<std::size_t>(weights.layout.head_unit())]};
  }
  static at::Tensor output(const model::Weights& weights, const calibrate::Batch& batch) {
    auto hidden_ND = model::embedded(weights, batch.ids_N);
    for (std::int64_t block = 0; block < std::ssize(weights.config.blocks); ++block)
      hidden_ND = model::block_forward(model::weights_of_block(weights, block), weights.config.rms_norm_eps,
                                       hidden_ND, batch.layout);
    return hidden_ND;
  }

  std::vector<calibrate::Batch> batches_;
  eval::HeadScorer scorer_;
  std::vector<at::Tensor> teacher_ND_;
};

using Numbers = std::vector<std::vector<std::int64_t>>;  // [block]

Numbers kept_alike(const Scores& scores, double keep) {
  Numbers kept;
  for (const auto& layer : scores) {
    const auto count = std::ssize(layer);
    kept.push_back(architecture::highest(architecture::counted(count),
                                         std::llround(keep * static_cast<double>(count)), layer));
  }
  return kept;
}

// Those with the highest standardised scores of all layers, in each layer at least one.
Numbers kept_over_layers(const Scores& scores, double keep) {
  const auto standard = calibrate::standardised(scores);
  std::vector<double> all;
  for (const auto& layer : standard) all.insert(all.end(), layer.begin(), layer.end());
  std::sort(all.rbegin(), all.rend());
  const auto threshold =
      all[static_cast<std::size_t>(std::llround(keep * static_cast<double>(all.size()))) - 1];
  Numbers kept;
  for (const auto& layer : standard) {
    const auto best = std::max_element(layer.begin(), layer.end()) - layer.begin();
    kept.push_back(architecture::counted(std::ssize(layer)));
    std::erase_if(kept.back(), [&](std::int64_t one) {
      return one != best && layer[static_cast<std::size_t>(one)] < threshold;
    });
  }
  return kept;
}

// What is ranked: its scores and the model without some of it.
struct Part {
  const char* name;
  Scores (*scores)(const calibrate::UnitScores& scores);
  architecture::Kept (*candidate)(const architecture::Config& config, Numbers kept);
  bool by_layer = true;
};

architecture::Kept with_channels(const architecture::Config& config, Numbers numbers) {
  auto kept = architecture::whole(config);
  for (std::size_t block = 0; block < numbers.size(); ++block) kept.blocks[block].channels = numbers[block];
  return kept;
}

architecture::Kept with_groups(const architecture::Config& config, Numbers numbers) {
  auto kept = architecture::whole(config);
  for (std::size_t block = 0; block < numbers.size(); ++block) kept.blocks[block].kv_groups = numbers[block];
  return kept;
}

architecture::Kept with_hidden(const architecture::Config& config, Numbers numbers) {
  auto kept = architecture::whole(config);
  kept.hidden = std::move(numbers.front());
  return kept;
}

constexpr Part kParts[] = {
    {"channels", [](const auto& scores) { return scores.channels; }, with_channels},
    {"kv_groups", [](const auto& scores) { return scores.groups; }, with_groups},
    {"hidden", [](const auto& scores) { return Scores{scores.hidden}; }, with_hidden, false}};

Scores random_like(Scores scores, std::uint64_t seed) {
  for (std::size_t layer = 0; layer < scores.size(); ++layer) {
    base::Random random(seed, layer);
    for (auto& score : scores[layer]) score = random.next_normal();
  }
  return scores;
}

class Experiment {
 public:
  explicit Experiment(const Settings& s)
      : settings_(s),
        weights_(model::load_weights(s.model, at::kFloat, at::kCPU)),
        texts_(read_texts(s, weights_.config)),
        batches_(calibrate::calibration_batches(texts_.calibration, weights_.config, at::kCPU)),
        held_out_(weights_, texts_.held_out) {}

  base::Json run() {
    base::Json json = {{"model", settings_.model},
                       {"tokens", settings_.tokens},
                       {"held_out_tokens", settings_.held_out_tokens},
                       {"whole", held_out_.measure(weights_)},
                       {"rows", base::Json::array()}};
    for (const auto& [name, ranking] : kRankings)
      for (const double quantile : {1.0, 0.999}) {
        if (ranking == ChannelRanking::taylor && quantile < 1) continue;  // nothing is cut
        const auto scores =
            calibrate::unit_scores(calibrate::measured_scores(weights_, batches_, {ranking, quantile, true}));
        for (const auto& part : kParts) {
          if (!std::ranges::count(settings_.parts, part.name)) continue;
          if (ranking == kRankings[0].ranking && quantile == 1)
            measure("random", quantile, part, random_like(part.scores(scores), kRandomSeed), json["rows"]);
          measure(name, quantile, part, part.scores(scores), json["rows"]);
        }
      }
    return json;
  }

 private:
  void measure(const char* ranking, double quantile, const Part& part, const Scores& scores,
               base::Json& rows) {
    for (const double keep : settings_.keep)
      for (const bool global : {false, true}) {
        if (global && !part.by_layer) continue;
        const auto candidate = part.candidate(
            weights_.config, global ? kept_over_layers(scores, keep) : kept_alike(scores, keep));
        auto small = compress::sliced(weights_, candidate);
        base::Json row = {{"part", part.name}, {"ranking", ranking},    {"winsorise", quantile},
                          {"keep", keep},      {"over_layers", global}, {"plain", held_out_.measure(small)}};
        compress::compensate(weights_, candidate, small, {texts_.fitted.fitted, texts_.fitted.choosing}, {},
                             observer_);
        row["compensated"] = held_out_.measure(small);
        std::cerr << row.dump() << std::endl;
        rows.push_back(std::move(row));
      }
  }

  const Settings& settings_;
  model::Weights weights_;
  Texts texts_;
  std::vector<calibrate::Batch> batches_;
  HeldOut held_out_;
  record::Observer observer_;
};

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Rankings of channels, KV groups and hidden features side by side");
  app.add_option("MODEL", s.model)->required();
  app.add_option("--text", s.texts, "a domain each")->required();
  app.add_option("--separator", s.separator);
  app.add_option("--part", s.parts, "what is ranked")
      ->check(CLI::IsMember({"channels", "kv_groups", "hidden"}));
  app.add_option("--keep", s.keep, "shares of it");
  app.add_option("--tokens", s.tokens, "of calibration text");
  app.add_option("--held-out-tokens", s.held_out_tokens);
  app.add_option("--length", s.length);
  app.add_option("--every", s.every, "of so many documents the last is held out");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << Experiment(s).run().dump(1) << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "rankings: " << error.what() << std::endl;
    return 1;
  }
}
