#include "retort/model/dtype.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "retort/base/error.h"

namespace retort::model {

at::ScalarType scalar_type(io::Dtype dtype) {
  switch (dtype) {
    case io::Dtype::f64:
      return at::kDouble;
    case io::Dtype::f32:
      return at::kFloat;
    case io::Dtype::f16:
      return at::kHalf;
    case io::Dtype::bf16:
      return at::kBFloat16;
    case io::Dtype::i64:
      return at::kLong;
    case io::Dtype::i32:
      return at::kInt;
    case io::Dtype::i16:
      return at::kShort;
    case io::Dtype::i8:
      return at::kChar;
    case io::Dtype::u8:
      return at::kByte;
    case io::Dtype::boolean:
      return at::kBool;
  }
  throw base::InternalError("an element type has a tensor type");
}

io::Dtype io_dtype(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return io::Dtype::f64;
    case at::kFloat:
      return io::Dtype::f32;
    case at::kHalf:
      return io::Dtype::f16;
    case at::kBFloat16:
      return io::Dtype::bf16;
    case at::kLong:
      return io::Dtype::i64;
    case at::kInt:
      return io::Dtype::i32;
    case at::kShort:
      return io::Dtype::i16;
    case at::kChar:
      return io::Dtype::i8;
    case at::kByte:
      return io::Dtype::u8;
    case at::kBool:
      return io::Dtype::boolean;
    default:
      throw base::InternalError(base::join("no file type for ", at::toString(type), "."));
  }
}

at::Device parse_device(const std::string& name) {
  const auto kind = name.substr(0, name.find(':'));
  if (kind == "privateuseone") {
    base::require<base::EnvironmentError>(c10::impl::hasDeviceGuardImpl(at::kPrivateUse1), "device '", name,
                                          "': expected a library that brings its own device to libtorch, "
                                          "found none; preload it, or use --device cpu.");
    return at::Device(name);
  }
  base::require<base::UsageError>(kind == "cpu" || kind == "cuda", "device '", name,
                                  "': expected cpu, cuda, cuda:N or privateuseone.");
  base::require<base::EnvironmentError>(
      kind == "cpu" || at::globalContext().hasCUDA(), "device '", name,
      "': this libtorch finds no GPU; use --device cpu, or a torch package for the GPU.");
  return at::Device(name);
}

at::ScalarType parse_compute_dtype(const std::string& name) {
  if (name == "fp32") return at::kFloat;
  if (name == "bf16") return at::kBFloat16;
  if (name == "fp64") return at::kDouble;
  throw base::UsageError(base::join("dtype '", name, "': expected auto, fp32, bf16 or fp64."));
}

at::ScalarType parse_scoring_dtype(const std::string& name, const at::Device& device) {
  return parse_compute_dtype(name != "auto" ? name : device.is_cpu() ? "fp32" : "bf16");
}

std::string dtype_name(at::ScalarType type) {
  return type == at::kBFloat16 ? "bf16" : type == at::kDouble ? "fp64" : "fp32";
}

}  // namespace retort::model
