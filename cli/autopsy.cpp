#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/print.h"
#include "retort/comm/flight.h"
#include "retort/record/run_files.h"

namespace retort::cli {
namespace {

using base::Json;

Json to_json(const comm::FlightRecord& record) {
  Json calls = Json::array();
  for (const auto& call : record.calls)
    calls.push_back({{"call", comm::described(call.call)},
                     {"group", call.level},
                     {"number", call.call.number},
                     {"root", call.call.root},
                     {"step", call.step},
                     {"state", base::word(call.state)},
                     {"time_ns", call.time_ns},
                     {"hash", call.hash}});
  return {{"rank", record.rank},
          {"host", record.host},
          {"process", record.process},
          {"state", base::word(record.state)},
          {"step", record.step},
          {"phase", record.phase},
          {"alive_ns", record.alive_ns},
          {"sentence", record.sentence},
          {"calls", calls}};
}

std::string last_call(const comm::FlightRecord& record) {
  if (record.calls.empty()) return "none";
  const auto& last = record.calls.back();
  return base::join(comm::described(last.call), ", ", base::word(last.state));
}

void print_table(const std::vector<comm::FlightRecord>& records) {
  Rows rows{{"rank", "host", "process", "state", "step", "phase", "last call"}};
  for (const auto& record : records)
    rows.push_back({std::to_string(record.rank), record.host, std::to_string(record.process),
                    std::string(base::word(record.state)), std::to_string(record.step), record.phase,
                    last_call(record)});
  std::cout << table(rows, rows.front().size());
}

base::ExitCode examine(const std::string& run, bool as_json) {
  const auto flights = record::RunFiles(run).flights_path();
  const auto records = comm::read_flights(flights);
  const auto damaged = comm::damaged_flights(flights);
  base::require<base::DataError>(!records.empty() || damaged.empty(), flights.string(),
                                 ": all records of ranks are damaged (", damaged,
                                 "); how the job ended is not to be told from them.");
  base::require<base::UsageError>(
      !records.empty(), flights.string(),
      ": expected what ranks left there, found nothing; name the directory of a run "
      "of several ranks.");
  const auto found = comm::autopsy(records);
  if (as_json) {
    Json ranks = Json::array();
    for (const auto& record : records) ranks.push_back(to_json(record));
    print(std::cout,
          {{"clean", found.clean},
           {"culprit", found.culprit},
           {"sentence", found.sentence},
           {"damaged", damaged},
           {"ranks", ranks}},
          true);
    return base::ExitCode::ok;
  }
  print_table(records);
  if (!damaged.empty()) std::cout << "damaged and left out: " << damaged << '\n';
  std::cout << (found.clean ? "all ranks ended in order" : found.sentence) << '\n';
  return base::ExitCode::ok;
}

}  // namespace

Action declare_autopsy(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort autopsy runs/quickstart                which rank ended the job, and where each one was\n"
      "  retort autopsy runs/quickstart --json         with the last 256 calls of every rank");
  struct Options {
    std::string run;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("RUN", options->run, "Directory of a run that several ranks carried out")->required();
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return examine(options->run, options->json); };
}

}  // namespace retort::cli
