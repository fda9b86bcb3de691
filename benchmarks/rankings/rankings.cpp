// Which score of channels works best: every ranking at some widths, all MLPs alike or by one ranking over all
// layers, with outliers cut and not, with and without compensation.  Scores are made on calibration text; f
// and perplexity are measured on held-out documents.  Prints JSON.

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "retort/base/random.h"
#include "retort/data/windows.h"
#include "retort/eval/score.h"
#include "retort/model/weights.h"
#include "retort/pipeline/context.h"
#include "retort/prune/compensate.h"
#include "retort/prune/importance.h"
#include "retort/prune/ranking.h"
#include "retort/prune/surgery.h"

namespace {

using namespace retort;
using Scores = std::vector<std::vector<double>>;
using prune::CalibrationDomain;
using prune::ChannelRanking;

struct Settings {
  std::string model;
  std::vector<std::string> texts;
  std::string separator, field = "text";
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
constexpr std::uint64_t kRandomSeeds = 1;

struct Texts {
  std::vector<CalibrationDomain> calibration, held_out;
};

Texts read_texts(const Settings& s, const architecture::Config& config) {
  const auto text = pipeline::read_model_text(s.model, config);
  const bool bos = text.special.bos >= 0;
  const auto domains = std::ssize(s.texts);
  Texts texts;
  for (const auto& path : s.texts) {
    data::SourceOptions source;
    source.name = path;
    source.paths = {path};
    source.separator = s.separator;
    source.field = s.field;
    source.held_out = {.fraction = 0, .every = s.every, .paths = {}};
    const data::PackingOptions packing{.sequence_length = s.length, .bos = bos};
    texts.calibration.push_back(
        {path, data::calibration_sequences(source, packing, text.encode(), text.special, 0,
                                           s.tokens / domains / s.length)});
    data::WindowReader reader(source, data::Split::held_out,
                              {.context = s.length,
                               .tokens = s.held_out_tokens / domains,
                               .bos = bos,
                               .attend_across_documents = false},
                              text.encode(), text.special);
    CalibrationDomain held_out{path, {}};
    for (data::Sequence window; reader.next(window);) held_out.sequences.push_back(window);
    texts.held_out.push_back(std::move(held_out));
  }
  return texts;
}

class HeldOut {
 public:
  HeldOut(const model::Weights& teacher, const std::vector<CalibrationDomain>& domains)
      : batches_(prune::calibration_batches(domains, teacher.config, at::kCPU)),
        scorer_(teacher.config, teacher.layout,
                teacher.units[static_cast<std::size_t>(teacher.layout.head_unit())]) {
    for (const auto& batch : batches_) teacher_ND_.push_back(output(teacher, batch));
  }

  // f and perplexity, sources with equal weights.
  base::Json measure(const model::Weights& weights) const {
    std::vector<eval::ScoreSums> sums;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      sums.resize(std::max(sums.size(), batches_[i].domain + 1));
      sums[batches_[i].domain].add(eval::score_hidden(scorer_, output(weights, batches_[i]), &scorer_,
                                                      teacher_ND_[i], batches_[i].targets_N, 512));
    }
    double objective = 0, nll = 0;
    for (const auto& sum : sums) {
      const auto targets = static_cast<double>(sum.targets);
      objective += (sum.nll - sum.teacher_nll + sum.kl) / targets;
      nll += sum.nll / targets;
    }
    const auto domains = static_cast<double>(sums.size());
    return {{"objective", objective / domains}, {"perplexity", std::exp(nll / domains)}};
  }

 private:
  static at::Tensor output(const model::Weights& weights, const prune::CalibrationBatch& batch) {
    auto hidden_ND = prune::embedded(weights, batch);
    for (std::int64_t block = 0; block < std::ssize(weights.config.blocks); ++block)
      hidden_ND = model::block_forward(prune::weights_of_block(weights, block), weights.config.rms_norm_eps,
                                       hidden_ND, batch.layout);
    return hidden_ND;
  }

