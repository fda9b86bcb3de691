// What this machine offers to a run, and what would go wrong on it; found out by trying.

#include <sys/statfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "cli/command.h"
#include "cli/library.h"
#include "cli/print.h"
#include "retort/base/directory_lock.h"
#include "retort/base/files.h"
#include "retort/base/machine.h"
#include "retort/base/parallel.h"
#include "retort/base/units.h"
#include "retort/base/words.h"
#include "retort/comm/launch/launch.h"
#include "retort/comm/nccl/library.h"
#include "retort/comm/watchdog.h"
#include "retort/parquet/table.h"

namespace retort::cli {
namespace {

enum class Verdict { ok, note, wrong };
constexpr auto words_of(Verdict) {
  return base::words<Verdict::wrong>("ok", "note", "wrong");
}

struct Finding {
  std::string what, found;
  Verdict verdict = Verdict::ok;
  std::string advice = {};
};

std::string human(std::int64_t bytes) {
  return base::human_bytes(static_cast<std::uint64_t>(bytes));
}

// The flags of the first processor in /proc/cpuinfo, with a space around each.
std::string processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) return line.substr(line.find(':') + 1) + " ";
  return {};
}

Finding processors() {
  const char* threads = std::getenv("OMP_NUM_THREADS");
  return {.what = "processors",
          .found = base::join(base::usable_processors(), " that this process may use",
                              threads ? base::join(", OMP_NUM_THREADS ", threads) : "")};
}

Finding instructions() {
  const auto flags = processor_flags();
  if (flags.empty()) return {.what = "instructions", .found = "not known"};
  const auto has = [&](const char* flag) { return flags.find(base::join(" ", flag, " ")) != flags.npos; };
  std::string found = has("avx512f") ? "AVX-512" : has("avx2") ? "AVX2" : "neither AVX2 nor AVX-512";
  if (has("amx_bf16")) return {.what = "instructions", .found = found + ", AMX"};
  if (has("avx512_bf16")) return {.what = "instructions", .found = found + " with bfloat16"};
  return {.what = "instructions",
          .found = found,
          .verdict = Verdict::note,
          .advice = "bfloat16 is not faster than float32 here; dtype: auto measures it and takes float32."};
}

std::optional<std::int64_t> free_bytes(const std::filesystem::path& path) {
  struct statfs place {};
  if (::statfs(path.c_str(), &place) != 0) return {};
  return static_cast<std::int64_t>(place.f_bavail) * static_cast<std::int64_t>(place.f_bsize);
}

// A few megabytes a rank; Docker gives 64 MB to all.
Finding shared_memory() {
  constexpr std::int64_t kEnough = std::int64_t{1} << 28;
  const auto bytes = free_bytes("/dev/shm");
  Finding finding{.what = "shared memory", .found = bytes ? human(*bytes) + " in /dev/shm" : "no /dev/shm"};
  if (bytes && *bytes >= kEnough) return finding;
  finding.verdict = Verdict::note;
  finding.advice =
      "MPI libraries let ranks of one machine exchange there; for several ranks mount it larger (Docker: "
      "--shm-size, Kubernetes: an emptyDir of medium Memory). What ranks share of models does not lie there.";
  return finding;
}

Finding computing() {
  try {
    (void)library();
    return {.what = "libtorch", .found = "loads"};
  } catch (const base::Error& error) {
    return {.what = "libtorch", .found = "does not load", .verdict = Verdict::wrong, .advice = error.what()};
  }
}

Finding tables() {
  const auto why_not = parquet::why_not_here();
  if (why_not.empty()) return {.what = "Parquet", .found = "read by Apache Arrow"};
  return {.what = "Parquet", .found = "not read", .verdict = Verdict::note, .advice = why_not};
}

