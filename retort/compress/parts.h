#pragma once
// The parts that a model may lose, besides whole blocks.  A part is one file in parts/; search, slicing,
// masks and compensation loop over architecture::kPartKinds.  What stays of a part says architecture/kept.h.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/architecture/layout.h"
#include "retort/calibrate/influence.h"

namespace retort::compress {

/// What the removal of a part needs to know of it: its names, and what belongs to it in each tensor.
class Part {
 public:
  virtual ~Part() = default;

  /// Name in reports of narrowing every block alike: "narrow".
  virtual std::string action() const = 0;
  /// Such a step: "narrow MLPs to 448".
  virtual std::string described(std::int64_t left) const = 0;
  /// Name of what a search removes it from: "MLP 3", or (-1) "width", of all blocks alike.
  virtual std::string unit(std::int64_t block) const = 0;
  /// Influence of all of them together.
  virtual double influence(const calibrate::Influence& influence) const = 0;

  /// Rows and columns of a tensor with this role that belong to each of them; 0: none.  All of them together
  /// may stand in a tensor several times, one time after the other.
  virtual std::int64_t rows_each(const architecture::Block& shape, architecture::Role role) const = 0;
  virtual std::int64_t columns_each(const architecture::Block& shape, architecture::Role role) const = 0;
  /// Factor of a tensor of which `left` of `count` stay.
  virtual double factor(const architecture::Block&, architecture::Role, std::int64_t /*count*/,
                        std::int64_t /*left*/) const {
    return 1;
  }
};

const Part& part_of(architecture::PartKind kind);

/// Of `size` rows or columns of a tensor those that stay where each of `count` parts has `each` of them,
/// rising.
std::vector<std::int64_t> kept_places(std::vector<std::int64_t> places, std::int64_t each, std::int64_t count,
                                      const std::vector<std::int64_t>& left);

}  // namespace retort::compress
