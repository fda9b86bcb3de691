#include "retort/bench/energy.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace retort::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "intel-rapl:";  // of AMD's packages too
constexpr double kJoulesOfMicrojoule = 1e-6;

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

std::optional<std::int64_t> count_of(const fs::path& file) {
  const auto line = first_line(file);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count);
  if (error != std::errc() || end != line.data() + line.size() || count < 0) return std::nullopt;
  return count;
}

std::vector<fs::path> zone_folders(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored))
    if (entry.path().filename().string().starts_with(kPrefix)) folders.push_back(entry.path());
  std::ranges::sort(folders);
  return folders;
}

}  // namespace

EnergyMeter::EnergyMeter(const base::Path& root) {
  std::vector<Zone> platform;
  for (const auto& folder : zone_folders(root)) {
    const auto name = first_line(folder / "name");
    const bool counts = name.starts_with("package") || name == "dram";
    if (!counts && name != "psys") continue;
    const auto range = count_of(folder / "max_energy_range_uj"), now = count_of(folder / "energy_uj");
    if (!range || !now) {
      why_not_ = (folder / "energy_uj").string() + " cannot be read; it is root's alone on most machines";
      return;
    }
    (counts ? zones_ : platform).push_back({folder / "energy_uj", name, *range, *now});
  }
  if (zones_.empty()) zones_ = std::move(platform);
  if (zones_.empty()) why_not_ = "this machine shows no counters of RAPL in " + root.string();
}

std::vector<std::string> EnergyMeter::zones() const {
  std::vector<std::string> names;
  for (const auto& zone : zones_) names.push_back(zone.name);
  return names;
}

void EnergyMeter::start() {
  look();
  joules_ = 0;
}

void EnergyMeter::look() {
  if (!why_not_.empty()) return;
  for (auto& zone : zones_) {
    const auto now = count_of(zone.energy_file);
    if (!now) {
      why_not_ = zone.energy_file.string() + " cannot be read any more";
      return;
    }
    const auto taken = *now - zone.last_uj;
    joules_ += kJoulesOfMicrojoule * static_cast<double>(taken >= 0 ? taken : taken + zone.range_uj);
    zone.last_uj = *now;
  }
}

std::optional<double> EnergyMeter::joules() {
  look();
  return why_not_.empty() ? std::optional(joules_) : std::nullopt;
}

}  // namespace retort::bench
