// Looks for changes: one look at all points, and one look a night. Inside stats. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gate/stats/change_evidence.hpp"

namespace weir::stats {

// Places of first changed points, ascending.
using Places = std::vector<std::size_t>;

// Looks after each of the points [begin, end), each with chance `p` of a first false change. A
// segment starts behind the last of `known` (all of them before `begin`), or at 0; what is found
// starts one of its own and is put behind `known`. `told` is what is known of the series' memory
// from elsewhere.
void look_nightly(std::span<const Order> orders, std::size_t begin, std::size_t end, double p,
                  Places& known, const Memory& told = {});

// Looks once at the points in front of `end`, with chance `p` of a false change in each segment
// between `known` changes (all before `end`): those that are found, with the known ones.
[[nodiscard]] Places look_once(std::span<const Order> orders, std::size_t end, double p,
                               const Places& known, const Memory& told = {});

struct Found {
  std::size_t place = 0;
  double distance = 0;     // of the two sides, up to the changes before and behind
  std::size_t points = 0;  // how many these are
  bool up = false;         // the later side is the higher one
};
// Moves each place to where its two sides differ most, and takes back what the points behind it
// have refuted: what is hardly more than noise by now, looked at alone. `memory` is what is told of
// it, and becomes what is left when all levels are taken out.
[[nodiscard]] std::vector<Found> settled(std::span<const Order> orders, Places places,
                                         Memory& memory);

}  // namespace weir::stats
