// Counters of energy, in a made-up folder of powercap zones.
#include "retort/bench/energy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace retort::bench {
namespace {

using Names = std::vector<std::string>;

class Energy : public testing::Test {
 protected:
  void zone(const std::string& folder, const std::string& name, std::int64_t energy_uj) const {
    std::filesystem::create_directories(root() / folder);
    write(folder + "/name", name);
    write(folder + "/max_energy_range_uj", "10000000");
    write(folder + "/energy_uj", std::to_string(energy_uj));
  }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(root() / file) << text << "\n";
  }
  std::filesystem::path root() const { return root_.path(); }

 private:
  test::TemporaryDirectory root_;
};

TEST_F(Energy, IsThatOfPackagesAndMemoryCountedOnce) {
  zone("intel-rapl:0", "package-0", 1'000'000);
  zone("intel-rapl:0:0", "core", 500'000);
  zone("intel-rapl:0:1", "dram", 0);
  zone("intel-rapl:1", "psys", 0);
  zone("intel-rapl-mmio:0", "package-0", 1'000'000);
  EnergyMeter meter(root());
  EXPECT_EQ(meter.why_not(), "");
  EXPECT_EQ(meter.zones(), (Names{"package-0", "dram"}));
  meter.start();
  zone("intel-rapl:0", "package-0", 3'500'000);
  zone("intel-rapl:0:1", "dram", 250'000);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 2.75);
}

TEST_F(Energy, OfACounterThatBeganAnewGoesOn) {
  zone("intel-rapl:0", "package-0", 9'000'000);
  EnergyMeter meter(root());
  meter.start();
  zone("intel-rapl:0", "package-0", 500'000);
  meter.look();
  zone("intel-rapl:0", "package-0", 700'000);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 1.7);
  meter.start();
  EXPECT_DOUBLE_EQ(meter.joules().value(), 0);
}

TEST_F(Energy, IsThatOfThePlatformWhereNothingElseIsCounted) {
  zone("intel-rapl:0", "psys", 0);
  EXPECT_EQ(EnergyMeter(root()).zones(), Names{"psys"});
}

TEST_F(Energy, ThatCannotBeReadSaysWhy) {
  EXPECT_SAYS(EnergyMeter(root()).why_not(), "no counters of RAPL");
  zone("intel-rapl:0", "package-0", 0);
  write("intel-rapl:0/energy_uj", "");
  EnergyMeter meter(root());
  EXPECT_SAYS(meter.why_not(), "energy_uj cannot be read");
  EXPECT_FALSE(meter.joules());
}

TEST_F(Energy, WhoseCounterVanishesIsNotMade) {
  zone("intel-rapl:0", "package-0", 0);
  EnergyMeter meter(root());
  meter.start();
  std::filesystem::remove(root() / "intel-rapl:0/energy_uj");
  EXPECT_FALSE(meter.joules());
  EXPECT_SAYS(meter.why_not(), "any more");
}

}  // namespace
}  // namespace retort::bench
