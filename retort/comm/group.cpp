#include "retort/comm/group.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "retort/base/as_errors.h"
#include "retort/base/error.h"

namespace retort::comm {
namespace {

void require_parts(std::int64_t part, std::int64_t all, int ranks, Type own, Type whole) {
  base::ensure(part >= 0 && part * ranks == all && own == whole,
               "a group gathers and scatters equal parts of one type");
}

// What a rank tells the others of its own failure.
struct Failure {
  base::ExitCode code = base::ExitCode::ok;
  std::string text;
  std::exception_ptr own;
};

Failure failure_of(const std::function<void()>& act) {
  try {
    base::as_errors(act);
    return {};
  } catch (const base::Error& error) {
    return {error.code(), error.what(), std::current_exception()};
  } catch (const std::exception& error) {
    return {base::ExitCode::internal, error.what(), std::current_exception()};
  }
}

}  // namespace

Handle Group::all_gather(ConstBuffer own, Buffer all) {
  require_parts(own.count, all.count, size(), own.type, all.type);
  log_.called(Op::all_gather, all.bytes());
  return start({Op::all_gather, own, all, 0, patient_});
}

Handle Group::reduce_scatter(ConstBuffer all, Buffer own) {
  require_parts(own.count, all.count, size(), own.type, all.type);
  base::ensure(own.type != Type::bytes, "sums are of numbers");
  log_.called(Op::reduce_scatter, all.bytes());
  return start({Op::reduce_scatter, all, own, 0, patient_});
}

Handle Group::all_reduce(Buffer values) {
  base::ensure(values.type != Type::bytes, "sums are of numbers");
  log_.called(Op::all_reduce, values.bytes());
  return start({Op::all_reduce, values, values, 0, patient_});
}

Handle Group::broadcast(Buffer values, int root) {
  base::ensure(root >= 0 && root < size(), "the root of a broadcast is a rank");
  log_.called(Op::broadcast, values.bytes());
  return start({Op::broadcast, values, values, root, patient_});
}

void Group::barrier() {
  log_.called(Op::barrier, 0);
  start({Op::barrier, {}, {}, 0, patient_}).wait();
}

std::vector<int> Group::nodes() {
  return all_values(node());
}

void Group::all_sum(std::span<double> values) {
  all_reduce({values.data(), std::ssize(values), Type::f64}).wait();
}

std::vector<std::string> Group::all_texts(const std::string& own) {
  const auto lengths = all_values(static_cast<std::int64_t>(own.size()));
  const auto longest = static_cast<std::size_t>(std::ranges::max(lengths));
  std::string padded = own, all(longest * lengths.size(), '\0');
  padded.resize(longest);
  all_gather({padded.data(), std::ssize(padded), Type::bytes}, {all.data(), std::ssize(all)}).wait();
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    texts.push_back(all.substr(rank * longest, static_cast<std::size_t>(lengths[rank])));
  return texts;
}

void Group::share(std::string& text, int root) {
  auto length = static_cast<std::int64_t>(text.size());
  broadcast({&length, std::ssize(std::as_bytes(std::span(&length, 1)))}, root).wait();
  text.resize(static_cast<std::size_t>(length));
  broadcast({text.data(), length}, root).wait();
}

void Group::agree(const std::function<void()>& act) {
  const auto own = failure_of(act);
  std::vector<std::int32_t> codes(static_cast<std::size_t>(size()));
  const auto code = static_cast<std::int32_t>(own.code);
  patient_ = true;
  auto gathered = all_gather({&code, sizeof code, Type::bytes},
                             {codes.data(), std::ssize(codes) * static_cast<std::int64_t>(sizeof code)});
  patient_ = false;
  gathered.wait();
  for (int failed = 0; failed < size(); ++failed) {
    const auto theirs = static_cast<base::ExitCode>(codes[static_cast<std::size_t>(failed)]);
    if (theirs == base::ExitCode::ok) continue;
    std::string text = own.text;
    // Memory is a rank's own: which of them had none matters where others had some.
    if (theirs == base::ExitCode::memory && failed == rank() && std::ranges::count(codes, code) < size())
      text = base::join(job().place(failed), ": ", text);
    share(text, failed);
    failed_together_ = true;
    if (theirs != base::ExitCode::stopped) job().note_failure(text, failed != rank());
    if (failed == rank() && text == own.text) std::rethrow_exception(own.own);
    base::throw_error(theirs, text);
  }
}

void Group::together(const std::function<void()>& act) try { act(); } catch (const std::exception& error) {
  failed_together_ = true;
  job().note_failure(error.what(), false);
  throw;
}

void Group::recovered() noexcept {
  if (!failed_together_) return;
  failed_together_ = false;
  job().note_recovery();
}

void agree(Group* group, const std::function<void()>& act) {
  group ? group->agree(act) : act();
}

}  // namespace retort::comm
