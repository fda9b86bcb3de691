#include "retort/prune/hidden_states.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>

#include "retort/base/error.h"

namespace retort::prune {

// One batch after the other, as they stand in memory.
struct HiddenStates::File {
  struct Place {
    std::int64_t offset = 0;
    std::vector<std::int64_t> shape;
    at::ScalarType type;
    at::Device device;
  };
  std::string path;
  std::fstream stream;
  std::vector<Place> places;
  std::int64_t end = 0;
};

HiddenStates::HiddenStates() = default;
HiddenStates::~HiddenStates() = default;
HiddenStates::HiddenStates(HiddenStates&&) noexcept = default;
HiddenStates& HiddenStates::operator=(HiddenStates&&) noexcept = default;

HiddenStates::HiddenStates(const base::Path& directory) : file_(std::make_unique<File>()) {
  base::make_directories(directory);
  const auto path = directory / "hidden.raw";
  file_->path = path.string();
  file_->stream.open(path, std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc);
  base::require<base::StorageError>(file_->stream.is_open(), file_->path, ": cannot be opened for writing.");
  base::remove_all(path);
}

void HiddenStates::set(std::size_t batch, const at::Tensor& hidden_ND) {
  if (!file_) {
    kept_.resize(std::max(kept_.size(), batch + 1));
    kept_[batch] = hidden_ND;
    return;
  }
  const auto on_host = hidden_ND.to(at::kCPU).contiguous();
  auto& places = file_->places;
  if (batch == places.size()) {
    places.push_back({file_->end, hidden_ND.sizes().vec(), hidden_ND.scalar_type(), hidden_ND.device()});
    file_->end += static_cast<std::int64_t>(on_host.nbytes());
  }
  base::ensure(batch < places.size() && hidden_ND.sizes() == places[batch].shape, "a batch keeps its shape");
  file_->stream.seekp(places[batch].offset);
  file_->stream.write(static_cast<const char*>(on_host.const_data_ptr()),
                      static_cast<std::streamsize>(on_host.nbytes()));
  base::require<base::StorageError>(
      file_->stream.good(), file_->path,
      ": hidden states cannot be written; free some space and start again, finished blocks are kept.");
}

at::Tensor HiddenStates::get(std::size_t batch) const {
  if (!file_) return kept_[batch];
  const auto& place = file_->places[batch];
  auto hidden_ND = at::empty(place.shape, place.type);
  file_->stream.seekg(place.offset);
  file_->stream.read(static_cast<char*>(hidden_ND.mutable_data_ptr()),
                     static_cast<std::streamsize>(hidden_ND.nbytes()));
  base::require<base::StorageError>(
      file_->stream.good(), file_->path,
      ": hidden states cannot be read as long as they were written; start again, finished blocks are kept.");
  return hidden_ND.to(place.device);
}

}  // namespace retort::prune
