#include "retort/model/stored_tensors.h"

#include <ATen/ATen.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "retort/base/error.h"

namespace retort::model {

// One tensor after the other, as they stand in memory.
struct StoredTensors::File {
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

StoredTensors::StoredTensors() = default;
StoredTensors::~StoredTensors() = default;
StoredTensors::StoredTensors(StoredTensors&&) noexcept = default;
StoredTensors& StoredTensors::operator=(StoredTensors&&) noexcept = default;

StoredTensors::StoredTensors(const base::Path& directory) {
  if (directory.empty()) return;
  file_ = std::make_unique<File>();
  base::make_directories(directory);
  auto path = (directory / "tensors-XXXXXX").string();
  const int made = ::mkstemp(path.data());  // no other rank's
  base::require<base::StorageError>(made >= 0, path, ": cannot be opened for writing.");
  ::close(made);
  file_->path = path;
  file_->stream.open(path, std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc);
  base::require<base::StorageError>(file_->stream.is_open(), file_->path, ": cannot be opened for writing.");
  base::remove_all(path);
}

void StoredTensors::set(std::size_t number, const at::Tensor& tensor) {
  if (!file_) {
    kept_.resize(std::max(kept_.size(), number + 1));
    kept_[number] = tensor;
    return;
  }
  const auto on_host = tensor.to(at::kCPU).contiguous();
  auto& places = file_->places;
  if (number == places.size()) {
    places.push_back({file_->end, tensor.sizes().vec(), tensor.scalar_type(), tensor.device()});
    file_->end += static_cast<std::int64_t>(on_host.nbytes());
  }
  base::ensure(number < places.size() && tensor.sizes() == places[number].shape, "a tensor keeps its shape");
  file_->stream.seekp(places[number].offset);
  file_->stream.write(static_cast<const char*>(on_host.const_data_ptr()),
                      static_cast<std::streamsize>(on_host.nbytes()));
  base::require<base::StorageError>(
      file_->stream.good(), file_->path,
      ": tensors cannot be written; free some space and start again, what was finished is kept.");
}

at::Tensor StoredTensors::get(std::size_t number) const {
  if (!file_) return kept_[number];
  const auto& place = file_->places[number];
  auto tensor = at::empty(place.shape, place.type);
  file_->stream.seekg(place.offset);
  file_->stream.read(static_cast<char*>(tensor.mutable_data_ptr()),
                     static_cast<std::streamsize>(tensor.nbytes()));
  base::require<base::StorageError>(
      file_->stream.good(), file_->path,
      ": tensors cannot be read as long as they were written; start again, what was finished is kept.");
  return tensor.to(place.device);
}

}  // namespace retort::model
