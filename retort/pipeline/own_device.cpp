#include "retort/pipeline/own_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/comm/nccl/library.h"
#include "retort/ops/device_identity.h"
#include "retort/shard/accelerator.h"

namespace retort::pipeline {
namespace {

// Where a rank stands on its machine, and what it sees there.
struct PlaceOfRank {
  std::int64_t rank = 0;   // of the ranks of the machine
  std::int64_t ranks = 0;  // of the machine
  std::int64_t seen = 0;   // accelerators
};

PlaceOfRank place_of(at::Device device, comm::Group& group) {
  const auto nodes = group.nodes();
  const auto own = nodes.begin() + group.rank();
  return {.rank = std::count(nodes.begin(), own, *own),
          .ranks = std::count(nodes.begin(), nodes.end(), *own),
          .seen = c10::impl::VirtualGuardImpl(device.type()).deviceCount()};
}

// The accelerators that the ranks of this machine take, one for each rank.
std::vector<std::string> taken_here(const std::string& own, comm::Group& group) {
  const auto nodes = group.nodes();
  const auto all = group.all_texts(own);
  std::vector<std::string> here;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (nodes[rank] == nodes[static_cast<std::size_t>(group.rank())]) here.push_back(all[rank]);
  return here;
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
  const auto place = place_of(device, group);
  group.agree([&] {
    base::require<base::UsageError>(!device.has_index() || place.ranks == 1, "device '", device.str(),
                                    "': ", place.ranks, " ranks of a machine would share it; use device ",
                                    at::DeviceTypeName(device.type(), true),
                                    ", by which each rank takes one of its own.");
  });
  if (!device.has_index() && place.seen > 0)
    device.set_index(static_cast<c10::DeviceIndex>(place.rank % place.seen));
  const auto own = place.seen > 0 ? ops::identity_of(device) : "";
  const auto taken = taken_here(own, group);
  const auto different = place.seen > 0 ? std::ssize(std::set(taken.begin(), taken.end())) : 0;
  const auto sharing = std::ranges::count(taken, own);
  std::shared_ptr<const comm::nccl::Library> library;
  group.agree([&] {
    base::require<base::EnvironmentError>(different == place.ranks || (may_share() && place.seen > 0),
                                          "rank ", group.rank(), ": expected an accelerator for each of the ",
                                          place.ranks, " ranks of its machine, found ", different,
                                          "; start fewer ranks there.");
    if (sharing > 1) stand_alone(group);
    library = library_of(device);
  });
  group.job().set_accelerator(shard::accelerator_of(device), library);
  return {.device = device, .ranks = static_cast<int>(sharing)};
}

}  // namespace retort::pipeline
