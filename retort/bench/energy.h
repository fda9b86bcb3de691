#pragma once
// The energy that the processors of a machine take, by RAPL: counters of Intel's and AMD's packages and of
// their memory, for all that the machine does.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/files.h"

namespace retort::bench {

class EnergyMeter {
 public:
  /// `root` is the folder of Linux's powercap zones.  Of these packages count and the memory beside them; the
  /// whole platform, where a machine has that alone.
  explicit EnergyMeter(const base::Path& root = "/sys/class/powercap");

  /// Why nothing is measured, as words behind "not measured: "; empty where it is.
  const std::string& why_not() const { return why_not_; }
  /// Names of the zones that count.
  std::vector<std::string> zones() const;

  void start();
  /// Notes what was taken so far: a counter begins anew after some minutes at full power, so look sooner.
  void look();
  /// Since start(); empty where it cannot be read.
  std::optional<double> joules();

 private:
  struct Zone {
    base::Path energy_file;
    std::string name;
    std::int64_t range_uj = 0;  ///< the counter begins anew beyond it
    std::int64_t last_uj = 0;
  };

  std::vector<Zone> zones_;
  std::string why_not_;
  double joules_ = 0;
};

}  // namespace retort::bench
