#include "device/test_device.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace retort::test::device {
namespace {

constexpr std::int64_t kAddresses = std::int64_t{1} << 38;
constexpr std::int64_t kPage = 4096;

// How far each stream had come, by its number, as somebody knows.
using Clock = std::map<int, std::int64_t>;

void join(Clock& clock, const Clock& other) {
  for (const auto& [stream, tick] : other) clock[stream] = std::max(clock[stream], tick);
}

struct Used {
  std::int64_t begin, end;
  bool writes;
  int stream;
  std::int64_t tick;
};

struct Allocation {
  std::int64_t bytes;
  Stream* stream;
  std::vector<Used> uses;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Event {
  Clock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> reached = false;
  double seconds = 0;
};

// Kernels that the calling thread is in: it waits for what it gives, and then carries it out itself.
thread_local int kernels_here = 0;

struct Stream {
  Stream(int of_device, int of_number) : device(of_device), number(of_number), thread([this] { work(); }) {}

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return hurried && !busy && !tasks.empty(); });
      carry_out_next(lock);
    }
  }
  // `at_once`: even if nobody waits for it.
  void push(std::function<void()> task, bool at_once = true) {
    {
      const std::scoped_lock lock(mutex);
      tasks.push_back(std::move(task));
      hurried = hurried || at_once;
    }
    if (at_once) changed.notify_all();
  }
  // Work is carried out by the calling thread where nobody else is at it: to wake another takes longer than
  // most work of tests.
  void carry_out_until_reached(const Event& event) {
    std::unique_lock lock(mutex);
    while (!event.reached) {
      if (!busy && !tasks.empty()) {
        carry_out_next(lock);
        continue;
      }
      ++waiting;
      changed.wait(lock, [&] { return event.reached || (!busy && !tasks.empty()); });
      --waiting;
    }
  }

  int device, number;
  Clock clock;  // of the last work that it was given
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool busy = false, hurried = false;
  int waiting = 0;
  std::thread thread;

 private:
  void carry_out_next(std::unique_lock<std::mutex>& lock) {
    auto task = std::move(tasks.front());
    tasks.pop_front();
    busy = true;
    lock.unlock();
    [&]() noexcept { task(); }();
    task = {};  // what it holds may give memory back, which needs the lock
    lock.lock();
    busy = false;
    hurried = hurried && !tasks.empty();
    if (waiting > 0 || hurried) changed.notify_all();
  }
};

namespace {

// All devices.  Lives as long as the process, because its streams do.
class Machine {
 public:
  Machine() {
    file_ = ::memfd_create("test_device", 0);
    if (file_ < 0 || ::ftruncate(file_, kAddresses) != 0) std::abort();
    closed_ = map(PROT_NONE);
    open_ = map(PROT_READ | PROT_WRITE);
    for (int device = 0; device < kDevices; ++device)
      defaults_[static_cast<std::size_t>(device)] = new_stream(device);
  }

  Stream* default_stream(int device) { return defaults_.at(static_cast<std::size_t>(device)); }
  Stream* new_stream(int device) {
    const std::scoped_lock lock(mutex_);
    return new Stream(device, streams_++);
  }

  void* allocate(std::int64_t bytes, Stream* stream) {
    void* data = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      data = closed_ + taken_;
      allocations_[taken_] = {bytes, stream, {}};
      auto& memory = memory_.at(static_cast<std::size_t>(stream->device));
      memory.live += bytes;
      memory.peak = std::max(memory.peak, memory.live);
      taken_ += (bytes + kPage) / kPage * kPage;
      if (taken_ > kAddresses) std::abort();
    }
    give(
        stream, {{data, bytes, true}},
        [data, bytes, this] { std::memset(reached(data), 0xA5, static_cast<std::size_t>(bytes)); },
        /*at_once=*/false);
    return data;
  }

