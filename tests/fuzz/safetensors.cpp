// The header of a safetensors file: what it is believed to hold lies in the file and covers it.
#include "retort/io/safetensors.h"

#include "fuzz/harness.h"

using namespace retort;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> file(data, data + size);  // no byte behind its end
  fuzz::taken([&] {
    const auto header = io::parse_safetensors(std::as_bytes(std::span(file)), "a.safetensors");
    std::size_t bytes = header.data_start;
    for (const auto& [name, tensor] : header.tensors) {
      fuzz::require(tensor.begin <= tensor.end && header.data_start + tensor.end <= size,
                    "a tensor is inside");
      fuzz::require(tensor.end - tensor.begin == io::tensor_bytes(name, tensor.dtype, tensor.shape),
                    "its size");
      bytes += tensor.end - tensor.begin;
    }
    fuzz::require(bytes == size, "tensors cover the file");
  });
  return 0;
}
