#include "retort/data/sequence_stream.h"

#include <algorithm>
#include <utility>

#include "retort/base/error.h"

namespace retort::data {
SequenceStream::SequenceStream(const std::vector<SourceOptions>& sources, const PackingOptions& packing,
                               Encode encode, const SpecialTokens& special, std::uint64_t seed, Split split,
                               std::int64_t prepared)
    : sequences_(SequencePacker(sources, packing, std::move(encode), special, seed, split),
                 packing.shuffle_sequences, seed),
      prepared_(static_cast<std::size_t>(std::max<std::int64_t>(prepared, 1))),
      cursor_(sequences_.cursor()),
      statistics_(sequences_.statistics()) {}

SequenceStream::~SequenceStream() {
  stop();
}

Sequence SequenceStream::next() {
  if (!thread_.joinable()) start();
  Prepared prepared;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() || error_; });
    if (queue_.empty()) std::rethrow_exception(error_);
    prepared = std::move(queue_.front());
    queue_.pop_front();
  }
  changed_.notify_all();
  cursor_ = std::move(prepared.cursor);
  statistics_ = std::move(prepared.statistics);
  padding_ = prepared.padding;
  return std::move(prepared.sequence);
}

base::Json SequenceStream::cursor() const {
  base::Json json = to_json(cursor_);
  json["fingerprint"] = sequences_.fingerprint();
  return json;
}

void SequenceStream::seek(const base::Json& cursor) {
  const StreamCursor target = cursor_from_json(cursor);
  base::require<base::DataError>(
      cursor.value("fingerprint", base::Json()) == sequences_.fingerprint(),
      "data cursor: expected the sources, packing and seed that it was saved with, found "
      "others; restore them or start a new run.");
  stop();
  queue_.clear();
  error_ = nullptr;
  sequences_.stop_with({});
  sequences_.seek(target);
  cursor_ = target;
  statistics_ = sequences_.statistics();
  padding_ = sequences_.padding();
}

double SequenceStream::padding_share() const {
  std::int64_t tokens = padding_;
  for (const auto& source : statistics_) tokens += source.tokens;
  return tokens > 0 ? static_cast<double>(padding_) / static_cast<double>(tokens) : 0;
}

void SequenceStream::start() {
  stop_ = std::stop_source();
  sequences_.stop_with(stop_.get_token());
  thread_ = std::thread([this, token = stop_.get_token()] { prepare(token); });
}

void SequenceStream::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_.request_stop();
  }
  changed_.notify_all();
  thread_.join();
}

void SequenceStream::prepare(const std::stop_token& token) {
  try {
    for (;;) {
      Sequence sequence = sequences_.next();
      Prepared prepared{std::move(sequence), sequences_.cursor(), sequences_.statistics(),
                        sequences_.padding()};
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return queue_.size() < prepared_ || token.stop_requested(); });
        if (token.stop_requested()) return;
        queue_.push_back(std::move(prepared));
      }
      changed_.notify_all();
    }
  } catch (const Stopped&) {
    return;  // nobody waits any more
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
}

}  // namespace retort::data
