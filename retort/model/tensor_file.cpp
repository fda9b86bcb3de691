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

void read_tensor(const io::SafetensorsFile& file, const std::string& name, at::Tensor target) {
  const auto values = read_tensor(file, name);
  const auto kind = [](const at::Tensor& tensor) {
    return base::join(io::name(io_dtype(tensor.scalar_type())), " ", tensor.sizes());
  };
  base::require<base::ModelError>(
      values.scalar_type() == target.scalar_type() && values.sizes() == target.sizes(), file.path().string(),
      ": ", name, " is ", kind(values), ", expected ", kind(target),
      "; the file is damaged or of another model.");
  target.copy_(values);
}

}  // namespace retort::model
