#include "retort/calibrate/loss_increase.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "retort/base/error.h"
#include "retort/record/keys.h"

namespace retort::calibrate {

namespace keys = record::keys;

void DocumentSums::add(const DocumentSums& other) {
  targets += other.targets;
  nll += other.nll;
  kl += other.kl;
  kl_gap += other.kl_gap;
}

void add_documents(const Batch& batch, const at::Tensor& nll_N, const at::Tensor& kl_N,
                   const at::Tensor& kl_gap_N, std::vector<DocumentSums>& documents) {
  const auto on_cpu = [](const at::Tensor& of_N) { return of_N.to(at::kCPU, at::kDouble).contiguous(); };
  const auto nll = on_cpu(nll_N), kl = on_cpu(kl_N), targets = on_cpu(batch.targets_N.ge(0));
  const auto gap = kl_gap_N.defined() ? on_cpu(kl_gap_N) : at::Tensor();
  const auto& starts = batch.layout.starts;
  for (std::size_t part = 0; part + 1 < starts.size(); ++part) {
    const bool goes_on = batch.goes_on[part] && !documents.empty() && documents.back().source == batch.source;
    if (!goes_on) documents.push_back({.source = batch.source});
    const auto sum = [&](const at::Tensor& of_N) {
      const double* values = of_N.const_data_ptr<double>();
      return std::accumulate(values + starts[part], values + starts[part + 1], 0.0);
    };
    documents.back().targets += sum(targets);
    documents.back().nll += sum(nll);
    documents.back().kl += sum(kl);
    if (gap.defined()) documents.back().kl_gap += sum(gap);
  }
}

void add_documents(const Batch& batch, const eval::HeadScorer& scorer, const at::Tensor& hidden_ND,
                   const eval::HeadScorer& other, const at::Tensor& other_hidden_ND, std::int64_t chunk_rows,
                   std::vector<DocumentSums>& documents) {
  eval::RowScores rows;
  eval::score_hidden(scorer, hidden_ND, &other, other_hidden_ND, batch.targets_N, chunk_rows, &rows);
  add_documents(batch, rows.nll_N.to(at::kDouble) - rows.teacher_nll_N.to(at::kDouble), rows.kl_N, {},
                documents);
}

void join_documents(bool goes_on, std::span<const DocumentSums> of_part,
                    std::vector<DocumentSums>& documents) {
  if (of_part.empty()) return;
  if (goes_on && !documents.empty() && documents.back().source == of_part.front().source) {
    documents.back().add(of_part.front());
    of_part = of_part.subspan(1);
  }
  documents.insert(documents.end(), of_part.begin(), of_part.end());
}

Evaluation evaluation_of(std::span<const DocumentSums> documents, const ObjectiveWeights& weights) {
  std::vector<DocumentSums> sources;
  for (const auto& document : documents) {
    sources.resize(std::max(sources.size(), document.source + 1));
    sources[document.source].add(document);
  }
  Evaluation result;
  const auto share = 1 / static_cast<double>(sources.size());
  for (const auto& source : sources) {
    const double targets = std::max(source.targets, 1.0);
    LossIncrease cost{.delta_log_perplexity = source.nll / targets,
                      .kl = source.kl / targets,
                      .kl_gap = source.kl_gap / targets};
    cost.objective = weights.perplexity * cost.delta_log_perplexity + weights.kl * cost.kl;
    result.mean.objective += share * cost.objective;
    result.mean.delta_log_perplexity += share * cost.delta_log_perplexity;
    result.mean.kl += share * cost.kl;
    result.mean.kl_gap += share * cost.kl_gap;
    result.sources.push_back(cost);
    if (cost.objective > result.sources[result.worst_source].objective)
      result.worst_source = result.sources.size() - 1;
  }
  return result;
}

std::vector<std::vector<eval::RatioTerm>> objective_terms(std::span<const DocumentSums> documents,
                                                          const ObjectiveWeights& weights) {
  std::vector<std::vector<eval::RatioTerm>> terms;
  for (const auto& document : documents) {
    terms.resize(std::max(terms.size(), document.source + 1));
    terms[document.source].push_back(
        {weights.perplexity * document.nll + weights.kl * document.kl, document.targets});
  }
  return terms;
}

LossIncreaseDifference difference_of(std::span<const DocumentSums> a, std::span<const DocumentSums> b,
                                     const ObjectiveWeights& weights, double level) {
  base::ensure(a.size() == b.size(), "paired documents are the same documents");
  std::vector<DocumentSums> differences(a.begin(), a.end());
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences[i].nll -= b[i].nll;
    differences[i].kl -= b[i].kl;
  }
  LossIncreaseDifference difference{.value = evaluation_of(differences, weights).mean.objective,
                                    .interval = {}};
  difference.interval =
      eval::bootstrap_interval(objective_terms(differences, weights), {.level = level}, &difference.why);
  return difference;
}

base::Json to_json(const Evaluation& evaluation, const std::vector<std::string>& source_names) {
  base::Json json = {{keys::kObjective, evaluation.mean.objective},
                     {keys::kDeltaLogPerplexity, evaluation.mean.delta_log_perplexity},
                     {keys::kKl, evaluation.mean.kl},
                     {keys::kWorstDomain, source_names[evaluation.worst_source]}};
  for (std::size_t i = 0; i < evaluation.sources.size(); ++i)
    json[keys::kDomains][source_names[i]] = evaluation.sources[i].objective;
  return json;
}

}  // namespace retort::calibrate
