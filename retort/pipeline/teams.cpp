#include "retort/pipeline/teams.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/record/stopped.h"

namespace retort::pipeline {
namespace {

// Machines are taken in the order of their numbers.
std::int64_t team_of(const std::vector<int>& nodes, int rank, std::int64_t teams) {
  const std::set<int> machines(nodes.begin(), nodes.end());
  const auto place = std::distance(machines.begin(), machines.find(nodes[static_cast<std::size_t>(rank)]));
  return place / (std::ssize(machines) / teams);
}

// Of a team that rank 0 is not in: its first rank keeps what the user must know, and sees the file that asks
// to stop.
class TeamObserver final : public record::Observer {
 public:
  TeamObserver(const Context& context, std::int64_t team, bool leads)
      : of_rank_(context.observer), stop_file_(context.directory.stop_path()), team_(team), leads_(leads) {}

  void message(record::Level level, std::string_view text) override {
    if (leads_ && level >= record::Level::warning)
      warnings_ +=
          base::join(warnings_.empty() ? "" : "\n  ", "team ", team_, ", whose ranks count from 0: ", text);
  }
  bool stop_requested() const override {
    std::error_code none;
    return of_rank_.stop_requested() || (leads_ && std::filesystem::exists(stop_file_, none));
  }
  const std::string& warnings() const { return warnings_; }

 private:
  const record::Observer& of_rank_;
  base::Path stop_file_;
  std::int64_t team_;
  bool leads_;
  std::string warnings_;
};

// How a team ended before it had done all of its stages, as all of its ranks know.
struct Ended {
  std::string stopped;        ///< why it was stopped
  std::exception_ptr failed;  ///< what went wrong
};

// The others are not to work for hours on what ends now.
void ask_others_to_stop(const Context& context, const comm::Group& team) {
  if (team.rank() != 0) return;
  try {
    base::write_file_atomically(context.directory.stop_path(), "");
  } catch (const base::Error&) {  // a full disk: then they end when their stages do
  }
}

base::Path metrics_of_team(const Context& context, const std::string& stage) {
  return context.directory.stage_directory(stage) / "metrics.jsonl";
}

// A stage that goes on has lines already.
record::Metrics begun_metrics(const Context& context, const std::string& stage) {
  const auto path = metrics_of_team(context, stage);
  base::make_directories(path.parent_path());
  record::Metrics metrics(path);
  metrics.take_over(context.directory.metrics_path(), stage);
  return metrics;
}

// Lines that teams wrote go into the file of the run, also those of a run that ended early.
void take_over_metrics(const Context& context, const std::vector<std::string>& stages) {
  context.group.agree([&] {
    if (!context.metrics) return;
    for (const auto& stage : stages) {
      const auto of_team = metrics_of_team(context, stage);
      if (!std::filesystem::exists(of_team)) continue;
      context.metrics->take_over(of_team, stage);
      base::remove_all(of_team);
      std::error_code ignored;
      std::filesystem::remove(of_team.parent_path(), ignored);
    }
  });
}

Ended work(const Context& context, comm::Group& group, std::int64_t team, std::int64_t teams,
           record::Observer& observer, const std::vector<std::string>& stages,
           const std::function<void(const Context&, std::size_t)>& act) {
  try {
    for (auto number = static_cast<std::size_t>(team); number < stages.size();
         number += static_cast<std::size_t>(teams)) {
      std::optional<record::Metrics> metrics;
      group.agree([&] {
        if (team > 0 && group.rank() == 0) metrics = begun_metrics(context, stages[number]);
      });
      auto place = context.place;
      place.ranks = ranks_of_team(place.ranks, teams);
      act({context.recipe, context.directory, metrics ? &*metrics : context.metrics, observer, group,
           context.dtype, place},
          number);
    }
  } catch (const record::StoppedError& stopped) {
    ask_others_to_stop(context, group);
    return {.stopped = stopped.what(), .failed = {}};
  } catch (const std::exception&) {  // out of memory too
    if (!group.failed_together()) throw;
    ask_others_to_stop(context, group);
    return {.stopped = {}, .failed = std::current_exception()};
  }
  return {};
}

}  // namespace

shard::RankCounts ranks_of_team(const shard::RankCounts& ranks, std::int64_t teams) {
  auto of_team = ranks;
  of_team.all /= teams;
  return of_team;
}

std::int64_t count_teams(const shard::RankCounts& ranks, std::int64_t most,
                         const std::function<bool(const shard::RankCounts& of_team)>& fits) {
  if (ranks.of_machine != ranks.least_of_machine) return 1;
  const auto machines = ranks.all / ranks.of_machine;
  for (auto teams = std::min(machines, most); teams > 1; --teams)
    if (machines % teams == 0 && fits(ranks_of_team(ranks, teams))) return teams;
  return 1;
}

void in_teams(const Context& context, std::int64_t teams, const std::vector<std::string>& stages,
              const std::function<void(const Context& of_team, std::size_t place)>& act) {
  take_over_metrics(context, stages);
  if (teams == 1) {
    for (std::size_t place = 0; place < stages.size(); ++place) act(context, place);
    return;
  }
  const auto team = team_of(context.group.nodes(), context.group.rank(), teams);
  const auto group = context.group.split(static_cast<int>(team), "team");
  TeamObserver apart(context, team, group->rank() == 0);
  auto& observer = team == 0 ? context.observer : apart;
  const auto ended = work(context, *group, team, teams, observer, stages, act);
  for (const auto& warnings : context.group.all_texts(apart.warnings()))
    if (context.leads() && !warnings.empty()) context.observer.message(record::Level::warning, warnings);
  take_over_metrics(context, stages);
  context.group.agree([&] {
    if (ended.failed) std::rethrow_exception(ended.failed);
  });
  context.group.agree([&] { base::require<record::StoppedError>(ended.stopped.empty(), ended.stopped); });
}

}  // namespace retort::pipeline
