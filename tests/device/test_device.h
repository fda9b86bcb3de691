#pragma once
// An accelerator of the processor's own, to test what accelerators are given.
//
// Its memory cannot be touched from outside: only work that a stream was given reaches it, by another
// address. A stream is a queue that a thread of its own carries out, or whoever waits for it.  Whenever
// memory is used, what used it before must come before by the order of a stream, an event or a wait; what
// does not is a fault, whether it happened to go well or not.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace retort::test::device {

inline constexpr int kDevices = 8;

struct Stream;
struct Event;

/// What work on a stream uses.
struct Use {
  const void* data = nullptr;
  std::int64_t bytes = 0;
  bool writes = false;
};

/// Memory of the current device that begins with arbitrary values, for its current stream.  Given back in the
/// order of that stream.
void* allocate(std::int64_t bytes);
void give_back(void* data);
/// Where work on a stream finds memory of a device.
std::byte* reached(const void* data);
/// The device whose memory this is.
int device_of_memory(const void* data);

/// Of the calling thread.
int current_device();
void set_current_device(int device);
Stream* current_stream(int device);
void set_current_stream(Stream* stream);

Stream* default_stream(int device);
Stream* new_stream(int device);
int device_of(const Stream* stream);
/// Work for a stream; it names all device memory that it uses.
void give(Stream* stream, const std::vector<Use>& uses, std::function<void()> work);
void synchronize(Stream* stream);

/// How often the calling thread waited for a stream, as it does to copy from or to the processor.
std::int64_t waits();
/// A kernel that the calling thread carries out itself, as long as the object lives: its waits do not count.
class Kernel {
 public:
  Kernel();
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

 private:
  std::int64_t waits_before_;
};

/// A place in a stream.
std::shared_ptr<Event> record(Stream* stream);
void wait(Stream* stream, const std::shared_ptr<Event>& event);
bool has_been_reached(const Event& event);
double reached_at_seconds(const Event& event);

/// Copies on the current stream, and waits for them.
void to_host(void* host, const void* device, std::int64_t bytes);
void to_device(void* device, const void* host, std::int64_t bytes);

/// Bytes of a device that somebody has, and the most since reset_peak_bytes().
inline constexpr std::int64_t kDeviceBytes = std::int64_t{4} << 30;
std::int64_t live_bytes(int device);
std::int64_t peak_bytes(int device);
void reset_peak_bytes(int device);

/// The faults since the last call, a sentence each.  A process says those that nobody took when it ends.
std::vector<std::string> take_faults();

}  // namespace retort::test::device
