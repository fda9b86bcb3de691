#include "retort/comm/flight.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/hash.h"
#include "retort/base/machine.h"

namespace retort::comm {
namespace {

constexpr char kMagic[16] = "retort flight 1";
constexpr std::chrono::milliseconds kBeat{50};
constexpr const char* kFilePrefix = "rank-";
constexpr std::size_t kNamedFiles = 8;  // of damaged files

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

template <std::size_t N>
void put(char (&to)[N], std::string_view text) {
  const auto length = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), length);
  std::memset(to + length, 0, N - length);
}

template <std::size_t N>
std::string text_of(const char (&from)[N]) {
  return {from, ::strnlen(from, N)};
}

template <typename Enum>
bool has_word(Enum value) {
  const auto number = static_cast<std::int64_t>(value);
  return number >= 0 && number < std::ssize(words_of(value));
}

// Whether sums and differences of it are numbers.
bool is_time(std::int64_t nanoseconds) {
  return nanoseconds >= 0 && nanoseconds < std::numeric_limits<std::int64_t>::max() / 2;
}

// A disk, or somebody, may have changed what ranks wrote.
bool is_sound(const FlightRecord& record) {
  return record.size > 0 && record.rank >= 0 && record.rank < record.size && has_word(record.state) &&
         is_time(record.alive_ns) && is_time(record.failed_ns) &&
         std::ranges::all_of(record.calls, [](const FlightCall& call) {
           return has_word(static_cast<Op>(call.call.op)) && has_word(static_cast<Type>(call.call.type)) &&
                  has_word(call.state);
         });
}

}  // namespace

struct FlightFile {
  char magic[16];
  std::int32_t rank, size, process, unused;
  char host[64], phase[32], sentence[512];
  std::atomic<std::int64_t> step, alive_ns, failed_ns, next;
  std::atomic<RankState> state;
  FlightCall calls[Flight::kCalls];
};

Flight::Flight(const std::filesystem::path& path, int rank, int size) : directory_(path.parent_path()) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  // posix_fallocate and not ftruncate: a full disk is an error here, and no SIGBUS later.
  const int error = file < 0 ? errno : ::posix_fallocate(file, 0, sizeof(FlightFile));
  void* mapped = error == 0 ? ::mmap(nullptr, sizeof(FlightFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                            : MAP_FAILED;
  if (file >= 0) ::close(file);
  base::require<base::StorageError>(mapped != MAP_FAILED, path.string(),
                                    ": cannot be written: ", base::system_message(error != 0 ? error : errno),
                                    "; make room there.");
  file_ = new (mapped) FlightFile{};
  std::memcpy(file_->magic, kMagic, sizeof kMagic);
  file_->rank = rank;
  file_->size = size;
  file_->process = ::getpid();
  put(file_->host, base::host_name());
  file_->alive_ns = now_ns();
  heart_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
}

Flight::~Flight() {
  heart_ = {};
  finished();
  ::munmap(file_, sizeof(FlightFile));
}

int Flight::rank() const {
  return file_->rank;
}

void Flight::finished() noexcept {
  auto running = RankState::running;
  file_->state.compare_exchange_strong(running, RankState::finished);
  flush();
}

void Flight::beat(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    file_->alive_ns = now_ns();
    std::this_thread::sleep_for(kBeat);
  }
}

std::int64_t Flight::posted(const CallId& call, std::string_view level) {
  const auto place = file_->next.fetch_add(1) % kCalls;
  auto& entry = file_->calls[place];
  entry.call = call;
  put(entry.level, level);
  entry.hash = base::hash64({reinterpret_cast<const char*>(&call), sizeof call}, base::hash64(level));
  entry.step = static_cast<std::int32_t>(file_->step);
  entry.time_ns = now_ns();
  entry.state = CallState::posted;
  return place;
}

void Flight::begun(std::int64_t place) {
  file_->calls[place].time_ns = now_ns();
  file_->calls[place].state = CallState::begun;
}

void Flight::ended(std::int64_t place) {
  file_->calls[place].time_ns = now_ns();
  file_->calls[place].state = CallState::ended;
}

void Flight::at(std::int64_t step, std::string_view phase) {
  file_->step = step;
  put(file_->phase, phase);
}

void Flight::failed(std::string_view sentence, bool by_another) noexcept {
  auto running = RankState::running;
  if (!file_->state.compare_exchange_strong(running, by_another ? RankState::ended : RankState::failed))
    return;
  file_->failed_ns = now_ns();
  put(file_->sentence, sentence);
}

void Flight::recovered() noexcept {
  for (auto state : {RankState::failed, RankState::ended})
    file_->state.compare_exchange_strong(state, RankState::running);
  put(file_->sentence, "");
}

void Flight::flush() noexcept {
  ::msync(file_, sizeof(FlightFile), MS_SYNC);
}

bool is_flight_name(const std::string& name) {
  const std::string_view prefix = kFilePrefix;
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == name.npos;
}

std::filesystem::path flight_path(const std::filesystem::path& directory, int rank) {
  auto number = std::to_string(rank);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, '0');
  return directory / (kFilePrefix + number);
}

std::optional<FlightRecord> read_flight(const std::filesystem::path& file_path) {
  const auto bytes = base::read_file(file_path);
  if (bytes.size() != sizeof(FlightFile) || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return {};
  const auto file = std::make_unique<FlightFile>();
  std::memcpy(static_cast<void*>(file.get()), bytes.data(), sizeof(FlightFile));
  FlightRecord record{.rank = file->rank,
                      .size = file->size,
                      .process = file->process,
                      .host = text_of(file->host),
                      .phase = text_of(file->phase),
                      .sentence = text_of(file->sentence),
                      .step = file->step,
                      .state = file->state,
                      .alive_ns = file->alive_ns,
                      .failed_ns = file->failed_ns,
                      .posted = std::max<std::int64_t>(0, file->next),
                      .calls = {}};
  for (auto call = std::max<std::int64_t>(0, record.posted - Flight::kCalls); call < record.posted; ++call) {
    record.calls.push_back(file->calls[call % Flight::kCalls]);
    std::ranges::end(record.calls.back().level)[-1] = '\0';
  }
  return is_sound(record) ? std::optional(record) : std::nullopt;
}

std::optional<FlightRecord> flight_of(const std::filesystem::path& directory, int rank) noexcept try {
  return read_flight(flight_path(directory, rank));
} catch (...) {  // a rank that begins may be making it anew
  return {};
}

namespace {

std::optional<FlightRecord> read_entry(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_regular_file(ignored) ? read_flight(entry.path()) : std::nullopt;
}

}  // namespace

std::vector<FlightRecord> read_flights(const std::filesystem::path& directory) {
  std::vector<FlightRecord> records;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (auto record = read_entry(entry)) records.push_back(std::move(*record));
  std::ranges::sort(records, {}, &FlightRecord::rank);
  return records;
}

std::string damaged_flights(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (const auto name = entry.path().filename().string();
        name.starts_with(kFilePrefix) && !read_entry(entry))
      names.push_back(name);
  std::ranges::sort(names);
  std::string row;
  for (std::size_t i = 0; i < std::min(names.size(), kNamedFiles); ++i)
    row += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamedFiles ? base::join(row, " and ", names.size() - kNamedFiles, " more") : row;
}

}  // namespace retort::comm
