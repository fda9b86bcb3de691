#include "retort/prune/evaluator.h"

#include <gtest/gtest.h>

#include <numeric>

#include "retort/base/error.h"
#include "retort/compress/surgery.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/text_of_fit.h"

namespace retort {
namespace {

using architecture::Kept;
using calibrate::Evaluation;
using calibrate::ObjectiveWeights;
using prune::Evaluator;

// A block dropped and channels missing in another.
Kept some_candidate(const architecture::Config& config) {
  auto candidate = architecture::without_block(architecture::whole(config), 1);
  candidate.blocks[1].channels = {0, 3, 4, 9, 11};
  return candidate;
}

// Log probabilities of a candidate, with masks made here.
at::Tensor log_probabilities(const model::Weights& weights, const Kept& candidate,
                             const calibrate::Batch& batch) {
  std::vector<at::Tensor> masks(weights.config.blocks.size());
  std::vector<bool> keeps(masks.size());
  for (std::size_t block = 0; block < masks.size(); ++block) {
    const auto* kept = candidate.find(static_cast<std::int64_t>(block));
    keeps[block] = kept != nullptr;
    masks[block] = at::zeros({16}, at::kDouble);
    for (const auto channel : kept ? kept->channels : std::vector<std::int64_t>()) masks[block][channel] = 1;
  }
  return test::plain_logits(weights, batch, masks, keeps).log_softmax(-1);
}

TEST(Objective, IsTheSumOfBothTermsPerDomain) {
  const auto config = test::tiny_config();
  const auto weights = test::tiny_model(config);
  const auto sources = test::random_domains(config.vocab_size);
  const auto candidate = some_candidate(config);
  const Evaluator evaluator(weights, sources, {.weights = {.perplexity = 0.7, .kl = 1.3}});
  const auto evaluation = evaluator.evaluate(candidate);

  double mean = 0;
  for (const auto& batch : calibrate::calibration_batches(sources, config, at::kCPU)) {
    const auto counted = batch.targets_N.ge(0).nonzero().flatten();
    const auto targets = batch.targets_N.index_select(0, counted).unsqueeze(1);
    const auto teacher =
        log_probabilities(weights, architecture::whole(config), batch).index_select(0, counted);
    const auto student = log_probabilities(weights, candidate, batch).index_select(0, counted);
    const double delta = (teacher - student).gather(1, targets).mean().item<double>();
    const double kl = (teacher.exp() * (teacher - student)).sum(-1).mean().item<double>();
    const auto& cost = evaluation.sources.at(batch.source);
    EXPECT_NEAR(cost.delta_log_perplexity, delta, 1e-6);
    EXPECT_NEAR(cost.kl, kl, 1e-6);
    EXPECT_NEAR(cost.objective, 0.7 * delta + 1.3 * kl, 1e-6);
    mean += cost.objective / 2;
  }
  EXPECT_NEAR(evaluation.mean.objective, mean, 1e-12);
  EXPECT_EQ(evaluation.worst_source,
            evaluation.sources[1].objective > evaluation.sources[0].objective ? 1u : 0u);
  EXPECT_GT(evaluation.mean.kl, 1e-3);
}

// Two sources of different lengths in small batches: a fidelity is the same f on less text.
TEST(Objective, PiecesAddUpToFOfTheirText) {
  const auto config = test::tiny_config();
  const auto weights = test::tiny_model(config);
  auto sources = test::random_domains(config.vocab_size, 6);
  sources[1].sequences.resize(2);
  const auto candidate = some_candidate(config);
  const ObjectiveWeights objective{.perplexity = 0.7, .kl = 1.3};
  const Evaluator evaluator(weights, sources, {.weights = objective, .batch_tokens = 24});
  const auto sum = [](const std::vector<double>& factors, const std::vector<double>& costs) {
    EXPECT_EQ(factors.size(), costs.size());
    return std::inner_product(factors.begin(), factors.end(), costs.begin(), 0.0);
  };
  ASSERT_EQ(evaluator.pieces().size(), 8U);
  for (const std::int64_t rounds : {1, 3, 6}) {
    auto part = sources;
    for (auto& source : part)
      source.sequences.resize(std::min(source.sequences.size(), static_cast<std::size_t>(rounds)));
    const auto factors = evaluator.piece_weights(rounds);
    const double expected =
        Evaluator(weights, part, {.weights = objective}).evaluate(candidate).mean.objective;
    EXPECT_NEAR(sum(factors, evaluator.piece_costs(candidate, 0, factors.size())), expected, 1e-9) << rounds;
  }
  auto costs = evaluator.piece_costs(candidate, 0, 3);
  const auto rest = evaluator.piece_costs(candidate, 3, 8), all = evaluator.piece_costs(candidate, 0, 8);
  costs.insert(costs.end(), rest.begin(), rest.end());
  EXPECT_EQ(costs, all) << "however they are asked for";
}

// Sequences of one source: documents of 10, 8 + 24 + 5 and 19 tokens; the second goes through three of them.
std::vector<calibrate::SourceText> documents_across_sequences(std::int64_t vocab_size) {
  auto sources = test::random_domains(vocab_size, 3, 24);
  sources.resize(1);
  auto& sequences = sources.front().sequences;
  for (auto& sequence : sequences) sequence.starts = {0};
  sequences[0].starts = {0, 10};
  sequences[0].targets[9] = sequences[2].targets[4] = data::kNoTarget;  // the last of a document
  sequences[1].goes_on = sequences[2].goes_on = true;
  sequences[2].starts = {0, 5};
  return sources;
}

TEST(Objective, IsWhatItsDocumentsAddUpTo) {
  const auto config = test::tiny_config();
  const auto weights = test::tiny_model(config);
  const auto sources = documents_across_sequences(config.vocab_size);
  const ObjectiveWeights objective{.perplexity = 0.7, .kl = 1.3};
  const auto candidate = some_candidate(config);
  const Evaluator evaluator(weights, sources, {.weights = objective, .batch_tokens = 24});
  const auto documents = evaluator.document_sums(candidate);
  ASSERT_EQ(documents.size(), 3U);
  EXPECT_EQ(documents.front().targets, 9) << "its last token predicts nothing";
  calibrate::DocumentSums sum;
  for (const auto& document : documents)
    sum.targets += document.targets, sum.nll += document.nll, sum.kl += document.kl;
  const auto cost = evaluator.evaluate(candidate).mean;
  EXPECT_NEAR(cost.delta_log_perplexity, sum.nll / sum.targets, 1e-12);
  EXPECT_NEAR(cost.kl, sum.kl / sum.targets, 1e-12);

  // A document alone is a text of its own.
  auto first = sources;
  first.front().sequences.resize(1);
  auto& alone = first.front().sequences.front();
  alone.ids.resize(10), alone.targets.resize(10), alone.starts = {0};
  const auto expected = Evaluator(weights, first, {.weights = objective}).evaluate(candidate).mean;
  EXPECT_NEAR(documents[0].nll / documents[0].targets, expected.delta_log_perplexity, 1e-9);
  EXPECT_NEAR(documents[0].kl / documents[0].targets, expected.kl, 1e-9);
}

TEST(Objective, OfTwoCandidatesDiffersByPairedDocuments) {
  const auto config = test::tiny_config();
  const auto weights = test::tiny_model(config);
  const auto sources = test::random_domains(config.vocab_size, 6);
  const ObjectiveWeights objective{.perplexity = 0.7, .kl = 1.3};
  const Evaluator evaluator(weights, sources, {.weights = objective});
  const auto other = architecture::without_block(architecture::whole(config), 0);
  const auto a = evaluator.document_sums(some_candidate(config)), b = evaluator.document_sums(other);
  const auto difference = calibrate::difference_of(a, b, objective);
  EXPECT_NEAR(
      difference.value,
      evaluator.evaluate(some_candidate(config)).mean.objective - evaluator.evaluate(other).mean.objective,
      1e-12);
  std::vector<std::vector<eval::RatioTerm>> terms(sources.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    terms[a[i].source].push_back({0.7 * (a[i].nll - b[i].nll) + 1.3 * (a[i].kl - b[i].kl), a[i].targets});
  const auto interval = eval::bootstrap_interval(terms, {.level = 0.8});
  const auto narrow = calibrate::difference_of(a, b, objective, 0.8);
  ASSERT_TRUE(interval && narrow.interval && difference.interval);
  EXPECT_NEAR(narrow.interval->low, interval->low, 1e-12);
  EXPECT_NEAR(narrow.interval->high, interval->high, 1e-12);
  EXPECT_LT(difference.interval->low, narrow.interval->low);
  const auto none = calibrate::difference_of(a, a, objective);
  EXPECT_EQ(none.value, 0);
  EXPECT_FALSE(none.interval);
  EXPECT_EQ(none.why, eval::NoInterval::equal_documents);
}

// More tokens than are kept, and texts longer than a chunk of logits.
TEST(Objective, WithTheMostLikelyTokensIsALowerBound) {
  auto config = test::tiny_config();
  config.vocab_size = 5000;
  const auto weights = test::tiny_model(config);
  const auto sources = test::random_domains(config.vocab_size, 2, 600);
  const auto candidate = some_candidate(config);
  const Evaluator evaluator(weights, sources, {});
  const auto bound = evaluator.evaluate(candidate),
             exact = evaluator.evaluate_exactly(compress::sliced(weights, candidate));
  EXPECT_NEAR(bound.mean.delta_log_perplexity, exact.mean.delta_log_perplexity, 1e-9);
  EXPECT_LT(bound.mean.kl, exact.mean.kl);
  EXPECT_GT(bound.mean.kl, 0);
  EXPECT_GT(bound.mean.kl + bound.mean.kl_gap, exact.mean.kl);
  const auto masked = evaluator.evaluate(candidate, prune::KlOver::vocabulary);
  EXPECT_NEAR(masked.mean.objective, exact.mean.objective, 1e-9);
  EXPECT_EQ(masked.mean.kl_gap, 0);
}

TEST(Objective, OfTheWholeModelIsZero) {
  const auto config = test::tiny_config();
  const auto weights = test::tiny_model(config);
  const Evaluator evaluator(weights, test::random_domains(config.vocab_size), {});
  const auto evaluation = evaluator.evaluate(architecture::whole(config));
  EXPECT_EQ(evaluation.mean.objective, 0);
  EXPECT_EQ(evaluation.mean.kl, 0);
}

TEST(Objective, KeptStatesDoNotChangeTheResult) {
  const auto config = test::tiny_config(6);
  const auto weights = test::tiny_model(config);
  const auto sources = test::random_domains(config.vocab_size);
  const std::int64_t state_bytes = 3 * 24 * 16 * 8;
  const auto base = architecture::without_block(architecture::whole(config), 2);
  std::vector<double> seen;
  for (const std::int64_t states : {0, 1, 2, 7, 100}) {
    const Evaluator evaluator(weights, sources, {.weights = {}, .cache_bytes = states * state_bytes});
    std::vector<double> values;
    for (int round = 0; round < 2; ++round)
      for (const std::int64_t block : {5, 0, 1, 3, 4})
        values.push_back(evaluator.evaluate(architecture::without_block(base, block)).mean.objective);
    auto narrow = base;
    narrow.blocks[2].channels = {1, 2, 3};
    values.push_back(evaluator.evaluate(narrow).mean.objective);
    narrow.blocks[3].kv_groups = {1};
    values.push_back(evaluator.evaluate(narrow).mean.objective);
    narrow.hidden = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    values.push_back(evaluator.evaluate(narrow).mean.objective);
    if (seen.empty()) seen = values;
    EXPECT_EQ(values, seen) << states;
  }
}

TEST(Objective, IsThatOfTheModelMadeAsItWasCompared) {
  const auto config = test::tiny_config();
  const auto weights = test::tiny_model(config);
  const auto text = test::text_of_fit(test::random_domains(config.vocab_size, 20, 30));
  const Evaluator evaluator(weights, text.split.choosing, {.weights = {}, .fitted = &text.split.fitted});
  auto candidate = some_candidate(config);
  candidate.blocks[0].kv_groups = {1};
  const auto compared = evaluator.as_compared(candidate);
  EXPECT_FALSE(compared.fitted_layers.empty());
  const auto plain = compress::sliced(weights, candidate);
  EXPECT_NEAR(evaluator.evaluate_exactly(compared.weights).mean.objective,
              evaluator.evaluate(candidate, prune::KlOver::vocabulary).mean.objective, 1e-6);
  EXPECT_NE(evaluator.evaluate_exactly(compared.weights).mean.objective,
            evaluator.evaluate_exactly(plain).mean.objective);
}

TEST(Objective, ActivationsThatAreNotFiniteNameTheBlock) {
  const auto config = test::tiny_config();
  for (const char* name : {"model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight",
                           "model.layers.1.self_attn.q_proj.weight", "model.layers.2.mlp.up_proj.weight"}) {
    auto weights = test::tiny_model(config);
    weights.tensor(name)[0][0] = std::numeric_limits<double>::quiet_NaN();
    const auto message = test::message_of<base::ValidationError>(
        [&] { Evaluator(weights, test::random_domains(config.vocab_size), {}); });
    const bool last = std::string(name).find("layers.2") != std::string::npos;
    EXPECT_NE(message.find(last ? "block 2" : "block 1"), std::string::npos) << message;
  }
}

// A state that is kept from one candidate serves another only where all that it depends on is the same, of
// whatever part.
TEST(Evaluator, NeverTakesAStateOfACandidateThatDiffersInAPart) {
  const auto config = test::tiny_config(3);
  const auto weights = test::tiny_model(config);
  const auto sources = test::random_domains(config.vocab_size);
  const auto all = architecture::whole(config);
  const Evaluator used(weights, sources, {});
  for (const auto part : architecture::kPartKinds) {
    SCOPED_TRACE(base::word(part));
    auto numbers = architecture::numbers_of(all, part, 0);
    numbers.pop_back();
    const auto other = architecture::with(all, part, 0, numbers);
    used.evaluate(all);
    const auto found = used.evaluate(other).mean.objective;
    EXPECT_EQ(found, Evaluator(weights, sources, {}).evaluate(other).mean.objective);
    EXPECT_NE(found, used.evaluate(all).mean.objective);
    // What is measured is what is cut out.
    EXPECT_LT(used.difference(other, compress::sliced(weights, other)), 1e-6);
  }
}

}  // namespace
}  // namespace retort
