// In how many of a hundred made-up evaluations the interval over documents holds the truth.
// A row for each kind of document: share that is held, and in brackets how often the truth was above it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/random.h"
#include "retort/eval/bootstrap.h"

namespace {

using namespace retort;

enum class Kind { normal, t3, length, gamma, lognormal, few_hurt };
struct Row {
  Kind kind;
  const char* name;
  double truth;  // nats per token
};
const std::array<Row, 6> kRows = {{{Kind::normal, "normal", 0},
                                   {Kind::t3, "t with 3 degrees", 0},
                                   {Kind::length, "grows with length", 0.4},
                                   {Kind::gamma, "gamma 0.5", 0.5},
                                   {Kind::lognormal, "lognormal 1.5", std::exp(1.125)},
                                   {Kind::few_hurt, "5 % hurt 20 x", 0.05 * 20 + 0.95}}};
// Sources and documents of each.
constexpr std::array<std::pair<int, int>, 7> kSizes = {
    {{1, 8}, {1, 12}, {1, 20}, {1, 40}, {3, 8}, {5, 8}, {5, 40}}};

double effect(Kind kind, double length, base::Random& random) {
  const double normal = random.next_normal();
  const auto square = [&] { return std::pow(random.next_normal(), 2); };
  switch (kind) {
    case Kind::normal:
      return normal;
    case Kind::t3:
      return normal / std::sqrt((square() + square() + square()) / 3);
    case Kind::length:
      return 0.5 * length + normal;
    case Kind::gamma:  // half of a chi-square of one degree
      return normal * normal / 2;
    case Kind::lognormal:
      return std::exp(1.5 * normal);
    case Kind::few_hurt:
      return random.next_double() < 0.05 ? 20 : 1;
  }
  return 0;
}

// Lengths are spread over two orders of magnitude.
eval::RatioTerm document(Kind kind, base::Random& random) {
  const double length = random.next_normal(), tokens = std::exp(6 + 0.8 * length);
  return {effect(kind, length, random) * tokens, tokens};
}

struct Share {
  int held = 0, above = 0, none = 0, samples = 0;
};

Share share_of(const Row& row, std::pair<int, int> size, int samples, int resamples) {
  base::Random random(1, base::stream_of(base::join(row.name, size.first, "x", size.second)));
  Share share{.samples = samples};
  for (int sample = 0; sample < samples; ++sample) {
    std::vector<std::vector<eval::RatioTerm>> groups(static_cast<std::size_t>(size.first));
    for (auto& group : groups)
      while (std::ssize(group) < size.second) group.push_back(document(row.kind, random));
    const auto interval = eval::bootstrap_interval(groups, {.resamples = resamples});
    if (!interval)
      ++share.none;
    else if (row.truth > interval->high)
      ++share.above;
    else
      share.held += row.truth >= interval->low;
  }
  return share;
}

int percent(int part, int whole) {
  return whole > 0 ? static_cast<int>(std::lround(100.0 * part / whole)) : 0;
}

}  // namespace

// coverage [SAMPLES [RESAMPLES]]
int main(int count, char** arguments) {
  const int samples = count > 1 ? std::atoi(arguments[1]) : 1000;
  const int resamples = count > 2 ? std::atoi(arguments[2]) : 1000;
  std::printf("| documents' effect |");
  for (const auto& [sources, documents] : kSizes) std::printf(" %dx%d |", sources, documents);
  std::printf("\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const auto& row : kRows) {
    std::printf("| %s |", row.name);
    for (const auto& size : kSizes) {
      const auto share = share_of(row, size, samples, resamples);
      const int said = samples - share.none;
      if (said > 0) std::printf(" %d (%d)", percent(share.held, said), percent(share.above, said));
      if (share.none > 0) std::printf("%s none %d", said > 0 ? "," : "", percent(share.none, samples));
      std::printf(" |");
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}
