#include "retort/comm/call.h"

#include "retort/base/error.h"

namespace retort::comm {

std::int64_t moved_by(const Collective& call, int rank, int size) {
  switch (call.op) {
    case Op::barrier:
      return 0;
    case Op::all_gather:
      return (size - 1) * call.from.bytes();
    case Op::reduce_scatter:
    case Op::all_reduce:
      return (size - 1) * call.to.bytes();
    case Op::broadcast:
      return rank == call.root ? 0 : call.to.bytes();
  }
  return 0;
}

std::string described(const CallId& call) {
  return base::join(base::word(static_cast<Op>(call.op)), " of ", call.count, " ",
                    base::word(static_cast<Type>(call.type)));
}

std::string different_calls(const std::string& level, int rank, const CallId& call, int other_rank,
                            const CallId& other) {
  return base::join("internal error, please report it: call ", call.number, " of the group '", level, "' is ",
                    described(call), " on rank ", rank, " and ", described(other), " on rank ", other_rank,
                    "; nothing was moved.");
}

}  // namespace retort::comm
