// Steps of a distillation on 4,096 ranks that are nowhere, with tensors that have no values: which calls each
// rank makes, and how many bytes they move.  That it runs at all shows that no host reads a device within.
#include <ATen/ExpandUtils.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "retort/base/error.h"
#include "retort/comm/recorded/recorded_group.h"
#include "retort/shard/engine.h"
#include "support/ranks.h"
#include "support/reference_model.h"

// What libtorch has for such tensors in Python only.
namespace {
at::Tensor chosen_rows(const at::Tensor& x, std::int64_t axis, const at::Tensor& index) {
  auto sizes = x.sizes().vec();
  sizes[static_cast<std::size_t>(axis)] = index.numel();
  return at::empty(sizes, x.options());
}
at::Tensor one_or_other(const at::Tensor& condition, const at::Tensor& x, const at::Tensor& y) {
  const auto sizes = at::infer_size(condition.sizes(), at::infer_size(x.sizes(), y.sizes()));
  return at::empty(sizes, condition.options().dtype(at::result_type(x, y)));
}
at::Tensor& one_or_other_out(const at::Tensor&, const at::Tensor&, const at::Tensor&, at::Tensor& out) {
  return out;  // of the right size already
}
}  // namespace
TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("index_select", chosen_rows);
  m.impl("where.self", one_or_other);
  m.impl("where.self_out", one_or_other_out);
}

