#pragma once
// An accelerator as a group sees it: how its memory is copied, and in which order it works.  comm/ knows no
// vendor; who computes on one says how.
//
// A stream is a row of work that an accelerator carries out in order.  The computation is the stream that the
// calling thread gives its work to.  The exchange is one of its own, on which collectives move.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "retort/comm/buffer.h"

namespace retort::comm {

enum class Stream { computation, exchange };

/// Of what accelerators add in the order of ranks, so much waits at most.
inline constexpr std::int64_t kMostReceived_bytes = std::int64_t{256} << 20;

/// A place in a stream.
class Mark {
 public:
  virtual ~Mark() = default;
  /// Whether all work before it has ended.
  virtual bool reached() const = 0;
  /// From an earlier mark of the same stream; both were reached.
  virtual double seconds_since(const Mark& earlier) const = 0;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  /// Both return when the copy is made, after all that the computation was given before.
  virtual void to_host(void* host, const void* device, std::int64_t bytes) = 0;
  virtual void to_device(void* device, const void* host, std::int64_t bytes) = 0;

  /// The calling thread works on this accelerator from now on.
  virtual void enter() = 0;
  /// The place after all that the stream was given so far.
  virtual std::shared_ptr<Mark> mark(Stream stream) = 0;
  /// What the stream is given from now on comes after the mark.  No processor waits.
  virtual void wait(Stream stream, const Mark& mark) = 0;
  /// The exchange as its vendor's libraries know it.
  virtual void* exchange_handle() = 0;
  /// Memory for the exchange.  When it is given back, the exchange may still work on it.
  virtual std::shared_ptr<void> take(std::int64_t bytes) = 0;
  /// On the exchange: adds `parts` rows of `count` values that lie behind each other, in their order, and
  /// leaves the sum in `sum`.  bfloat16 is added in float32 and rounded once.  The rows are lost.
  virtual void sum_rows(void* rows, int parts, std::int64_t count, Type type, void* sum) = 0;
};

}  // namespace retort::comm
