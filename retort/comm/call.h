#pragma once
// What a rank says of its call before anything moves, so that ranks at different calls are found out.

#include <cstdint>
#include <string>

#include "retort/comm/group.h"

namespace retort::comm {

struct CallId {
  std::int32_t op = 0, type = 0, root = 0, unused = 0;
  std::int64_t number = 0;  ///< of the calls of its group
  std::int64_t count = 0;   ///< of what goes in

  bool operator==(const CallId&) const = default;
};

inline CallId id_of(const Collective& call, std::int64_t number) {
  return {.op = static_cast<std::int32_t>(call.op),
          .type = static_cast<std::int32_t>(call.from.type),
          .root = call.root,
          .unused = 0,
          .number = number,
          .count = call.from.count};
}

/// Bytes that the call brings to this rank from others: what each backend at least has to move.
std::int64_t moved_by(const Collective& call, int rank, int size);

/// "all_gather of 100 f32"
std::string described(const CallId& call);
/// Why nothing was moved: two ranks of the group `level` that are at different calls.
std::string different_calls(const std::string& level, int rank, const CallId& call, int other_rank,
                            const CallId& other);

}  // namespace retort::comm