// What moves bytes between accelerators matters only where there are some.
Finding accelerators() {
  const bool nvidia = std::filesystem::exists("/dev/nvidiactl"), amd = std::filesystem::exists("/dev/kfd");
  Finding finding{.what = "accelerators",
                  .found = nvidia ? "NVIDIA's driver"
                           : amd  ? "AMD's driver"
                                  : "none"};
  if (!nvidia && !amd && !std::getenv("RETORT_NCCL")) return finding;
  try {
    const auto nccl = comm::nccl::library();
    finding.found += nccl ? base::join(", ", nccl->file, ", version ", nccl->version) : ", no NCCL wanted";
  } catch (const base::Error& error) {
    finding.verdict = Verdict::note;
    finding.advice = error.what();
  }
  return finding;
}

Finding mpi(const char* name, comm::Launcher by) {
  const auto reason = comm::why_not_here(by);
  return {.what = name,
          .found = reason.empty() ? "ranks of it can run" : "ranks of it cannot run",
          .verdict = reason.empty() ? Verdict::ok : Verdict::note,
          .advice = reason};
}

Finding launched() {
  try {
    const auto by = comm::launcher();
    Finding finding{.what = "launcher", .found = std::string(base::word(by))};
    if (by == comm::Launcher::open_mpi) {
      const char* const seconds = std::getenv("OMPI_MCA_odls_base_sigkill_timeout");
      finding.verdict = Verdict::note;
      finding.advice = base::join(
          "mpirun of Open MPI 4.1 kills ranks ", seconds ? seconds : "1",
          " s after Ctrl-C or SIGTERM, and delays every early end by up to twice as long, whoever is left; "
          "OMPI_MCA_odls_base_sigkill_timeout, which is ",
          seconds ? "set" : "not set",
          ", says how long. USR1 to mpirun, or a file named stop in the run directory, saves at once without "
          "it.");
    }
    return finding;
  } catch (const base::Error& error) {
    return {
        .what = "launcher", .found = "not one of ours", .verdict = Verdict::wrong, .advice = error.what()};
  }
}

int mca_parameter(const char* name, int fallback) {
  const char* text = std::getenv(base::join("OMPI_MCA_", name).c_str());
  return text && *text ? std::atoi(text) : fallback;
}

// After how long mpirun misses its daemon on another machine; none: never.
std::optional<int> mpirun_patience_seconds() {
  const int idle = mca_parameter("oob_tcp_keepalive_time", 300);
  if (idle <= 0) return {};
  return idle + mca_parameter("oob_tcp_keepalive_intvl", 20) * mca_parameter("oob_tcp_keepalive_probes", 9);
}

// Ranks that end because a machine or its link is lost are outlived by mpirun, unless it has missed it
// before.
Finding lost_machine() {
  const auto seconds = mpirun_patience_seconds();
  Finding finding{
      .what = "lost machine",
      .found = seconds ? base::join("missed by mpirun after ", *seconds, " s") : "never missed by mpirun"};
  const double patience = comm::least_patience_seconds();
  if (seconds && (patience <= 0 || *seconds < patience)) return finding;
  finding.verdict = Verdict::note;
  finding.advice =
      "mpirun of Open MPI 4.1 outlives ranks that end because a machine or its link is lost, for many "
      "minutes; set OMPI_MCA_oob_tcp_keepalive_time=10, OMPI_MCA_oob_tcp_keepalive_intvl=5 and "
      "OMPI_MCA_oob_tcp_keepalive_probes=3, and it ends with code 205 before they do.";
  return finding;
}

// Whether mpirun of Open MPI started this rank beside others on other machines.
bool spans_machines() {
  const char* const all = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* const here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  return all && here && std::string_view(all) != here;
}

