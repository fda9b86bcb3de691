#include "retort/prune/evaluator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "retort/base/error.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/calibrate/walk.h"
#include "retort/compress/readers.h"
#include "retort/compress/surgery.h"
#include "retort/prune/masked_model.h"

namespace retort::prune {
namespace {

constexpr std::int64_t kChunkElements = std::int64_t{1} << 22;  // of logits at a time

std::int64_t num_blocks(const model::Weights& weights) {
  return static_cast<std::int64_t>(weights.config.blocks.size());
}

// A candidate whose activations overflow is worse than all others.
void replace_by_infinity(calibrate::LossIncrease& cost) {
  for (double* value : {&cost.objective, &cost.delta_log_perplexity, &cost.kl, &cost.kl_gap})
    if (!std::isfinite(*value)) *value = std::numeric_limits<double>::infinity();
}

}  // namespace

std::int64_t chunk_rows(std::int64_t vocab_size) {
  return std::clamp<std::int64_t>(kChunkElements / vocab_size, 16, 1024);
}

Evaluator::Evaluator(const model::Weights& input, const std::vector<calibrate::SourceText>& sources,
                     const EvaluatorOptions& options)
    : input_(input),
      weights_(options.weights),
      batches_(calibrate::calibration_batches(sources, input.config, input.options().device(),
                                              options.batch_tokens)),
      scorer_(input.config, input.layout, input.head_on_device()),
      cache_(std::min(options.cache_bytes,
                      kCachedCandidates * calibrate::bytes_of_states(input.config, input.item_bytes(),
                                                                     calibrate::num_tokens(batches_)))),
      teacher_hidden_(options.hidden_scratch),
      reference_(scorer_, chunk_rows(scorer_.vocab_size())) {
  for (const auto& source : sources) source_names_.push_back(source.name);
  record::Observer silent;
  auto& observer = options.observer ? *options.observer : silent;
  comm::agree(options.group, [&] { keep_whole_model(observer); });
  if (options.fitted)
    compensated_ = std::make_unique<compress::CompensatedLayers>(
        input, compress::FitSources{*options.fitted, sources},
        compress::CompensationOptions{.objective = options.weights},
        compress::CompensatedLayers::Memory{.scratch = options.scratch,
                                            .hidden_scratch = options.hidden_scratch},
        observer, options.group);
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [](const Piece& a, const Piece& b) { return a.round < b.round; });
}

