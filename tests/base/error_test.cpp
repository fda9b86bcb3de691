#include "retort/base/error.h"

#include <gtest/gtest.h>

#include "retort/base/files.h"
#include "retort/base/hash.h"
#include "retort/base/json.h"
#include "retort/base/random.h"
#include "retort/base/units.h"

namespace retort::base {
namespace {

TEST(Error, CarriesItsExitCode) {
  try {
    require<StorageError>(false, "disk ", 7, " is full.");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::storage);
    EXPECT_STREQ(error.what(), "disk 7 is full.");
  }
}

}  // namespace
}  // namespace retort::base
