#include "retort/compress/assignment.h"

#include <limits>

namespace retort::compress {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// Potentials u of rows and v of columns: cost - u - v is never negative, and 0 where row and column are
// matched.
class Assignment {
 public:
  Assignment(std::span<const float> cost, std::size_t count)
      : cost_(cost), count_(count), u_(count), v_(count), row_of_(count, kNone) {}

  // One more row gets a column; rows on the shortest path to a free column change theirs.
  void add(std::size_t row) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    std::vector<double> distance(count_, kFar);
    std::vector<std::size_t> before(count_, kNone), path;
    std::vector<char> settled(count_, 0);
    std::size_t at_row = row, column = kNone;
    double base = 0;
    do {
      std::size_t nearest = kNone;
      for (std::size_t j = 0; j < count_; ++j) {
        if (settled[j]) continue;
        const double reached = base + static_cast<double>(cost_[at_row * count_ + j]) - u_[at_row] - v_[j];
        if (reached < distance[j]) {
          distance[j] = reached;
          before[j] = column;
        }
        if (nearest == kNone || distance[j] < distance[nearest]) nearest = j;
      }
      column = nearest;
      base = distance[column];
      settled[column] = 1;
      path.push_back(column);
      at_row = row_of_[column];
    } while (at_row != kNone);
    raise_potentials(row, path, distance, base);
    for (; column != kNone; column = before[column])
      row_of_[column] = before[column] == kNone ? row : row_of_[before[column]];
  }

  std::vector<std::int64_t> columns() const {
    std::vector<std::int64_t> result(count_);
    for (std::size_t j = 0; j < count_; ++j) result[row_of_[j]] = static_cast<std::int64_t>(j);
    return result;
  }

 private:
  void raise_potentials(std::size_t row, const std::vector<std::size_t>& settled,
                        const std::vector<double>& distance, double length) {
    u_[row] += length;
    for (const auto j : settled) {
      const double gain = length - distance[j];
      if (row_of_[j] != kNone) u_[row_of_[j]] += gain;
      v_[j] -= gain;
    }
  }

  std::span<const float> cost_;
  std::size_t count_;
  std::vector<double> u_, v_;
  std::vector<std::size_t> row_of_;  // of a column
};

}  // namespace

std::vector<std::int64_t> least_cost_assignment(std::span<const float> cost, std::int64_t count) {
  Assignment assignment(cost, static_cast<std::size_t>(count));
  for (std::size_t row = 0; row < static_cast<std::size_t>(count); ++row) assignment.add(row);
  return assignment.columns();
}

}  // namespace retort::compress
