// Tensors written to safetensors files and read back.
#include "retort/model/tensor_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "retort/base/error.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort {
namespace {

struct TensorFile : testing::Test {
  io::SafetensorsFile written(const std::vector<io::TensorToWrite>& tensors) const {
    io::write_safetensors(directory / "tensors.safetensors", tensors);
    return io::SafetensorsFile::open(directory / "tensors.safetensors");
  }
  std::string message(const io::SafetensorsFile& file, const std::string& name,
                      const at::Tensor& target) const {
    return test::message_of<base::ModelError>([&] { model::read_tensor(file, name, target); });
  }

  test::TemporaryDirectory directory;
};

struct TensorFileOf : TensorFile, testing::WithParamInterface<at::ScalarType> {};

TEST_P(TensorFileOf, GivesBackTheSameBits) {
  const auto values = at::arange(-3, 9, at::TensorOptions().dtype(GetParam())).view({3, 4});
  const auto file = written({model::to_write("values", values)});

  auto read = at::zeros_like(values);
  model::read_tensor(file, "values", read);

  EXPECT_TRUE(at::equal(read, values));
}

INSTANTIATE_TEST_SUITE_P(EveryType, TensorFileOf,
                         testing::Values(at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                         at::kInt, at::kShort, at::kChar));

TEST_F(TensorFile, HoldsWholeNumbersBeyondThoseOfFloat64) {
  const auto counts = at::full({2}, (std::int64_t{1} << 60) + 1, at::kLong);
  const auto file = written({model::to_write("counts", counts)});

  auto read = at::zeros_like(counts);
  model::read_tensor(file, "counts", read);

  EXPECT_TRUE(at::equal(read, counts));
}

TEST_F(TensorFile, WritesAViewInTheOrderOfItsElements) {
  const auto values = at::arange(6, at::kFloat).view({2, 3}).t();
  const auto file = written({model::to_write("values", values)});

  auto read = at::empty({3, 2}, at::kFloat);
  model::read_tensor(file, "values", read);

  EXPECT_TRUE(at::equal(read, values));
}

TEST_F(TensorFile, FillsAViewOfALargerTensor) {
  const auto file = written({model::to_write("values", at::full({2}, 5, at::kFloat))});

  const auto whole = at::zeros({4}, at::kFloat);
  model::read_tensor(file, "values", whole.narrow(0, 1, 2));

  EXPECT_TRUE(at::equal(whole, at::tensor({0.0F, 5.0F, 5.0F, 0.0F})));
}

TEST_F(TensorFile, HoldsAnEmptyTensor) {
  const auto file = written({model::to_write("nothing", at::empty({0, 7}, at::kFloat))});

  model::read_tensor(file, "nothing", at::empty({0, 7}, at::kFloat));

  EXPECT_EQ(file.tensors().at("nothing").shape, (std::vector<std::int64_t>{0, 7}));
}

TEST_F(TensorFile, RefusesAnotherShapeAnotherTypeAndAMissingTensor) {
  const auto file = written({model::to_write("values", at::zeros({2, 3}, at::kFloat))});
  const auto target = at::ones({6}, at::kFloat);

  EXPECT_SAYS(message(file, "values", target), "values is F32 [2, 3], expected F32 [6]");
  EXPECT_SAYS(message(file, "values", at::ones({2, 3}, at::kDouble)), "expected F64 [2, 3]");
  EXPECT_SAYS(message(file, "others", target), "expected a tensor others");
  EXPECT_TRUE(target.eq(1).all().item<bool>());
}

}  // namespace
}  // namespace retort
