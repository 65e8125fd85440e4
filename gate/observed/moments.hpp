// When the events of a trace took place, for a timeline: what an Observed adds up does not say it.
//
// Filled by the reader of Chrome traces where somebody asks for it. Bounded. Texts are as in an
// Observed: fit to show, hostile still. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::observed {

struct ObservedMoments {
  struct Row {
    std::string name, category, shape;
  };
  struct Track {
    std::string process, name;
  };
  struct Span {
    double at = 0, length = 0;  // seconds from `origin`
    std::uint32_t row = 0;      // index into rows
    std::uint16_t track = 0;    // index into tracks
    bool async = false;         // overlaps others of its track
  };
  static constexpr std::size_t k_most_spans = 4'000'000;  // 96 MB

  // Seconds on the document's clock. A clock that counts from 1970 leaves no room in a number for
  // what takes less than a microsecond.
  double origin = 0;
  std::vector<Row> rows;
  std::vector<Track> tracks;
  std::vector<Span> spans;   // in the order in which they ended or were found to have
  std::size_t left_out = 0;  // beyond the most

  void add(const Span& span) {
    if (spans.size() < k_most_spans) {
      spans.push_back(span);
    } else {
      ++left_out;
    }
  }
};

}  // namespace weir::observed
