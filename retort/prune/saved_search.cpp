#include "retort/prune/saved_search.h"

#include <algorithm>
#include <array>

#include "retort/prune/saved_lines.h"
#include "retort/record/keys.h"

namespace retort::prune {
namespace {

namespace keys = record::keys;

// Only this file reads them.
constexpr record::Key kRungs{"rungs"}, kState{"state"}, kRung{"rung"}, kCharge{"charge"}, kPieces{"pieces"};
constexpr std::array<std::int64_t, 4> kRungParts = {kFirstRungPart, 4, 2,
                                                    1};  // of the batches of a source, one part

}  // namespace

std::vector<search::Rung> rungs_of(const Evaluator& evaluator) {
  const auto rounds = evaluator.pieces().back().round + 1;
  std::vector<search::Rung> rungs;
  std::int64_t before = 0;
  for (const auto part : kRungParts)
    if (const auto count = std::max<std::int64_t>(1, rounds / part); count > before)
      rungs.push_back({evaluator.piece_weights(before = count)});
  return rungs;
}

std::string search_fingerprint(const PruneSetup& setup, const ResolvedPlan& plan,
                               const Evaluator& evaluator) {
  auto json = objective_identity(setup.input, evaluator, plan.text, setup.options.objective);
  for (const auto& rung : rungs_of(evaluator)) json[kRungs].push_back(rung.weights);
  return json.dump();
}

base::Json to_json(const search::Journal::Entry& entry, const ModelSpace& space) {
  return {{keys::kCandidate, architecture::stable_hash(space.candidate(entry.state))},
          {kState, entry.state},
          {kRung, entry.rung},
          {keys::kObjective, entry.objective},
          {kCharge, entry.charge},
          {kPieces, entry.pieces}};
}

std::vector<search::Journal::Entry> entries_of(const std::vector<base::Json>& lines,
                                               const ModelSpace& space) {
  std::vector<search::Journal::Entry> entries;
  for (const auto& line : lines) try {
      auto state = line.at(kState).get<search::State>();
      if (!space.space().holds(state) ||
          architecture::stable_hash(space.candidate(state)) != line.at(keys::kCandidate))
        continue;
      std::vector<double> pieces;
      for (const auto& piece : line.at(kPieces)) pieces.push_back(number_or_infinity(piece));
      entries.push_back({std::move(state), line.at(kRung).get<std::int32_t>(),
                         number_or_infinity(line.at(keys::kObjective)), line.at(kCharge).get<double>(),
                         std::move(pieces)});
    } catch (const nlohmann::json::exception&) {  // a line that is not ours: it is measured anew
    }
  return entries;
}

}  // namespace retort::prune
