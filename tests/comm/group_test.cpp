// The contract of a group, for every backend.
#include "retort/comm/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "retort/base/error.h"

namespace retort::comm {
namespace {

/// A backend: makes a group of its own size and runs `act` as each of its ranks.
struct Backend {
  const char* name;
  void (*run)(const std::function<void(Group&)>& act);
};

void run_single(const std::function<void(Group&)>& act) {
  act(*single_group());
}

// A new backend is a line here.
constexpr Backend kBackends[] = {{"Single", run_single}};

class GroupContract : public testing::TestWithParam<Backend> {
 protected:
  void on_each_rank(const std::function<void(Group&)>& act) const { GetParam().run(act); }
};

INSTANTIATE_TEST_SUITE_P(Backends, GroupContract, testing::ValuesIn(kBackends),
                         [](const auto& backend) { return std::string(backend.param.name); });

// Values that differ by rank and place, and whose sums are exact.
std::vector<float> own_values(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(1000 * rank) + static_cast<float>(i);
  return values;
}

float summed(const Group& group, std::size_t place) {
  float sum = 0;
  for (int rank = 0; rank < group.size(); ++rank) sum += own_values(rank, place + 1)[place];
  return sum;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

std::size_t size_of(const Group& group) {
  return static_cast<std::size_t>(group.size());
}

TEST_P(GroupContract, RanksCountFromZero) {
  on_each_rank([](Group& group) {
    EXPECT_GE(group.size(), 1);
    EXPECT_GE(group.rank(), 0);
    EXPECT_LT(group.rank(), group.size());
  });
}

TEST_P(GroupContract, AllSumGivesEveryRankTheSum) {
  on_each_rank([](Group& group) {
    std::vector<double> values{1.0 + group.rank(), -0.5};
    group.all_sum(values);
    EXPECT_EQ(values[0], group.size() * (group.size() + 1) / 2.0);
    EXPECT_EQ(values[1], -0.5 * group.size());
  });
}

TEST_P(GroupContract, AllGatherPutsThePartsInTheOrderOfRanks) {
  on_each_rank([](Group& group) {
    const auto own = own_values(group.rank(), 5);
    std::vector<float> all(5 * size_of(group));
    group.all_gather(bytes_of(own), std::as_writable_bytes(std::span(all)));
    for (int rank = 0; rank < group.size(); ++rank) {
      const auto expected = own_values(rank, 5);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), all.begin() + 5 * rank)) << rank;
    }
  });
}

TEST_P(GroupContract, AllGatherTakesItsOwnPartFromItsPlace) {
  on_each_rank([](Group& group) {
    std::vector<float> all(3 * size_of(group));
    const auto place = std::span(all).subspan(3 * static_cast<std::size_t>(group.rank()), 3);
    const auto own = own_values(group.rank(), 3);
    std::copy(own.begin(), own.end(), place.begin());
    group.all_gather(std::as_bytes(place), std::as_writable_bytes(std::span(all)));
    for (int rank = 0; rank < group.size(); ++rank) {
      const auto expected = own_values(rank, 3);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), all.begin() + 3 * rank)) << rank;
    }
  });
}

TEST_P(GroupContract, ReduceScatterLeavesTheSumOfItsPart) {
  on_each_rank([](Group& group) {
    const auto all = own_values(group.rank(), 4 * size_of(group));
    std::vector<float> own(4);
    group.reduce_scatter(all, own);
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_EQ(own[i], summed(group, 4 * static_cast<std::size_t>(group.rank()) + i)) << i;
  });
}

TEST_P(GroupContract, ReduceScatterMayLeaveItWhereItWas) {
  on_each_rank([](Group& group) {
    auto all = own_values(group.rank(), 2 * size_of(group));
    const auto own = std::span(all).subspan(2 * static_cast<std::size_t>(group.rank()), 2);
    group.reduce_scatter(all, own);
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_EQ(own[i], summed(group, 2 * static_cast<std::size_t>(group.rank()) + i)) << i;
  });
}

TEST_P(GroupContract, NothingIsACollectiveToo) {
  on_each_rank([](Group& group) {
    group.all_sum({});
    group.all_gather({}, {});
    group.reduce_scatter({}, {});
    group.barrier();
  });
}

TEST_P(GroupContract, RefusesPartsThatDoNotFit) {
  on_each_rank([](Group& group) {
    const auto own = own_values(group.rank(), 3);
    std::vector<float> all(3 * size_of(group) + 1);
    EXPECT_THROW(group.all_gather(bytes_of(own), std::as_writable_bytes(std::span(all))),
                 base::InternalError);
    std::vector<float> part(3);
    EXPECT_THROW(group.reduce_scatter(all, part), base::InternalError);
  });
}

}  // namespace
}  // namespace retort::comm