// Its outputs and distributions, with which candidates are compared.
void Evaluator::keep_whole_model(record::Observer& observer) {
  const MaskedModel whole(input_, architecture::whole(input_.config));
  const auto check = [](std::int64_t block, const at::Tensor& x_ND) {
    calibrate::require_finite(x_ND, block - 1);
  };
  const auto keep = [&](std::size_t batch, const at::Tensor& hidden_ND) {
    const bool goes_on = batch > 0 && batches_[batch].source == batches_[batch - 1].source;
    pieces_.push_back({batch, goes_on ? pieces_.back().round + 1 : 0, batches_[batch].layout.tokens()});
    calibrate::require_finite(hidden_ND, num_blocks(input_) - 1);
    teacher_hidden_.set(batch, hidden_ND);
    reference_.keep(batches_[batch], hidden_ND);
    base::require<base::ValidationError>(
        reference_.is_finite(), "prune: the model's losses on '", source_names_[batches_[batch].source],
        "' are not finite (NaN or infinity); the model is damaged, evaluate it first.");
    observer.progress("prune: batches of the whole model", std::ssize(pieces_), std::ssize(batches_));
  };
  std::vector<std::size_t> all(batches_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  pass(all, whole, keep, check);
}

MaskedModel Evaluator::masked_model(const architecture::Kept& candidate) const {
  return MaskedModel(input_, candidate, compensated_.get());
}

// Where the last kept state is.
Evaluator::Passing Evaluator::start(std::size_t batch, const MaskedModel& masked) const {
  for (auto number = num_blocks(input_) - 1; number > 0; --number)
    if (const auto found = cache_.find({batch, masked.blocks[static_cast<std::size_t>(number)].prefix}))
      return {number, *found};
  auto hidden_ND = model::embedded(input_, batches_[batch].ids_N);
  if (masked.mask_D.defined()) hidden_ND.mul_(masked.mask_D);
  return {0, std::move(hidden_ND)};
}

void Evaluator::pass_block(std::size_t batch, const MaskedModel& masked, const BeforeBlock& before,
                           Passing& passing) const {
  auto& [number, hidden_ND] = passing;
  const auto& block = masked.blocks[static_cast<std::size_t>(number)];
  if (before) before(number, hidden_ND);
  if (number > 0) cache_.keep({batch, block.prefix}, hidden_ND);
  if (block.keeps)
    hidden_ND = model::block_forward(masked.weights_of_block(number), input_.config.rms_norm_eps, hidden_ND,
                                     batches_[batch].layout, nullptr, &block.hooks);
  ++number;
}

void Evaluator::pass(const std::vector<std::size_t>& batches, const MaskedModel& masked, const OutputOf& use,
                     const BeforeBlock& before) const {
  const auto together = calibrate::batches_together(input_);
  for (std::size_t begin = 0; begin < batches.size(); begin += together) {
    const auto end = std::min(begin + together, batches.size());
    std::vector<Passing> passing;
    for (auto i = begin; i < end; ++i) passing.push_back(start(batches[i], masked));
    for (std::int64_t block = 0; block < num_blocks(input_); ++block)
      for (auto i = begin; i < end; ++i)
        if (passing[i - begin].block == block) pass_block(batches[i], masked, before, passing[i - begin]);
    for (auto i = begin; i < end; ++i) use(i, passing[i - begin].hidden_ND);
  }
}

void Evaluator::add(std::size_t batch, const at::Tensor& hidden_ND, KlOver over,
                    std::vector<calibrate::DocumentSums>& documents) const {
  if (over == KlOver::vocabulary)
    calibrate::add_documents(batches_[batch], scorer_, hidden_ND, scorer_, teacher_hidden_.get(batch),
                             chunk_rows(scorer_.vocab_size()), documents);
  else
    reference_.add_documents(batch, batches_[batch], hidden_ND, documents);
}

calibrate::Evaluation Evaluator::checked(const std::vector<calibrate::DocumentSums>& documents) const {
  auto evaluation = calibrate::evaluation_of(documents, weights_);
  for (std::size_t source = 0; source < evaluation.sources.size(); ++source)
    base::require<base::ValidationError>(
        std::isfinite(evaluation.sources[source].objective), "prune: the loss increase of a candidate on '",
        source_names_[source], "' is not finite; the model is damaged, evaluate it first.");
  return evaluation;
}

std::vector<calibrate::DocumentSums> Evaluator::document_sums(const architecture::Kept& candidate,
                                                              KlOver over) const {
  return joined(batch_sums(candidate, over, 0, 1));
}

std::vector<std::vector<calibrate::DocumentSums>> Evaluator::batch_sums(const architecture::Kept& candidate,
                                                                        KlOver over, std::size_t first,
                                                                        std::size_t step) const {
  const auto masked = masked_model(candidate);
  std::vector<std::size_t> batches;
  for (auto batch = first; batch < batches_.size(); batch += step) batches.push_back(batch);
  std::vector<std::vector<calibrate::DocumentSums>> by_batch;
  pass(batches, masked, [&](std::size_t number, const at::Tensor& hidden_ND) {
    add(batches[number], hidden_ND, over, by_batch.emplace_back());
  });
  return by_batch;
}

std::vector<calibrate::DocumentSums> Evaluator::joined(
    const std::vector<std::vector<calibrate::DocumentSums>>& by_batch) const {
  std::vector<calibrate::DocumentSums> documents;
  for (std::size_t batch = 0; batch < batches_.size(); ++batch)
    calibrate::join_documents(batches_[batch].goes_on.front(), by_batch[batch], documents);
  return documents;
}

calibrate::Evaluation Evaluator::evaluate(const architecture::Kept& candidate, KlOver over) const {
  return evaluation_of(document_sums(candidate, over));
}

calibrate::Evaluation Evaluator::evaluation_of(const std::vector<calibrate::DocumentSums>& documents) const {
  auto evaluation = calibrate::evaluation_of(documents, weights_);
  replace_by_infinity(evaluation.mean);
  for (auto& source : evaluation.sources) replace_by_infinity(source);
  return evaluation;
}

std::vector<calibrate::DocumentSums> Evaluator::document_sums(const model::Weights& sliced) const {
  const eval::HeadScorer scorer(sliced.config, sliced.layout, sliced.head_on_device());
  std::vector<calibrate::DocumentSums> documents;
  calibrate::pass_blocks(
      sliced, batches_, 0, [&](std::size_t batch) { return model::embedded(sliced, batches_[batch].ids_N); },
      [&](std::size_t batch, const at::Tensor& hidden_ND) {
        calibrate::add_documents(batches_[batch], scorer, hidden_ND, scorer_, teacher_hidden_.get(batch),
                                 chunk_rows(scorer_.vocab_size()), documents);
      });
  return documents;
}

calibrate::Evaluation Evaluator::evaluate_exactly(const model::Weights& sliced) const {
  return checked(document_sums(sliced));
}

Evaluator::Compared Evaluator::as_compared(const architecture::Kept& candidate) const {
  Compared compared{.weights = compress::sliced(input_, candidate), .fitted_layers = {}};
  if (!compensated_) return compared;
  const auto rows_D = model::index_tensor(candidate.hidden, input_.options().device());
  for (std::size_t position = 0; position < candidate.blocks.size(); ++position) {
    const auto block = candidate.blocks[position].number;
    const auto unit =
        static_cast<std::size_t>(architecture::Layout::block_unit(static_cast<std::int64_t>(position)));
    for (const auto half : architecture::kHalves) {
      const auto reader = compress::reader_of(half);
      const auto inputs = compress::kept_inputs(input_.config, candidate, half, block);
      const auto* tensor = compared.weights.layout.units[unit].find(reader);
      if (!tensor || std::ssize(inputs) == compress::inputs_of(input_.config, half, block)) continue;
      const auto fitted_DC = compensated_->weight_DC(block, reader, inputs);
      if (!fitted_DC.defined()) continue;
      compared.fitted_layers.push_back(tensor->name);
      compared.weights.tensor(unit, *tensor)
          .copy_(fitted_DC.index_select(0, rows_D).index_select(
              1, model::index_tensor(inputs, fitted_DC.device())));
    }
  }
  compared.weights.blocks_changed();
  return compared;
}

std::int64_t Evaluator::tokens() const {
  return calibrate::num_tokens(batches_);
}

std::int64_t Evaluator::bytes_of_candidates() const {
  return cache_.bytes() + (compensated_ ? compensated_->used_bytes() : 0);
}

std::vector<double> Evaluator::piece_weights(std::int64_t rounds) const {
  std::vector<double> targets(source_names_.size(), 0), weights;
  std::vector<std::size_t> sources;
  for (const auto& piece : pieces_) {
    if (piece.round >= rounds) break;
    const auto& batch = batches_[piece.batch];
    sources.push_back(batch.source);
    targets[batch.source] += static_cast<double>((batch.targets_N >= 0).sum().item<std::int64_t>());
  }
  for (const auto source : sources)
    weights.push_back(1 / (targets[source] * static_cast<double>(targets.size())));
  return weights;
}

std::vector<double> Evaluator::piece_costs(const architecture::Kept& candidate, std::size_t first,
                                           std::size_t last) const {
  const auto masked = masked_model(candidate);
  std::vector<std::size_t> batches;
  for (auto piece = first; piece < last; ++piece) batches.push_back(pieces_[piece].batch);
  std::vector<double> costs;
  pass(batches, masked, [&](std::size_t number, const at::Tensor& hidden_ND) {
    std::vector<calibrate::DocumentSums> documents;
    add(batches[number], hidden_ND, KlOver::top_k, documents);
    double& cost = costs.emplace_back(0);
    for (const auto& document : documents)
      cost += weights_.perplexity * document.nll + weights_.kl * document.kl;
  });
  return costs;
}

double Evaluator::difference(const architecture::Kept& candidate, const model::Weights& sliced) const {
  const MaskedModel masked(input_, candidate);
  std::vector<std::size_t> batches;
  for (const auto& piece : pieces_)
    if (piece.round == 0) batches.push_back(piece.batch);
  double worst = 0;
  pass(batches, masked, [&](std::size_t number, at::Tensor masked_ND) {
    if (masked.mask_D.defined())
      masked_ND = masked_ND.index_select(1, model::index_tensor(candidate.hidden, masked_ND.device()));
    const auto& batch = batches_[batches[number]];
    const auto hidden_ND = model::forward_blocks(sliced, model::embedded(sliced, batch.ids_N), batch.layout);
    const auto largest = masked_ND.abs().max().item<double>();
    const auto difference = (masked_ND - hidden_ND).abs().max().item<double>() / largest;
    if (!(difference <= worst)) worst = difference;  // also when it is not a number
  });
  return worst;
}

base::Json objective_identity(const model::Weights& input, const Evaluator& evaluator,
                              const calibrate::TextSplit& text, const calibrate::ObjectiveWeights& weights) {
  base::Json json = {{"objective", {weights.perplexity, weights.kl}},
                     {"top_k", calibrate::kTopK},
                     {"input", input.content_hash()},
                     {"text", calibrate::text_fingerprint(text.choosing)}};
  if (evaluator.after_compensation()) json["compensated"] = calibrate::text_fingerprint(text.fitted);
  return json;
}

}  // namespace retort::prune