namespace retort {
namespace {

constexpr std::int64_t kLength = 11, kMostBatches = 3;

struct Cluster {
  int ranks = 4096, ranks_per_node = 4;
  std::int64_t student_ranks = 0, teacher_ranks = 0;  ///< of a shard group; 0: of a machine
  std::int64_t wave = 2;
  bool tied = false;
  bool logits_only = false;  ///< no SquareHead
};

// Where a rank should find itself; groups are of neighbours, as ranks are counted by machine.
std::int64_t of_shard(const Cluster& c, std::int64_t ranks) {
  return ranks > 0 ? ranks : c.ranks_per_node;
}

comm::RecordedRank place_of(const Cluster& c, int rank, std::int64_t shard_ranks) {
  const auto of = static_cast<int>(of_shard(c, shard_ranks));
  return {
      .rank = rank, .size = c.ranks, .ranks_per_node = c.ranks_per_node, .color = [of](auto level, int r) {
        return level == "shard" ? r / of : r % of;
      }};
}

model::UnitSource without_values(const architecture::Config& config) {
  auto source = model::random_source(config, 1);
  source.read = [](std::size_t, std::int64_t, const at::Tensor&) {};
  return source;
}

architecture::Config student_of(const Cluster& c) {
  return test::config_of({.blocks = 2, .tied = c.tied});
}
architecture::Config teacher_of(const Cluster&) {
  return test::config_of({.blocks = 3});
}

// A rank has one to three of the step's batches.
std::vector<shard::MicroBatch> batches_of(int rank, at::Device device) {
  std::vector<shard::MicroBatch> batches;
  for (int i = 0; i <= rank % kMostBatches; ++i) {
    const auto ids = at::zeros({kLength}, at::TensorOptions().dtype(at::kLong).device(device));
    batches.push_back({ids, ids, {0, kLength}, {0, 3, kLength}, kLength});
  }
  return batches;
}

// Steps of a rank with the update of its weights; `begins` is called before each.
void take_steps(const Cluster& c, comm::Group& world, const shard::Groups& for_student,
                const shard::Groups& for_teacher, at::Device device, int steps,
                const std::function<void()>& begins) {
  const auto student = shard::sharded_parameters(without_values(student_of(c)), shard::Use::trained,
                                                 at::kBFloat16, device, for_student);
  const auto teacher = shard::sharded_parameters(without_values(teacher_of(c)), shard::Use::frozen,
                                                 at::kBFloat16, device, for_teacher);
  auto chosen = loss::paper_distillation_losses();
  if (c.logits_only) chosen.pop_back();
  const auto losses = loss::make_losses(chosen, {.student = 2, .teacher = 3, .survivors = {}});
  shard::PhaseClock clock;
  shard::ModelTeacher taught_by(*teacher);
  shard::Engine engine(*student, &taught_by, losses, world, clock, {.wave = c.wave, .head_rows = 16});
  const auto batches = batches_of(world.rank(), device);
  for (int step = 0; step < steps; ++step) {
    begins();
    engine.step(batches, kMostBatches);
    for (std::int64_t unit = 0; unit < student->layout().num_units(); ++unit) student->updated(unit);
  }
}

// The calls of a rank's last step; in one after another step the weights arrive that the other made.
std::vector<comm::RecordedCall> calls_of(const Cluster& c, int rank, int steps = 2) {
  const auto recording = std::make_shared<comm::Recording>();
  const auto world = comm::recorded_group(recording, place_of(c, rank, c.student_ranks));
  const auto teachers = comm::recorded_group(recording, place_of(c, rank, c.teacher_ranks));
  const auto for_student = shard::make_groups(*world, c.student_ranks);
  const auto for_teacher = shard::make_groups(*teachers, c.teacher_ranks);
  std::size_t before = 0;
  take_steps(c, *world, for_student, for_teacher, at::kMeta, steps,
             [&] { before = recording->calls().size(); });
  return {recording->calls().begin() + static_cast<std::ptrdiff_t>(before), recording->calls().end()};
}

// Calls and bytes to this rank, by level and operation.
struct Traffic {
  std::int64_t calls = 0, bytes = 0;
  bool operator==(const Traffic&) const = default;
};
using TrafficOf = std::map<std::string, Traffic>;
std::ostream& operator<<(std::ostream& out, const Traffic& t) {
  return out << t.calls << " calls, " << t.bytes << " bytes";
}

TrafficOf traffic_of(const std::vector<comm::RecordedCall>& calls) {
  TrafficOf traffic;
  for (const auto& call : calls) {
    auto& of = traffic[base::join(call.level, " ", base::word(static_cast<comm::Op>(call.id.op)))];
    ++of.calls;
    of.bytes += call.moved_bytes;
  }
  return traffic;
}

// Sizes of units, each padded to whole pieces of all ranks.
std::vector<std::int64_t> padded(const architecture::Config& config, std::int64_t ranks) {
  const auto step = ranks * architecture::kAlignment;
  std::vector<std::int64_t> sizes;
  for (const auto& unit : architecture::make_layout(config).units)
    sizes.push_back((unit.size + step - 1) / step * step);
  return sizes;
}

// The closed formula.  A wave gathers the embedding, each block forward and the head of both models, and the
// student's blocks once more; it scatters the gradient of each of the student's units.  Once a step, replicas
// sum what they have and gather new weights.  Weights are of two bytes, gradients of four.
TrafficOf formula(const Cluster& c) {
  const auto student = padded(student_of(c), c.ranks), teacher = padded(teacher_of(c), c.ranks);
  const auto waves = (kMostBatches + c.wave - 1) / c.wave;
  const auto s = of_shard(c, c.student_ranks), t = of_shard(c, c.teacher_ranks), replicas = c.ranks / s;
  TrafficOf traffic;
  const auto add = [&](const std::string& key, std::int64_t calls, std::int64_t bytes) {
    traffic[key].calls += calls;
    traffic[key].bytes += calls * bytes;
  };
  const auto units = std::ssize(student);
  for (std::int64_t unit = 0; unit < units; ++unit) {
    const auto size = student[static_cast<std::size_t>(unit)];
    const bool block = unit > 0 && (unit <= 2);
    const std::int64_t passes = block || (c.tied && unit == 0) ? 2 : 1;
    if (s > 1) add("shard all_gather", waves * passes, 2 * size / s * (s - 1));
    add("shard reduce_scatter", waves, 4 * size / s * (s - 1));
    if (replicas > 1) add("replica reduce_scatter", 1, 4 * size / c.ranks * (replicas - 1));
    if (replicas > 1) add("replica all_gather", 1, 2 * size / c.ranks * (replicas - 1));
  }
  for (const auto size : teacher)
    if (t > 1) add("shard all_gather", waves, 2 * size / t * (t - 1));
  add("world all_reduce", 1, 2 * 8 * (c.ranks - 1));  // tokens and targets
  add("world all_reduce", 1, 3 * 8 * (c.ranks - 1));  // three losses
  return traffic;
}

TEST(RecordedStep, MakesTheCallsOfTheClosedFormulaOnMembersOf4096) {
  const Cluster cluster;
  const auto expected = formula(cluster);
  const auto first = calls_of(cluster, 0);
  EXPECT_EQ(traffic_of(first), expected);
  EXPECT_EQ(traffic_of(calls_of(cluster, 0, 3)), expected);
  // A prime step: members of every place within a machine and within a shard.
  for (int rank = 1; rank < cluster.ranks; rank += 61)
    ASSERT_EQ(calls_of(cluster, rank), first) << "rank " << rank;
  ASSERT_EQ(calls_of(cluster, cluster.ranks - 1), first);
}

TEST(RecordedStep, MakesTheCallsOfTheClosedFormulaOnEveryMember) {
  const Cluster cluster{.ranks = 96, .ranks_per_node = 6, .student_ranks = 12, .teacher_ranks = 3};
  const auto first = calls_of(cluster, 0);
  EXPECT_EQ(traffic_of(first), formula(cluster));
  for (int rank = 1; rank < cluster.ranks; ++rank)
    ASSERT_EQ(calls_of(cluster, rank), first) << "rank " << rank;
}

// Flat, across machines, replicated, the teacher apart, tied, one wave.
TEST(RecordedStep, MakesTheCallsOfTheClosedFormulaInOtherLayouts) {
  for (const auto& cluster :
       {Cluster{.student_ranks = 4096, .teacher_ranks = 4096}, Cluster{.student_ranks = 64},
        Cluster{.student_ranks = 1, .teacher_ranks = 1}, Cluster{.student_ranks = 2, .teacher_ranks = 1024},
        Cluster{.wave = 1, .tied = true}, Cluster{.wave = 3},
        Cluster{.ranks = 96, .ranks_per_node = 6, .student_ranks = 3}}) {
    SCOPED_TRACE(base::join(cluster.ranks, " ranks, student ", cluster.student_ranks, ", teacher ",
                            cluster.teacher_ranks, ", wave ", cluster.wave));
    const auto first = calls_of(cluster, 0);
    EXPECT_EQ(traffic_of(first), formula(cluster));
    for (const int rank : {1, 5, cluster.ranks / 2 + 1, cluster.ranks - 1})
      EXPECT_EQ(calls_of(cluster, rank), first) << "rank " << rank;
  }
}

// What ranks that are there note of a step, of all their groups.
TrafficOf noted_traffic(const Cluster& c, comm::Group& world) {
  const auto for_student = shard::make_groups(world, c.student_ranks);
  const auto for_teacher = shard::make_groups(world, c.teacher_ranks);
  comm::Group* const groups[] = {&world, for_student.shard.get(), for_student.replica.get(),
                                 for_teacher.shard.get(), for_teacher.replica.get()};
  take_steps(c, world, for_student, for_teacher, at::kCPU, 2, [&] {
    world.barrier();
    for (auto* group : groups) group->log().clear();
  });
  TrafficOf traffic;
  for (auto* group : groups)
    for (const auto& count : group->log().counts()) {
      if (count.calls == 0 || count.op == comm::Op::barrier) continue;
      auto& of = traffic[base::join(group->level(), " ", base::word(count.op))];
      of.calls += count.calls;
      of.bytes += count.moved_bytes;
    }
  return traffic;
}

// To the byte; ranks with memory in common would move less.
TEST(RecordedStep, HasTheTrafficOfRanksThatAreThere) {
  for (const auto& cluster : {Cluster{.ranks = 4, .student_ranks = 2, .teacher_ranks = 4},
                              Cluster{.ranks = 4, .student_ranks = 4, .teacher_ranks = 2, .tied = true},
                              Cluster{.ranks = 3, .ranks_per_node = 3, .wave = 1}})
    test::on_ranks(
        cluster.ranks,
        [&](comm::Group& world) { EXPECT_EQ(noted_traffic(cluster, world), formula(cluster)); }, false);
}

// New weights go to replicas one unit at a time, behind what the step gathers next: all at once they would
// keep the first block of the teacher waiting until the whole student has arrived.
TEST(RecordedStep, SendsNewWeightsBehindWhatIsNeededNext) {
  for (const bool in_order : {true, false}) {  // SquareHead lets the student go first
    Cluster cluster;
    cluster.logits_only = in_order;
    std::int64_t gathers = 0, sent = 0;
    for (const auto& call : calls_of(cluster, 0)) {
      if (call.id.op != static_cast<std::int32_t>(comm::Op::all_gather)) continue;
      if (call.level == "replica") {
        ++sent;
      } else if (call.level == "shard") {
        EXPECT_LE(sent, gathers) << "before gather " << gathers;
        ++gathers;
      }
    }
    EXPECT_EQ(sent, 4) << "units of the student";
  }
}

// The sum over machines of a unit begins while units before it still go backward: at once where a step is one
// wave, else when the waves' sum is made.
TEST(RecordedStep, SumsOverMachinesWhileItComputes) {
  const auto is = [](std::string_view level, comm::Op op) {
    return [=](const comm::RecordedCall& call) {
      return call.level == level && call.id.op == static_cast<std::int32_t>(op);
    };
  };
  for (const auto& [wave, left] : {std::pair{3, 3}, std::pair{2, 2}}) {
    const auto calls = calls_of({.wave = wave}, 0);
    const auto first = std::ranges::find_if(calls, is("replica", comm::Op::reduce_scatter));
    const auto rest = std::ranges::subrange(first, calls.end());
    EXPECT_EQ(std::ranges::count_if(rest, is("shard", comm::Op::reduce_scatter)), left) << "of four units";
    EXPECT_EQ(std::ranges::count_if(rest, is("replica", comm::Op::reduce_scatter)), 4);
  }
}

}  // namespace
}  // namespace retort
