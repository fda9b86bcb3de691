#pragma once
// How fast this machine reads and writes memory: the ceiling of what computes little for each byte.

#include <c10/core/Device.h>

#include <algorithm>
#include <cstdint>

#include "retort/base/files.h"
#include "retort/bench/in_turn.h"

namespace retort::bench {

/// Bytes per second.
struct MemoryRate {
  std::int64_t array_bytes = 0;  ///< of each array that was read or written
  double read = 0;               ///< sum of one array
  double update = 0;             ///< b = s b, one array read and written
  double triad = 0;  ///< a = b + s c, two arrays read and one written (McCalpin, STREAM); what a processor
                     ///< reads before it writes is not counted

  /// The fewest seconds for so many bytes: those that are read at the rate of reading, and all of them at the
  /// fastest of the three rates.
  double least_seconds(double bytes_read, double bytes_written) const {
    return std::max(bytes_read / read, (bytes_read + bytes_written) / std::max({read, update, triad}));
  }
  /// The faster of both for each of the three: what else the machine did counts for less.
  MemoryRate better(const MemoryRate& other) const;
};

/// Bytes of the caches of the last level, of all processors together; 0 where the kernel tells none.  `root`
/// has the directory sys.
std::int64_t last_level_cache_bytes(const base::Path& root = "/");

/// Bytes of which any cache of the device holds a quarter at most.
std::int64_t cold_bytes(c10::Device device);

/// Measures all three on arrays of cold_bytes(), or of less where `most_bytes` allows no three of these.  The
/// best of several runs with all threads.
MemoryRate measure_memory(c10::Device device, std::int64_t most_bytes, const Effort& effort);

}  // namespace retort::bench
