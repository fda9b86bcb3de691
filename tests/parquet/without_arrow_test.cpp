#include "retort/base/error.h"
#include "retort/parquet/table.h"
#include "support/message_of.h"

namespace retort::parquet {
namespace {

TEST(WithoutArrow, AFileSaysWhatToInstall) {
  const auto message = test::message_of<base::EnvironmentError>([] { open("data.parquet"); });
  EXPECT_SAYS(message, "data.parquet: this Retort was built without Apache Arrow");
  EXPECT_SAYS(message, "pip install pyarrow==");
  EXPECT_SAYS(message, "-DRETORT_ARROW=");
  EXPECT_NE(why_not_here(), "");
}

}  // namespace
}  // namespace retort::parquet
