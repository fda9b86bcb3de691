#pragma once
// The contract of a group, for every backend: one rank's part of each check.  Values are small whole numbers,
// so that every sum is exact in every type.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "retort/base/error.h"
#include "retort/comm/group.h"
#include "retort/comm/requests.h"

namespace retort::test {

using comm::Buffer;
using comm::ConstBuffer;
using comm::Group;
using comm::Type;

/// Where Values lie.
inline comm::Device device_of_values = comm::Device::cpu;

/// `count` values of a type, as bytes.
class Values {
 public:
  Values(Type type, std::int64_t count)
      : type_(type), count_(count), bytes_(static_cast<std::size_t>(count * comm::size_of(type))) {
    if (device_ == comm::Device::accelerator) on_device_ = DeviceBytes(std::ssize(bytes_));
  }
  void set(std::int64_t i, float value) {
    fetch();
    put(bytes_.data() + i * comm::size_of(type_), value);
    newer_here_ = true;
  }
  float get(std::int64_t i) {
    fetch();
    return read(bytes_.data() + i * comm::size_of(type_));
  }
  Buffer buffer() { return part(0, count_); }
  /// What is taken from here or left here is there for get() when the call was waited for.
  Buffer part(std::int64_t begin, std::int64_t count) {
    if (device_ == comm::Device::cpu) return {bytes_.data() + begin * comm::size_of(type_), count, type_};
    if (newer_here_) device::to_device(on_device_.get(), bytes_.data(), std::ssize(bytes_));
    newer_here_ = false;
    newer_there_ = true;
    return {static_cast<std::byte*>(on_device_.get()) + begin * comm::size_of(type_), count, type_, device_};
  }
  std::int64_t count() const { return count_; }

