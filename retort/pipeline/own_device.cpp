#include "retort/pipeline/own_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/nccl/library.h"
#include "retort/ops/device_identity.h"
#include "retort/shard/accelerator.h"

namespace retort::pipeline {
namespace {

// Where a rank stands on its machine, and what it sees there.
struct Place {
  std::int64_t rank = 0;   // of the ranks of the machine
  std::int64_t ranks = 0;  // of the machine
  std::int64_t seen = 0;   // accelerators
};

Place place_of(at::Device device, comm::Group& group) {
  const auto nodes = group.nodes();
  const auto own = nodes.begin() + group.rank();
  return {.rank = std::count(nodes.begin(), own, *own),
          .ranks = std::count(nodes.begin(), nodes.end(), *own),
          .seen = c10::impl::VirtualGuardImpl(device.type()).deviceCount()};
}

// How many accelerators the ranks of this machine see, where each sees one.  Those that are not known count
// as different: NCCL refuses what is the same.
std::int64_t different_ones(at::Device device, std::int64_t seen, comm::Group& group) {
  const auto own = seen > 0 ? ops::identity_of({device.type(), 0}) : ops::DeviceIdentity{};
  std::vector<ops::DeviceIdentity> all(static_cast<std::size_t>(group.size()));
  group
      .all_gather({own.data(), std::ssize(own), comm::Type::bytes},
                  {all.data(), std::ssize(std::as_bytes(std::span(all)))})
      .wait();
  const auto nodes = group.nodes();
  std::set<ops::DeviceIdentity> known;
  std::int64_t unknown = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (nodes[rank] != nodes[static_cast<std::size_t>(group.rank())]) continue;
    if (all[rank] == ops::DeviceIdentity{})
      ++unknown;
    else
      known.insert(all[rank]);
  }
  return unknown + std::ssize(known);
}

// What moves memory between accelerators of this kind; null: it is copied through that of the processors.
std::shared_ptr<const comm::nccl::Library> library_of(at::Device device) {
  const bool may_be_named = std::getenv("RETORT_NCCL") != nullptr;
  return device.is_cuda() || may_be_named ? comm::nccl::library() : nullptr;
}

bool may_share() {
  const char* said = std::getenv("RETORT_SHARE_ACCELERATORS");
  return said && *said;
}

// NCCL takes each rank for one of another machine, since it refuses two with one accelerator.
void stand_alone(const comm::Group& group) {
  ::setenv("NCCL_HOSTID", base::join(base::host_name(), "-", group.rank()).c_str(), 0);
}

}  // namespace

OwnDevice own_device(at::Device device, comm::Group& group) {
  if (device.is_cpu() || group.size() == 1) return {device};
  const auto [rank, ranks, seen] = place_of(device, group);
  const auto different = different_ones(device, seen, group);
  const auto found = seen == 1 ? different : seen;
  const bool shares = may_share() && seen > 0;
  group.agree([&, ranks = ranks] {
    base::require<base::UsageError>(!device.has_index() || ranks == 1, "device '", device.str(), "': ", ranks,
                                    " ranks of a machine would share it; use device ",
                                    at::DeviceTypeName(device.type(), true),
                                    ", by which each rank takes one of its own.");
    base::require<base::EnvironmentError>(
        shares || ranks <= found, "rank ", group.rank(), ": expected an accelerator for each of the ", ranks,
        " ranks of its machine, found ", found, "; start fewer ranks there.");
  });
  if (!device.has_index()) device.set_index(static_cast<c10::DeviceIndex>(rank % seen));
  if (shares) stand_alone(group);
  std::shared_ptr<const comm::nccl::Library> library;
  group.agree([&] { library = library_of(device); });
  group.set_accelerator(shard::accelerator_of(device), library);
  return {.device = device, .ranks = static_cast<int>(shares ? (ranks + seen - 1) / seen : 1)};
}

}  // namespace retort::pipeline