  void give_back(void* data) {
    const auto begin = offset_of(data);
    Allocation gone;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = allocations_.find(begin);
      if (found == allocations_.end()) std::abort();
      gone = std::move(found->second);
      for (const auto& use : gone.uses)
        if (known(gone.stream->clock, use) < use.tick)
          faults_.push_back("memory is given back to stream " + std::to_string(gone.stream->number) +
                            " before it knows that stream " + std::to_string(use.stream) +
                            " is done with it");
      allocations_.erase(found);
      memory_.at(static_cast<std::size_t>(gone.stream->device)).live -= gone.bytes;
    }
    gone.stream->push(
        [this, begin, bytes = (gone.bytes + kPage) / kPage * kPage] {
          ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, bytes);
        },
        /*at_once=*/false);
  }

  int device_of_memory(const void* data) {
    const std::scoped_lock lock(mutex_);
    const auto after = allocations_.upper_bound(offset_of(data));
    if (after == allocations_.begin()) std::abort();
    return std::prev(after)->second.stream->device;
  }
  std::byte* reached(const void* data) const { return open_ + offset_of(data); }

  void give(Stream* stream, const std::vector<Use>& uses, std::function<void()> work, bool at_once = true) {
    const std::scoped_lock lock(mutex_);
    join(stream->clock, known_here());
    const auto tick = ++stream->clock[stream->number];
    for (const auto& use : uses) note(*stream, use, tick);
    stream->push(std::move(work), at_once && kernels_here == 0);
  }

  std::shared_ptr<Event> record(Stream* stream, bool at_once = true) {
    auto event = std::make_shared<Event>();
    const std::scoped_lock lock(mutex_);
    join(stream->clock, known_here());
    event->clock = stream->clock;
    stream->push(
        [event] {
          {
            const std::scoped_lock inner(event->mutex);
            event->seconds = now_seconds();
            event->reached = true;
          }
          event->changed.notify_all();
        },
        at_once);
    return event;
  }

  void wait(Stream* stream, const std::shared_ptr<Event>& event) {
    const std::scoped_lock lock(mutex_);
    join(stream->clock, event->clock);
    stream->push([event] {
      std::unique_lock inner(event->mutex);
      event->changed.wait(inner, [&] { return event->reached.load(); });
    });
  }

  // The calling thread knows what the event did.
  void learn(const Event& event) {
    const std::scoped_lock lock(mutex_);
    join(known_here(), event.clock);
  }

  struct Memory {
    std::int64_t live = 0, peak = 0;
  };
  Memory memory(int device) {
    const std::scoped_lock lock(mutex_);
    return memory_.at(static_cast<std::size_t>(device));
  }
  void reset_peak(int device) {
    const std::scoped_lock lock(mutex_);
    auto& memory = memory_.at(static_cast<std::size_t>(device));
    memory.peak = memory.live;
  }

  std::vector<std::string> take_faults() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(faults_, {});
  }

 private:
  std::byte* map(int protection) const {
    void* mapped = ::mmap(nullptr, kAddresses, protection, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (mapped == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(mapped);
  }
  std::int64_t offset_of(const void* data) const { return static_cast<const std::byte*>(data) - closed_; }
  static Clock& known_here() {
    thread_local Clock clock;
    return clock;
  }
  static std::int64_t known(const Clock& clock, const Used& use) {
    const auto found = clock.find(use.stream);
    return found == clock.end() ? 0 : found->second;
  }

  void note(const Stream& stream, const Use& use, std::int64_t tick) {
    if (use.bytes == 0) return;
    const auto begin = offset_of(use.data), end = begin + use.bytes;
    auto after = allocations_.upper_bound(begin);
    if (after == allocations_.begin() || end > (--after)->first + after->second.bytes) {
      faults_.push_back("stream " + std::to_string(stream.number) + " uses memory that nobody has");
      return;
    }
    auto& uses = after->second.uses;
    for (const auto& before : uses)
      if (before.begin < end && begin < before.end && (before.writes || use.writes) &&
          known(stream.clock, before) < before.tick)
        faults_.push_back("stream " + std::to_string(stream.number) + (use.writes ? " writes" : " reads") +
                          " what stream " + std::to_string(before.stream) +
                          (before.writes ? " writes" : " reads") + ", and nothing orders them");
    std::erase_if(uses, [&](const Used& before) {
      return begin <= before.begin && before.end <= end &&
             (use.writes || (!before.writes && before.stream == stream.number));
    });
    uses.push_back({begin, end, use.writes, stream.number, tick});
  }

  int file_ = -1;
  std::byte *closed_ = nullptr, *open_ = nullptr;
  std::mutex mutex_;
  std::int64_t taken_ = 0;
  int streams_ = 0;
  std::array<Stream*, kDevices> defaults_{};
  std::map<std::int64_t, Allocation> allocations_;  // by where they begin
  std::array<Memory, kDevices> memory_{};
  std::vector<std::string> faults_;
};

Machine& machine();

// A program that nobody can ask says it at its end.
void say_faults() {
  for (const auto& fault : machine().take_faults()) std::fprintf(stderr, "test device: %s\n", fault.c_str());
}

Machine& machine() {
  static auto* const kMachine = [] {
    std::atexit(say_faults);
    return new Machine;
  }();
  return *kMachine;
}

thread_local int device_here = 0;
thread_local std::int64_t waits_here = 0;
thread_local std::array<Stream*, kDevices> streams_here{};

void copy(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void* allocate(std::int64_t bytes) {
  return machine().allocate(bytes, current_stream(device_here));
}
void give_back(void* data) {
  machine().give_back(data);
}
std::byte* reached(const void* data) {
  return machine().reached(data);
}
int device_of_memory(const void* data) {
  return machine().device_of_memory(data);
}

int current_device() {
  return device_here;
}
void set_current_device(int device) {
  device_here = device;
}
Stream* current_stream(int device) {
  auto* const here = streams_here.at(static_cast<std::size_t>(device));
  return here ? here : default_stream(device);
}
void set_current_stream(Stream* stream) {
  streams_here.at(static_cast<std::size_t>(stream->device)) = stream;
}

Stream* default_stream(int device) {
  return machine().default_stream(device);
}
Stream* new_stream(int device) {
  return machine().new_stream(device);
}
int device_of(const Stream* stream) {
  return stream->device;
}
void give(Stream* stream, const std::vector<Use>& uses, std::function<void()> work) {
  machine().give(stream, uses, std::move(work));
}
void synchronize(Stream* stream) {
  ++waits_here;
  const auto event = machine().record(stream, /*at_once=*/false);
  stream->carry_out_until_reached(*event);
  machine().learn(*event);
}

std::int64_t waits() {
  return waits_here;
}
Kernel::Kernel() : waits_before_(waits_here) {
  ++kernels_here;
}
Kernel::~Kernel() {
  --kernels_here;
  waits_here = waits_before_;
}

std::shared_ptr<Event> record(Stream* stream) {
  return machine().record(stream);
}
void wait(Stream* stream, const std::shared_ptr<Event>& event) {
  machine().wait(stream, event);
}
bool has_been_reached(const Event& event) {
  if (!event.reached) return false;
  machine().learn(event);
  return true;
}
double reached_at_seconds(const Event& event) {
  const std::scoped_lock lock(const_cast<std::mutex&>(event.mutex));
  return event.seconds;
}

void to_host(void* host, const void* device, std::int64_t bytes) {
  auto* const stream = current_stream(device_here);
  give(stream, {{device, bytes, false}}, [=] { copy(host, reached(device), bytes); });
  synchronize(stream);
}
void to_device(void* device, const void* host, std::int64_t bytes) {
  auto* const stream = current_stream(device_here);
  give(stream, {{device, bytes, true}}, [=] { copy(reached(device), host, bytes); });
  synchronize(stream);
}

std::int64_t live_bytes(int device) {
  return machine().memory(device).live;
}
std::int64_t peak_bytes(int device) {
  return machine().memory(device).peak;
}
void reset_peak_bytes(int device) {
  machine().reset_peak(device);
}

std::vector<std::string> take_faults() {
  return machine().take_faults();
}

}  // namespace retort::test::device
