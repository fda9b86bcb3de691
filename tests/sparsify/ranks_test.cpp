// Several ranks make of a model what one makes of it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>

#include "retort/base/error.h"
#include "retort/model/sparsity.h"
#include "retort/ops/threads.h"
#include "retort/record/stopped.h"
#include "retort/shard/weights_of_machine.h"
#include "retort/sparsify/sparsify.h"
#include "support/impatient.h"
#include "support/message_of.h"
#include "support/models_for_tests.h"
#include "support/random_text.h"
#include "support/ranks.h"
#include "support/temporary_directory.h"
#include "support/tolerance.h"

namespace retort {
namespace {

using sparsify::SparsifyOptions;
using sparsify::SparsifyResult;

class SparsifyOnRanks : public testing::Test {
 protected:
  SparsifyResult on(int ranks, bool common_memory = true, const base::Path& scratch = {},
                    record::Observer* of_rank_0 = nullptr) const {
    SparsifyResult found;
    const auto source = model::source_of(input_);
    test::on_ranks(
        ranks,
        [&](comm::Group& group) {
          at::set_num_threads(1);
          auto shared = shard::weights_of_machine(source, at::kDouble, at::kCPU, at::kCPU, group);
          record::Observer silent;
          auto result = sparsify::sparsify(
              std::move(shared.weights), text_, options_,
              {.scratch = scratch, .identity = "this", .group = &group, .writes = shared.writes},
              of_rank_0 && group.rank() == 0 ? *of_rank_0 : silent);
          // Nobody's copy goes before all have looked at theirs.
          const std::lock_guard lock(mutex_);
          if (found.weights.units.empty())
            found = {model::converted(result.weights, at::kDouble), result.report};
          EXPECT_EQ(result.weights.content_hash(), found.weights.content_hash()) << "of another rank";
          EXPECT_EQ(without_costs(result.report), without_costs(found.report));
        },
        common_memory);
    return found;
  }
  SparsifyResult on_one() const {
    const ops::Threads threads(1);
    record::Observer observer;
    return sparsify::sparsify(input_, text_, options_, {}, observer);
  }
  static base::Json without_costs(base::Json report) {
    for (const auto* cost : {"seconds", "memory_planned_bytes"}) report.erase(cost);
    for (auto& layer : report["layers"]) layer.erase("seconds");
    return report;
  }
  // The Hessians are the same bits; products of fewer rows need not be.
  void expect_alike(const SparsifyResult& found, const SparsifyResult& expected) const {
    EXPECT_EQ(found.weights.lineage.sparse_layers, expected.weights.lineage.sparse_layers);
    EXPECT_EQ(found.weights.lineage.kept, expected.weights.lineage.kept);
    for (std::size_t unit = 0; unit < expected.weights.units.size(); ++unit) {
      const auto &ours = found.weights.units[unit], &theirs = expected.weights.units[unit];
      EXPECT_TRUE(at::equal(ours.ne(0), theirs.ne(0))) << "masks of unit " << unit;
      EXPECT_LT(test::largest_difference(ours, theirs), 1e-6) << unit;
    }
    const auto damage = [](const SparsifyResult& of) { return of.report.at("damage").at("objective"); };
    EXPECT_NEAR(damage(found).get<double>(), damage(expected).get<double>(), 1e-5);
    const auto &ours = found.report.at("layers"), &theirs = expected.report.at("layers");
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t layer = 0; layer < theirs.size(); ++layer) {
      EXPECT_EQ(ours[layer].at("name"), theirs[layer].at("name"));
      for (const auto* key : {"loss", "relative_error"}) {
        const double value = theirs[layer].at(key);
        EXPECT_NEAR(ours[layer].at(key).get<double>(), value, 1e-4 * value) << theirs[layer].at("name");
      }
    }
  }

