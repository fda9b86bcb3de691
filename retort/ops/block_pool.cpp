#include "retort/ops/block_pool.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <tuple>
#include <utility>

namespace retort::ops {
namespace {

constexpr std::size_t kPageBytes = 4096;
// The kernel clears a huge page in one fault instead of 512.
constexpr std::size_t kHugePageBytes = std::size_t{1} << 21;
// What is reserved at once where addresses are limited.
constexpr std::size_t kSmallRegionBytes = std::size_t{1} << 26;

std::size_t rounded_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

std::byte* aligned(std::byte* address, std::size_t step) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return address + (rounded_up(value, step) - value);
}

std::byte* aligned_down(std::byte* address) {
  return address - reinterpret_cast<std::uintptr_t>(address) % kHugePageBytes;
}

// Addresses cost nothing, so that one region serves a process, unless they are limited.
std::size_t region_bytes() {
  rlimit addresses{};
  if (::getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    return kSmallRegionBytes;
  const auto memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * kPageBytes;
  return rounded_up(4 * memory, kHugePageBytes);
}

std::byte* reserved(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

BlockPool::~BlockPool() {
  for (const auto& region : regions_) ::munmap(region.mapping, region.mapping_bytes);
}

void* BlockPool::take(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto capacity = rounded_up(size, kPageBytes);
  auto place = best_place(capacity);
  if (place.begin == nullptr) {
    reserve(capacity);
    place = best_place(capacity);
  }
  make_usable(place.begin, place.begin + capacity);
  touch(place.begin, place.begin + capacity);
  carve(place.begin, place.begin + capacity);
  blocks_[place.begin] = {capacity, size};
  in_use_bytes_ += capacity;
  if (in_use_bytes_ + waiting_bytes_ > limit_bytes_)
    shrink_waiting(limit_bytes_ > in_use_bytes_ ? limit_bytes_ - in_use_bytes_ : 0);
  peak_bytes_ = std::max(peak_bytes_, in_use_bytes_ + waiting_bytes_);
  return place.begin;
}

std::size_t BlockPool::give(void* memory, std::size_t most_waiting_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return 0;
  const auto [capacity, size] = found->second;
  blocks_.erase(found);
  in_use_bytes_ -= capacity;
  waiting_bytes_ += capacity;
  insert(static_cast<std::byte*>(memory), {capacity, true, ++given_});
  shrink_waiting(most_waiting_bytes);
  return size;
}

void BlockPool::limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_bytes_ = bytes;
}

std::size_t BlockPool::in_use_bytes() const {
  const std::lock_guard lock(mutex_);
  return in_use_bytes_;
}

std::size_t BlockPool::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

std::size_t BlockPool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void BlockPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = in_use_bytes_ + waiting_bytes_;
}

std::size_t BlockPool::from_system_bytes() const {
  const std::lock_guard lock(mutex_);
  return from_system_bytes_;
}

// The place that needs least memory from the system, then the one in the smallest run of holes.  Few holes
// are there, so a walk over them takes nothing beside the work on a block.
BlockPool::Place BlockPool::best_place(std::size_t bytes) const {
  Place best;
  const auto consider = [&](std::byte* begin, std::size_t run_bytes) {
    const Place place{begin, fresh_bytes(begin, begin + bytes), run_bytes};
    if (std::tie(place.fresh_bytes, place.run_bytes) < std::tie(best.fresh_bytes, best.run_bytes) ||
        best.begin == nullptr)
      best = place;
  };
  for (auto first = holes_.begin(); first != holes_.end();) {
    auto* const begin = first->first;
    auto* end = begin;
    for (; first != holes_.end() && first->first == end; ++first) end += first->second.bytes;
    const auto run_bytes = static_cast<std::size_t>(end - begin);
    if (run_bytes < bytes) continue;
    consider(begin, run_bytes);
    if (!ends_region(end)) consider(end - bytes, run_bytes);
  }
  return best;
}

bool BlockPool::ends_region(const std::byte* address) const {
  return std::ranges::any_of(regions_, [&](const Region& region) { return region.end == address; });
}

// Bytes that get memory where a block is put between these: the system gives whole huge pages.
std::size_t BlockPool::fresh_bytes(std::byte* begin, std::byte* end) const {
  std::size_t bytes = 0;
  for_each_bare(begin, end,
                [&](std::byte* from, std::byte* to) { bytes += static_cast<std::size_t>(to - from); });
  return bytes;
}

// Calls visit(from, to) with the parts without memory of the huge pages between these.
template <typename Visit>
void BlockPool::for_each_bare(std::byte* begin, std::byte* end, Visit visit) const {
  auto* const first = aligned_down(begin);
  auto* const last = aligned(end, kHugePageBytes);
  auto hole = holes_.upper_bound(first);
  if (hole != holes_.begin()) --hole;
  for (; hole != holes_.end() && hole->first < last; ++hole) {
    auto* const from = std::max(first, hole->first);
    auto* const to = std::min(last, hole->first + hole->second.bytes);
    if (!hole->second.waiting && from < to) visit(from, to);
  }
}

// What lies on the same huge pages as a block gets memory with it.
void BlockPool::touch(std::byte* begin, std::byte* end) {
  std::vector<std::pair<std::byte*, std::byte*>> parts;
  for_each_bare(begin, end, [&](std::byte* from, std::byte* to) { parts.emplace_back(from, to); });
  for (const auto& [from, to] : parts) {
    carve(from, to);
    const auto bytes = static_cast<std::size_t>(to - from);
    waiting_bytes_ += bytes;
    from_system_bytes_ += bytes;
    insert(from, {bytes, true, given_});
  }
}

// The page after a region stays without use, so that holes of two regions never touch.
void BlockPool::reserve(std::size_t bytes) {
  const auto least = rounded_up(bytes, kHugePageBytes) + kHugePageBytes + kPageBytes;
  auto size = std::max(region_bytes(), least);
  auto* memory = reserved(size);
  while (memory == nullptr && size > least) {
    size = std::max(size / 2 / kHugePageBytes * kHugePageBytes, least);
    memory = reserved(size);
  }
  if (memory == nullptr) throw std::bad_alloc();
  auto* const begin = aligned(memory, kHugePageBytes);
  auto* const end = memory + (size - kPageBytes) / kPageBytes * kPageBytes;
  regions_.push_back({begin, begin, end, memory, size});
  holes_[begin] = {static_cast<std::size_t>(end - begin), false, 0};
}

void BlockPool::make_usable(std::byte* begin, std::byte* end) {
  auto& region = *std::ranges::find_if(
      regions_, [&](const Region& one) { return one.begin <= begin && begin < one.end; });
  if (end <= region.usable) return;
  auto* const goal = std::min(aligned(end, kHugePageBytes), region.end);
  const auto bytes = static_cast<std::size_t>(goal - region.usable);
  if (::mprotect(region.usable, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  ::madvise(region.usable, bytes, MADV_HUGEPAGE);  // a wish: where it is not granted, nothing is lost
#endif
  region.usable = goal;
}

// Takes these addresses out of the holes that cover them.
void BlockPool::carve(std::byte* begin, std::byte* end) {
  auto hole = std::prev(holes_.upper_bound(begin));
  while (hole != holes_.end() && hole->first < end) {
    auto* const hole_begin = hole->first;
    auto* const hole_end = hole_begin + hole->second.bytes;
    const auto whole = hole->second;
    hole = holes_.erase(hole);
    const auto part = [&](std::byte* from, std::byte* to) {
      if (from < to) holes_[from] = {static_cast<std::size_t>(to - from), whole.waiting, whole.freed};
    };
    part(hole_begin, begin);
    part(end, hole_end);
    if (whole.waiting)
      waiting_bytes_ -= static_cast<std::size_t>(std::min(end, hole_end) - std::max(begin, hole_begin));
  }
}

// Holes of one kind that touch are one.
void BlockPool::insert(std::byte* begin, const Hole& hole) {
  auto place = holes_.insert_or_assign(begin, hole).first;
  const auto joins = [](const Holes::value_type& left, const Holes::value_type& right) {
    return left.first + left.second.bytes == right.first && left.second.waiting == right.second.waiting;
  };
  const auto join = [&](Holes::iterator left, Holes::iterator right) {
    left->second.bytes += right->second.bytes;
    left->second.freed = std::max(left->second.freed, right->second.freed);
    holes_.erase(right);
  };
  if (const auto next = std::next(place); next != holes_.end() && joins(*place, *next)) join(place, next);
  if (place == holes_.begin()) return;
  if (const auto before = std::prev(place); joins(*before, *place)) join(before, place);
}

void BlockPool::shrink_waiting(std::size_t most_bytes) {
  while (waiting_bytes_ > most_bytes && release_oldest()) {
  }
}

// Whole huge pages only: the kernel would keep one of which a part is given back.
bool BlockPool::release_oldest() {
  const auto inside = [](const Holes::value_type& hole) {
    auto* const begin = aligned(hole.first, kHugePageBytes);
    auto* const end = hole.first + hole.second.bytes;
    const auto bytes = begin < end ? static_cast<std::size_t>(end - begin) : 0;
    return std::pair(begin, bytes / kHugePageBytes * kHugePageBytes);
  };
  auto oldest = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole)
    if (hole->second.waiting && inside(*hole).second > 0 &&
        (oldest == holes_.end() || hole->second.freed < oldest->second.freed))
      oldest = hole;
  if (oldest == holes_.end()) return false;
  const auto [begin, bytes] = inside(*oldest);
  ::madvise(begin, bytes, MADV_DONTNEED);
  carve(begin, begin + bytes);
  insert(begin, {bytes, false, 0});
  return true;
}

}  // namespace retort::ops