  std::vector<prune::CalibrationBatch> batches_;
  eval::HeadScorer scorer_;
  std::vector<at::Tensor> teacher_ND_;
};

prune::Candidate uniform(const architecture::Config& config, const Scores& scores, double keep) {
  const auto width = static_cast<double>(architecture::mlp_width(config.blocks.front()));
  return prune::narrowed(prune::whole(config), std::llround(keep * width), scores);
}

// The channels with the highest standardised scores of all layers, in each layer at least one.
prune::Candidate over_layers(const architecture::Config& config, const Scores& scores, double keep) {
  const auto standard = prune::standardised(scores);
  std::vector<double> all;
  for (const auto& layer : standard) all.insert(all.end(), layer.begin(), layer.end());
  std::sort(all.rbegin(), all.rend());
  const auto threshold =
      all[static_cast<std::size_t>(std::llround(keep * static_cast<double>(all.size()))) - 1];
  auto candidate = prune::whole(config);
  for (std::size_t block = 0; block < standard.size(); ++block) {
    const auto& layer = standard[block];
    auto& channels = candidate.channels[block];
    const auto best = std::max_element(layer.begin(), layer.end()) - layer.begin();
    std::erase_if(channels, [&](std::int64_t c) {
      return c != best && layer[static_cast<std::size_t>(c)] < threshold;
    });
  }
  return candidate;
}

Scores random_scores(const architecture::Config& config, std::uint64_t seed) {
  Scores scores;
  for (std::size_t block = 0; block < config.blocks.size(); ++block) {
    base::Random random(seed, block);
    scores.emplace_back(static_cast<std::size_t>(architecture::mlp_width(config.blocks[block])));
    for (auto& score : scores.back()) score = random.next_normal();
  }
  return scores;
}

class Experiment {
 public:
  explicit Experiment(const Settings& s)
      : settings_(s),
        weights_(model::load_weights(s.model, at::kFloat, at::kCPU)),
        texts_(read_texts(s, weights_.config)),
        batches_(prune::calibration_batches(texts_.calibration, weights_.config, at::kCPU)),
        held_out_(weights_, texts_.held_out) {}

  base::Json run() {
    base::Json json = {{"model", settings_.model},
                       {"tokens", settings_.tokens},
                       {"held_out_tokens", settings_.held_out_tokens},
                       {"whole", held_out_.measure(weights_)},
                       {"rows", base::Json::array()}};
    for (std::uint64_t seed = 0; seed < kRandomSeeds; ++seed)
      measure({{"ranking", "random"}, {"winsorise", 1.0}}, random_scores(weights_.config, seed),
              json["rows"]);
    for (const auto& [name, ranking] : kRankings)
      for (const double quantile : {1.0, 0.999}) {
        if (ranking == ChannelRanking::taylor && quantile < 1) continue;  // nothing is cut
        const auto scores = prune::measured_scores(weights_, batches_, {ranking, quantile});
        measure({{"ranking", name}, {"winsorise", quantile}}, prune::unit_scores(scores).channels,
                json["rows"]);
      }
    return json;
  }

 private:
  void measure(const base::Json& how, const Scores& scores, base::Json& rows) {
    for (const double keep : settings_.keep)
      for (const bool global : {false, true}) {
        const auto candidate =
            global ? over_layers(weights_.config, scores, keep) : uniform(weights_.config, scores, keep);
        auto small = prune::sliced(weights_, candidate);
        base::Json row = how;
        row["keep"] = keep;
        row["over_layers"] = global;
        row["plain"] = held_out_.measure(small);
        prune::compensate(weights_, candidate, small, texts_.calibration, {}, observer_);
        row["compensated"] = held_out_.measure(small);
        std::cerr << row.dump() << std::endl;
        rows.push_back(std::move(row));
      }
  }

  const Settings& settings_;
  model::Weights weights_;
  Texts texts_;
  std::vector<prune::CalibrationBatch> batches_;
  HeldOut held_out_;
  record::Observer observer_;
};

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Rankings of channels side by side");
  app.add_option("MODEL", s.model)->required();
  app.add_option("--text", s.texts, "a domain each")->required();
  app.add_option("--separator", s.separator);
  app.add_option("--keep", s.keep, "shares of the channels");
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