 private:
  void fetch() {
    if (newer_there_) device::to_host(bytes_.data(), on_device_.get(), std::ssize(bytes_));
    newer_there_ = false;
  }
  void put(std::byte* at, float value) const {
    if (type_ == Type::f64) {
      const double wide = value;
      std::memcpy(at, &wide, sizeof wide);
    } else if (type_ == Type::bf16) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      const auto high = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(at, &high, sizeof high);
    } else if (type_ == Type::f32) {
      std::memcpy(at, &value, sizeof value);
    } else {
      *at = static_cast<std::byte>(static_cast<int>(value) % 256);
    }
  }
  float read(const std::byte* at) const {
    if (type_ == Type::f64) {
      double wide;
      std::memcpy(&wide, at, sizeof wide);
      return static_cast<float>(wide);
    }
    if (type_ == Type::bytes) return static_cast<float>(*at);
    std::uint32_t bits = 0;
    std::memcpy(
        type_ == Type::bf16 ? reinterpret_cast<std::byte*>(&bits) + 2 : reinterpret_cast<std::byte*>(&bits),
        at, static_cast<std::size_t>(comm::size_of(type_)));
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  Type type_;
  std::int64_t count_;
  std::vector<std::byte> bytes_;
  comm::Device device_ = device_of_values;
  DeviceBytes on_device_;
  bool newer_here_ = false, newer_there_ = false;
};

/// Differs by rank and place; 4 of them add up exactly in bfloat16, which has 8 bits.
inline float value_of(int rank, std::int64_t place) {
  return static_cast<float>((rank + 1) * (1 + place % 7));
}

inline float sum_of(const Group& group, std::int64_t place) {
  float sum = 0;
  for (int rank = 0; rank < group.size(); ++rank) sum += value_of(rank, place);
  return sum;
}

inline Values own_values(const Group& group, Type type, std::int64_t count) {
  Values values(type, count);
  for (std::int64_t i = 0; i < count; ++i) values.set(i, value_of(group.rank(), i));
  return values;
}

/// A check of the contract: called as each rank of the group at the same time.
struct Check {
  const char* name;
  void (*act)(Group& group);
  bool needs_others = true;  ///< asks what another rank gave
};

inline constexpr Type kTypes[] = {Type::f32, Type::f64, Type::bf16};
// Nothing, a few, and more than a backend may keep in one piece.
inline constexpr std::int64_t kCounts[] = {0, 1, 5, 300'001};

inline void ranks_count_from_zero(Group& group) {
  EXPECT_GE(group.size(), 1);
  EXPECT_GE(group.rank(), 0);
  EXPECT_LT(group.rank(), group.size());
}

inline void all_gather_is_in_the_order_of_ranks(Group& group) {
  for (const auto type : {Type::bytes, Type::f32, Type::f64, Type::bf16})
    for (const auto count : kCounts) {
      auto own = own_values(group, type, count);
      Values all(type, count * group.size());
      group.all_gather(own.buffer(), all.buffer()).wait();
      for (int rank = 0; rank < group.size(); ++rank)
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(all.get(rank * count + i), value_of(rank, i)) << rank << " " << i;
    }
}

inline void all_gather_takes_its_part_from_its_place(Group& group) {
  Values all(Type::f32, 3 * group.size());
  for (std::int64_t i = 0; i < 3; ++i) all.set(3 * group.rank() + i, value_of(group.rank(), i));
  group.all_gather(all.part(3 * group.rank(), 3), all.buffer()).wait();
  for (int rank = 0; rank < group.size(); ++rank)
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(all.get(3 * rank + i), value_of(rank, i));
}

inline void reduce_scatter_leaves_the_sum_of_its_part(Group& group) {
  for (const auto type : kTypes)
    for (const auto count : kCounts) {
      auto all = own_values(group, type, count * group.size());
      Values own(type, count);
      group.reduce_scatter(all.buffer(), own.buffer()).wait();
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(own.get(i), sum_of(group, group.rank() * count + i)) << i;
    }
}

inline void reduce_scatter_may_leave_it_where_it_was(Group& group) {
  auto all = own_values(group, Type::f32, 2 * group.size());
  group.reduce_scatter(all.buffer(), all.part(2 * group.rank(), 2)).wait();
  for (std::int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(all.get(2 * group.rank() + i), sum_of(group, 2 * group.rank() + i));
}

inline void all_reduce_gives_every_rank_the_sum(Group& group) {
  for (const auto type : kTypes)
    for (const auto count : kCounts) {
      auto values = own_values(group, type, count);
      group.all_reduce(values.buffer()).wait();
      for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(values.get(i), sum_of(group, i)) << i;
    }
  double sums[2] = {1.0 + group.rank(), -0.5};
  group.all_sum(sums);
  EXPECT_EQ(sums[0], group.size() * (group.size() + 1) / 2.0);
  EXPECT_EQ(sums[1], -0.5 * group.size());
}

// 256 + 1 + 1 + 1 is 259, which bfloat16 rounds to 260; rounded at each step it would stay 256.
inline void bfloat16_is_summed_in_float32(Group& group) {
  if (group.size() != 4) return;
  Values values(Type::bf16, 1);
  values.set(0, group.rank() == 0 ? 256 : 1);
  group.all_reduce(values.buffer()).wait();
  EXPECT_EQ(values.get(0), 260);
}

// (1 + 2^-24) + 2^-24 is 1 in float32, 2^-24 + 2^-24 + 1 is not: an order other than that of ranks shows.
inline void sums_are_in_the_order_of_ranks(Group& group) {
  if (group.size() < 3) return;
  Values values(Type::f32, group.size());
  for (std::int64_t i = 0; i < values.count(); ++i) values.set(i, group.rank() == 0 ? 1.0F : 0x1p-24F);
  Values own(Type::f32, 1);
  group.reduce_scatter(values.buffer(), own.buffer()).wait();
  EXPECT_EQ(own.get(0), 1.0F);
  group.all_reduce(values.buffer()).wait();
  EXPECT_EQ(values.get(0), 1.0F);
}

inline void broadcast_spreads_the_roots_values(Group& group) {
  for (int root = 0; root < group.size(); ++root)
    for (const auto count : kCounts) {
      auto values = own_values(group, Type::f32, count);
      group.broadcast(values.buffer(), root).wait();
      for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(values.get(i), value_of(root, i)) << i;
    }
  std::string text = "of rank " + std::to_string(group.rank());
  group.share(text, group.size() - 1);
  EXPECT_EQ(text, "of rank " + std::to_string(group.size() - 1));
}

inline void calls_under_way_end_in_their_order(Group& group) {
  auto first = own_values(group, Type::f32, 1000), second = own_values(group, Type::f64, 10);
  auto one = group.all_reduce(first.buffer());
  auto other = group.all_reduce(second.buffer());
  other.wait();
  one.wait();
  one.wait();
  EXPECT_EQ(first.get(3), sum_of(group, 3));
  EXPECT_EQ(second.get(3), sum_of(group, 3));
}

inline void a_part_of_the_ranks_is_a_group(Group& group) {
  const auto part = group.split(group.rank() % 2, "parity");
  EXPECT_EQ(part->level(), "parity");
  EXPECT_EQ(part->size(), (group.size() + 1 - group.rank() % 2) / 2);
  EXPECT_EQ(part->rank(), group.rank() / 2);
}

inline void a_part_of_the_ranks_adds_up_alone(Group& group) {
  const auto part = group.split(group.rank() % 2, "parity");
  double sum[1] = {static_cast<double>(group.rank())};
  part->all_sum(sum);
  double expected = 0;
  for (int rank = group.rank() % 2; rank < group.size(); rank += 2) expected += rank;
  EXPECT_EQ(sum[0], expected);
  group.barrier();
}

inline void every_rank_throws_what_the_first_that_failed_threw(Group& group) {
  group.agree([] {});
  try {
    group.agree([&] {
      if (group.rank() > 0 || group.size() == 1)
        throw base::DataError(base::join("rank ", group.rank(), ": bad"));
    });
    FAIL() << "no error";
  } catch (const base::DataError& error) {
    EXPECT_STREQ(error.what(), group.size() == 1 ? "rank 0: bad" : "rank 1: bad");
  }
  group.barrier();
}

inline void parts_that_do_not_fit_are_refused(Group& group) {
  auto own = own_values(group, Type::f32, 3);
  Values all(Type::f32, 3 * group.size() + 1);
  EXPECT_THROW((void)group.all_gather(own.buffer(), all.buffer()), base::InternalError);
  EXPECT_THROW((void)group.reduce_scatter(all.buffer(), own.buffer()), base::InternalError);
  Values bytes(Type::bytes, 4);
  EXPECT_THROW((void)group.all_reduce(bytes.buffer()), base::InternalError);
}

// Where there is none, a backend has none for anybody.
inline void common_memory_is_seen_by_all(Group& group) {
  const auto block = group.common_block(static_cast<std::int64_t>(sizeof(float)) * 8 * group.size());
  if (!block) return;
  auto* values = reinterpret_cast<float*>(block->bytes().data());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(values[8 * group.rank() + i], 0);
  for (int i = 0; i < 8; ++i) values[8 * group.rank() + i] = value_of(group.rank(), i);
  const Buffer all{values, 8 * group.size(), Type::f32};
  group.all_gather({values + 8 * group.rank(), 8, Type::f32}, all).wait();
  for (int rank = 0; rank < group.size(); ++rank)
    for (int i = 0; i < 8; ++i) EXPECT_EQ(values[8 * rank + i], value_of(rank, i));
  group.barrier();
  // A buffer of each rank's own, read in place by the others.
  const auto blocks =
      group.common_block(static_cast<std::int64_t>(sizeof(float)) * 8 * group.size() * group.size());
  auto* own = reinterpret_cast<float*>(blocks->bytes().data()) + 8 * group.size() * group.rank();
  for (int i = 0; i < 8 * group.size(); ++i) own[i] = value_of(group.rank(), i);
  group.reduce_scatter({own, 8 * group.size(), Type::f32}, {own + 8 * group.rank(), 8, Type::f32}).wait();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(own[8 * group.rank() + i], sum_of(group, 8 * group.rank() + i));
}

inline void the_log_counts_calls_and_bytes(Group& group) {
  group.log().clear();
  auto own = own_values(group, Type::f32, 16);
  Values all(Type::f32, 16 * group.size());
  for (int i = 0; i < 3; ++i) group.all_gather(own.buffer(), all.buffer()).wait();
  auto counts = group.log().counts();
  std::erase_if(counts, [](const auto& count) { return count.calls == 0; });  // earlier ones end only now
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].op, comm::Op::all_gather);
  EXPECT_EQ(counts[0].calls, 3);
  EXPECT_EQ(counts[0].bytes, 64 * group.size());
  EXPECT_EQ(counts[0].moved_bytes, 3 * 64 * (group.size() - 1));
}

inline void texts_of_all_ranks_keep_their_lengths(Group& group) {
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(3 * rank), static_cast<char>('a' + rank));
  };
  const auto texts = group.all_texts(text_of(group.rank()));
  ASSERT_EQ(std::ssize(texts), group.size());
  for (int rank = 0; rank < group.size(); ++rank)
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
}