std::string file_system_name(const std::filesystem::path& path) {
  struct statfs place {};
  if (::statfs(path.c_str(), &place) != 0) return "unknown";
  struct Name {
    long magic;
    const char* name;
  };
  constexpr std::array kNames{Name{0xEF53, "ext"},           Name{0x58465342, "XFS"},
                              Name{0x9123683E, "Btrfs"},     Name{0x01021994, "tmpfs"},
                              Name{0x6969, "NFS"},           Name{0x0BD00BD0, "Lustre"},
                              Name{0x47504653, "GPFS"},      Name{0x19830326, "BeeGFS"},
                              Name{0x794C7630, "overlayfs"}, Name{0x65735546, "FUSE"}};
  for (const auto& [magic, name] : kNames)
    if (static_cast<long>(place.f_type) == magic) return name;
  std::ostringstream text;
  text << "type 0x" << std::hex << place.f_type;
  return text.str();
}

// A directory of its own in it, or in the nearest one that is there, is made, locked, renamed over another,
// and removed.
Finding directory(const std::filesystem::path& path) {
  std::error_code failed;
  auto there = std::filesystem::absolute(path).lexically_normal();
  while (!std::filesystem::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  Finding finding{.what = "directory", .found = base::join(path.string(), ", ", file_system_name(there))};
  if (const auto bytes = free_bytes(there)) finding.found += base::join(", ", human(*bytes), " free");
  if (!std::filesystem::exists(path, failed)) {
    finding.verdict = Verdict::note;
    finding.advice = base::join("is not there yet; looked at ", there.string());
  }
  std::filesystem::path trial;
  for (int number = 0; number == 0 || std::filesystem::exists(trial, failed); ++number)
    trial = there / base::join(".retort-doctor-", ::getpid(), number > 0 ? base::join("-", number) : "");
  try {
    base::make_directories(trial);
    base::write_file_atomically(trial / "file", "before");
    base::write_file_atomically(trial / "file", "after");
    const base::DirectoryLock lock(trial);
    if (!lock.warning().empty()) {
      finding.verdict = Verdict::note;
      finding.advice = lock.warning();
    }
  } catch (const base::Error& error) {
    finding.verdict = Verdict::wrong;
    finding.advice = error.what();
  }
  std::error_code ignored;
  std::filesystem::remove_all(trial, ignored);
  return finding;
}

std::vector<Finding> examined(const std::string& path) {
  const auto memory_bytes = base::available_memory_bytes();
  std::vector<Finding> findings{processors(),
                                instructions(),
                                {.what = "memory", .found = human(memory_bytes) + " within all limits"},
                                shared_memory(),
                                computing(),
                                tables(),
                                accelerators(),
                                mpi("Open MPI", comm::Launcher::open_mpi),
                                mpi("MPICH", comm::Launcher::mpich),
                                launched()};
  if (spans_machines()) findings.push_back(lost_machine());
  findings.push_back(directory(path));
  return findings;
}

void print_findings(const std::vector<Finding>& findings) {
  Rows rows{{"what", "found", ""}};
  for (const auto& finding : findings)
    rows.push_back({finding.what, finding.found, std::string(base::word(finding.verdict))});
  std::cout << table(rows, rows.front().size());
  for (const auto& finding : findings)
    if (!finding.advice.empty()) std::cout << finding.what << ": " << finding.advice << '\n';
}

base::ExitCode doctor(const std::string& path, bool as_json) {
  const auto findings = examined(path);
  if (as_json) {
    base::Json list = base::Json::array();
    for (const auto& finding : findings)
      list.push_back({{"what", finding.what},
                      {"found", finding.found},
                      {"verdict", base::word(finding.verdict)},
                      {"advice", finding.advice}});
    std::cout << list << '\n';
  } else {
    print_findings(findings);
  }
  for (const auto& finding : findings)
    if (finding.verdict == Verdict::wrong) return base::ExitCode::environment;
  return base::ExitCode::ok;
}

}  // namespace

Action declare_doctor(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort doctor                        what this machine offers to a run here\n"
      "  retort doctor /scratch/runs          what a run in that directory would meet\n"
      "  srun -n 1 retort doctor /scratch     on a node of a cluster");
  struct Options {
    std::string directory = ".";
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("DIRECTORY", options->directory, "Where runs would lie")->capture_default_str();
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return doctor(options->directory, options->json); };
}

}  // namespace retort::cli
