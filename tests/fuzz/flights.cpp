// Flight records of two ranks.  An input that begins with a zero byte is both files; others are changes of
// two sound ones, five bytes each: file, place, value.
#include "retort/comm/flight.h"

#include "fuzz/harness.h"

using namespace retort;

namespace {

std::vector<std::string> sound_records() {
  const base::Path made = fuzz::folder() / "made";
  std::filesystem::create_directories(made);
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    const auto path = comm::flight_path(made, rank);
    {
      comm::Flight flight(path, rank, 2);
      flight.at(3, "forward");
      for (int i = 0; i < 5; ++i) flight.begun(flight.posted({}, "world"));
      if (rank == 0) flight.failed("it failed.", false);
    }
    files.push_back(base::read_file(path));
  }
  return files;
}

void change(std::vector<std::string>& files, std::span<const std::uint8_t> changes) {
  for (; changes.size() >= 5; changes = changes.subspan(5)) {
    std::string& file = files[changes[0] % files.size()];
    const std::size_t place = changes[1] | std::size_t{changes[2]} << 8 | std::size_t{changes[3]} << 16;
    file[place % file.size()] = static_cast<char>(changes[4]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::string> sound = sound_records();
  static const base::Path directory = fuzz::folder() / "flights";
  std::filesystem::create_directories(directory);
  std::vector<std::string> files = sound;
  if (size > 0 && data[0] == 0) {
    const auto input = fuzz::text_of(data, size).substr(1);
    files = {std::string(input.substr(0, input.size() / 2)), std::string(input.substr(input.size() / 2))};
  } else {
    change(files, {data, size});
  }
  for (int rank = 0; rank < 2; ++rank)
    fuzz::write(comm::flight_path(directory, rank), files[static_cast<std::size_t>(rank)]);
  fuzz::taken([] {
    const auto records = comm::read_flights(directory);
    for (const auto& record : records) {
      (void)comm::described(record);
      (void)comm::last_place(record);
    }
    (void)comm::autopsy(records, [](const std::string&, int) { return false; });
  });
  return 0;
}