inline void all_ranks_answer_what_rank_0_asks(Group& group) {
  int served = 0;
  {
    comm::Requests requests(group, [&](const std::string& request) {
      ++served;
      return request + std::to_string(group.rank());
    });
    if (group.rank() == 0) {
      for (const std::string word : {"one ", "", "two "}) {
        const auto answers = requests.ask(word);
        ASSERT_EQ(std::ssize(answers), group.size());
        for (int rank = 0; rank < group.size(); ++rank)
          EXPECT_EQ(answers[static_cast<std::size_t>(rank)], word + std::to_string(rank));
      }
    } else {
      requests.serve();
    }
  }
  EXPECT_EQ(served, 3);
}

// What rank 0 throws by itself lets the others go; what a rank throws in its answer all throw.
inline void requests_end_with_an_error(Group& group) {
  const auto last = group.size() - 1;
  const auto ask = [&](bool last_fails) {
    comm::Requests requests(group, [&](const std::string&) -> std::string {
      base::require<base::DataError>(!last_fails || group.rank() != last, "rank ", last, " has no answer");
      return {};
    });
    if (group.rank() != 0) return requests.serve();
    (void)requests.ask("?");
    base::require<base::StorageError>(last_fails, "rank 0 cannot write");
  };
  if (group.rank() == 0)
    EXPECT_THROW(ask(false), base::StorageError);
  else
    ask(false);
  EXPECT_THROW(ask(true), base::DataError);
}

