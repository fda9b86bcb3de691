#include "retort/train/step_sequences.h"

#include <cstring>
#include <string>
#include <utility>

#include "retort/base/error.h"
#include "retort/comm/share.h"

namespace retort::train {
namespace {

void put(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}
template <typename Number>
void put(std::string& bytes, const Number& number) {
  put(bytes, &number, sizeof number);
}
void put(std::string& bytes, const std::vector<std::int32_t>& list) {
  put(bytes, list.size());
  put(bytes, list.data(), list.size() * sizeof list.front());
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  template <typename Number>
  void get(Number& number) {
    get(&number, sizeof number);
  }
  void get(std::vector<std::int32_t>& list) {
    std::size_t size = 0;
    get(size);
    list.resize(size);
    get(list.data(), size * sizeof(std::int32_t));
  }

 private:
  void get(void* data, std::size_t size) {
    base::ensure(at_ + size <= bytes_.size(), "sequences arrive as they were sent");
    std::memcpy(data, bytes_.data() + at_, size);
    at_ += size;
  }
  const std::string& bytes_;
  std::size_t at_ = 0;
};

std::string packed(const std::vector<data::Sequence>& sequences) {
  std::string bytes;
  for (const auto& sequence : sequences) {
    put(bytes, sequence.ids);
    put(bytes, sequence.targets);
    put(bytes, sequence.starts);
    put(bytes, sequence.number);
    put(bytes, sequence.goes_on);
  }
  return bytes;
}

std::vector<data::Sequence> unpacked(const std::string& bytes, std::int64_t count) {
  Reader reader(bytes);
  std::vector<data::Sequence> sequences(static_cast<std::size_t>(count));
  for (auto& sequence : sequences) {
    reader.get(sequence.ids);
    reader.get(sequence.targets);
    reader.get(sequence.starts);
    reader.get(sequence.number);
    reader.get(sequence.goes_on);
  }
  return sequences;
}

}  // namespace

void StepSequences::fetch() {
  if (fetched_) return;
  std::vector<data::Sequence> sequences;
  const auto read = [&] {
    if (stream_)
      for (std::int64_t i = 0; i < count_; ++i) sequences.push_back(stream_->next());
  };
  if (group_.size() == 1) {
    read();
  } else {
    group_.agree(read);
    std::string bytes;
    if (stream_) bytes = packed(sequences);
    group_.share(bytes);
    sequences = unpacked(bytes, count_);
  }
  fetched_ = {.first_number = sequences.front().number, .last_number = sequences.back().number};
  const auto own = comm::share_of(sequences.size(), group_.rank(), group_.size());
  for (auto i = own.first; i < own.last; ++i) fetched_->sequences.push_back(std::move(sequences[i]));
}

StepShare StepSequences::next() {
  fetch();
  if (stream_) cursor_ = stream_->cursor();
  return *std::exchange(fetched_, {});
}

void StepSequences::seek(const base::Json& cursor) {
  cursor_ = cursor;
  fetched_.reset();
  if (stream_) stream_->seek(cursor);
}

}  // namespace retort::train