  const model::Weights input_ = test::tiny_model(test::tiny_config());
  // Six batches to fit to, two to choose by and two to judge by: on three ranks some have none.
  const calibrate::TextSplit text_ = calibrate::split_by_document(test::random_domains(40, 300));
  SparsifyOptions options_;
  mutable std::mutex mutex_;
};

TEST_F(SparsifyOnRanks, EveryMethodGivesWhatItGivesOnOne) {
  using compress::SparseMethod;
  for (const auto method :
       {SparseMethod::magnitude, SparseMethod::wanda, SparseMethod::sparse_gpt, SparseMethod::alps}) {
    SCOPED_TRACE(base::word(method));
    options_.method = method;
    const auto expected = on_one();
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(ranks);
      expect_alike(on(ranks), expected);
    }
  }
}

TEST_F(SparsifyOnRanks, RanksWithoutCommonMemoryChangeTheirOwnCopies) {
  expect_alike(on(3, /*common_memory=*/false), on_one());
}

// Some of a layer's rows are nobody's, and some ranks have no text at all.
TEST_F(SparsifyOnRanks, MoreRanksThanRows) {
  options_.blocks = {1};
  for (const auto method : {compress::SparseMethod::sparse_gpt, compress::SparseMethod::alps}) {
    options_.method = method;
    expect_alike(on(19), on_one());
  }
}

TEST_F(SparsifyOnRanks, TheSameLayersAreChosen) {
  options_.share = 0.5;
  const auto expected = on_one(), found = on(3);
  expect_alike(found, expected);
  const auto &ours = found.report.at("single_damages"), &theirs = expected.report.at("single_damages");
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t layer = 0; layer < theirs.size(); ++layer) {
    EXPECT_EQ(ours[layer].at("name"), theirs[layer].at("name"));
    EXPECT_EQ(ours[layer].at("sparse"), theirs[layer].at("sparse"));
    EXPECT_NEAR(ours[layer].at("objective").get<double>(), theirs[layer].at("objective").get<double>(), 1e-5);
  }
}

// Rank 0 is asked to stop, and what is on disk serves any number of ranks.
TEST_F(SparsifyOnRanks, GoOnWhereOthersStopped) {
  for (const double share : {1.0, 0.5}) {
    options_.share = share;
    const auto expected = on_one();
    for (const int ranks : {1, 2, 3}) {
      const test::TemporaryDirectory made;
      test::Impatient impatient(share < 1 ? 23 : 9);
      EXPECT_SAYS(test::message_of<record::StoppedError>([&] { on(2, true, made / "scratch", &impatient); }),
                  "stopped on request in block 1");
      test::Impatient patient(1000);
      expect_alike(on(ranks, true, made / "scratch", &patient), expected);
    }
  }
}

TEST_F(SparsifyOnRanks, TheSameBitsAgainOnAsMany) {
  const auto first = on(3), again = on(3);
  EXPECT_EQ(first.weights.content_hash(), again.weights.content_hash());
  EXPECT_EQ(without_costs(first.report), without_costs(again.report));
}

// The weight is in rows that one rank alone works on.
TEST_F(SparsifyOnRanks, AnErrorIsThatOfAll) {
  auto broken = model::converted(input_, at::kDouble);
  broken.tensor("model.layers.1.mlp.up_proj.weight")[0][0] = std::numeric_limits<double>::infinity();
  const auto source = model::source_of(broken);
  std::atomic<int> told = 0;
  test::on_ranks(3, [&](comm::Group& group) {
    auto shared = shard::weights_of_machine(source, at::kDouble, at::kCPU, at::kCPU, group);
    record::Observer observer;
    const auto message = test::message_of<base::ValidationError>([&] {
      sparsify::sparsify(std::move(shared.weights), text_, options_,
                         {.scratch = {}, .identity = {}, .group = &group, .writes = shared.writes}, observer);
    });
    EXPECT_SAYS(message, "model.layers.1.mlp.up_proj.weight: weights are not finite");
    ++told;
    EXPECT_TRUE(group.failed_together());
  });
  EXPECT_EQ(told, 3);
}

}  // namespace
}  // namespace retort
