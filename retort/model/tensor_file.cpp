#include "retort/model/tensor_file.h"

#include <ATen/ATen.h>

#include <cstring>

#include "retort/base/error.h"
#include "retort/model/dtype.h"

namespace retort::model {

std::span<const std::byte> bytes_of(const at::Tensor& on_host) {
  if (!on_host.defined()) return {};
  return {static_cast<const std::byte*>(on_host.const_data_ptr()), on_host.nbytes()};
}

at::Tensor tensor_of(io::Dtype dtype, std::span<const std::int64_t> shape, std::span<const std::byte> bytes) {
  auto values = at::empty({shape.data(), shape.size()}, scalar_type(dtype));
  base::ensure(values.nbytes() == bytes.size(), "a tensor has the bytes of its shape");
  if (!bytes.empty()) std::memcpy(values.mutable_data_ptr(), bytes.data(), bytes.size());
  return values;
}

io::TensorToWrite to_write(std::string name, const at::Tensor& values) {
  return {std::move(name), io_dtype(values.scalar_type()), values.sizes().vec(),
          [values](const io::ByteSink& sink) {
            const auto on_host = values.to(at::kCPU).contiguous();
            sink(bytes_of(on_host));
          }};
}

at::Tensor read_tensor(const io::SafetensorsFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  base::require<base::ModelError>(found != file.tensors().end(), file.path().string(), ": expected a tensor ",
                                  name, ", found none; the file is damaged.");
  return tensor_of(found->second.dtype, found->second.shape, file.bytes(name));
}

void read_part(const io::SafetensorsFile& file, const std::string& name, at::IntArrayRef shape,
               std::int64_t begin, at::Tensor target) {
  const auto found = file.tensors().find(name);
  base::require<base::ModelError>(found != file.tensors().end(), file.path().string(), ": expected a tensor ",
                                  name, ", found none; the file is damaged.");
  const auto kind = [](io::Dtype dtype, at::IntArrayRef sizes) {
    return base::join(io::name(dtype), " ", sizes);
  };
  const auto expected = io_dtype(target.scalar_type());
  base::require<base::ModelError>(
      found->second.dtype == expected && shape == at::IntArrayRef(found->second.shape), file.path().string(),
      ": ", name, " is ", kind(found->second.dtype, found->second.shape), ", expected ",
      kind(expected, shape), "; the file is damaged or of another model.");
  const auto item = static_cast<std::size_t>(target.element_size());
  const auto bytes = file.bytes(name).subspan(static_cast<std::size_t>(begin) * item, target.nbytes());
  target.copy_(tensor_of(expected, target.sizes(), bytes));
}

void read_tensor(const io::SafetensorsFile& file, const std::string& name, at::Tensor target) {
  read_part(file, name, target.sizes(), 0, target);
}

}  // namespace retort::model
