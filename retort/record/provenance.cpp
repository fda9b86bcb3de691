#include "retort/record/provenance.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "git_hash.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/record/keys.h"

namespace retort::record {
namespace {

/// Vector features that decide which kernels run, and so the bits of a result.
constexpr std::array kFeatures = {"avx2",        "fma",         "f16c",        "avx512f",  "avx512bw",
                                  "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
                                  "amx_int8",    "asimd",       "sve",         "bf16"};

struct Processor {
  std::string model = "unknown";
  std::vector<std::string> features;
};

std::vector<std::string> known_features(const std::string& flags) {
  std::vector<std::string> found;
  std::istringstream words(flags);
  for (std::string word; words >> word;)
    for (const char* feature : kFeatures)
      if (word == feature) found.push_back(word);
  return found;
}

/// Of the first processor in /proc/cpuinfo; ARM says "Features" where x86 says "flags".
Processor read_processor() {
  Processor processor;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line) && !line.empty();) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) processor.model = value;
    if (line.starts_with("flags") || line.starts_with("Features")) processor.features = known_features(value);
  }
  return processor;
}

std::int64_t machine_memory_bytes() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string compiler() {
#ifdef __clang__
  return base::join("clang ", __clang_version__);
#else
  return base::join("g++ ", __VERSION__);
#endif
}

}  // namespace

std::string version() {
  return RETORT_VERSION;
}

std::string long_version() {
  return base::join(version(), " (git ", RETORT_GIT_HASH, ", ", compiler(), ")");
}

base::Json describe(const Provenance& provenance) {
  const Processor processor = read_processor();
  utsname system{};
  ::uname(&system);
  std::error_code ignored;
  auto command = base::Json::array();
  for (const auto& argument : provenance.command) command.push_back(base::as_utf8(argument));
  return {{keys::kRetort, version()},
          {"git", RETORT_GIT_HASH},
          {"compiler", compiler()},
          {keys::kTorch, provenance.torch_version},
          {"command", command},
          {"directory", base::as_utf8(std::filesystem::current_path(ignored).native())},
          {keys::kStarted, utc_now()},
          {keys::kHost, system.nodename},
          {"system", base::join(system.sysname, " ", system.release, " ", system.machine)},
          {keys::kProcessor, processor.model},
          {"features", processor.features},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", provenance.threads},
          {"memory_bytes", machine_memory_bytes()}};
}

}  // namespace retort::record