/// What a rank may call where the others call all_reduce of 4 f32.
struct OtherCall {
  const char* name;
  const char* described;
  void (*make)(Group& group, Buffer own);
};

inline constexpr OtherCall kOtherCalls[] = {
    {"count", "all_reduce of 3 f32",
     [](Group& group, Buffer own) {
       own.count = 3;
       group.all_reduce(own).wait();
     }},
    {"operation", "broadcast of 4 f32", [](Group& group, Buffer own) { group.broadcast(own, 0).wait(); }}};

inline constexpr Check kContract[] = {
    {"RanksCountFromZero", ranks_count_from_zero, false},
    {"AllGatherIsInTheOrderOfRanks", all_gather_is_in_the_order_of_ranks},
    {"AllGatherTakesItsPartFromItsPlace", all_gather_takes_its_part_from_its_place},
    {"ReduceScatterLeavesTheSumOfItsPart", reduce_scatter_leaves_the_sum_of_its_part},
    {"ReduceScatterMayLeaveItWhereItWas", reduce_scatter_may_leave_it_where_it_was},
    {"AllReduceGivesEveryRankTheSum", all_reduce_gives_every_rank_the_sum},
    {"Bfloat16IsSummedInFloat32", bfloat16_is_summed_in_float32},
    {"SumsAreInTheOrderOfRanks", sums_are_in_the_order_of_ranks},
    {"BroadcastSpreadsTheRootsValues", broadcast_spreads_the_roots_values},
    {"CallsUnderWayEndInTheirOrder", calls_under_way_end_in_their_order},
    {"APartOfTheRanksIsAGroup", a_part_of_the_ranks_is_a_group, false},
    {"APartOfTheRanksAddsUpAlone", a_part_of_the_ranks_adds_up_alone},
    {"EveryRankThrowsWhatTheFirstThatFailedThrew", every_rank_throws_what_the_first_that_failed_threw},
    {"PartsThatDoNotFitAreRefused", parts_that_do_not_fit_are_refused, false},
    {"CommonMemoryIsSeenByAll", common_memory_is_seen_by_all},
    {"TheLogCountsCallsAndBytes", the_log_counts_calls_and_bytes, false},
    {"TextsOfAllRanksKeepTheirLengths", texts_of_all_ranks_keep_their_lengths},
    {"AllRanksAnswerWhatRank0Asks", all_ranks_answer_what_rank_0_asks},
    {"RequestsEndWithAnError", requests_end_with_an_error},
};

}  // namespace retort::test
