// The trend site: a history in order, its changes and its gates' verdicts -> files to put beside
// the pages (gate/web), one JSON document each. docs/trend-site.md.
//
// A document is a script that calls weirData(NAME, JSON AS TEXT), because pages opened from a file
// can load scripts and nothing else. Documents are small enough to be loaded by need, whatever the
// size of the history, and hold base units and any text as it is: who shows it makes it inert. No
// name of a file is made of text from outside. Pure, and one path at a time: the server answers
// with the same functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/history/history.hpp"

namespace weir::site {

// A change on a series, to be shown. Of the kind `place` is what it is measured on that changed.
struct SiteChange {
  enum class Kind { step, drift, place };
  Kind kind = Kind::step;
  std::size_t index = 0;               // of the first changed point; 1 … points - 1
  std::size_t end = 0;                 // of a drift: one past the last point that still moved
  double before = 0, after = 0;        // levels, in the metric's base unit
  double size = 0, low = 0, high = 0;  // its interval; of a place, or where unknown, all `size`
  bool relative = true;                // size is after / before - 1; else after - before
  std::string from, to;                // classes, of a place
  // Somebody said that it is known.
  struct Known {
    std::string reason, who;
    double at = 0;
  };
  std::optional<Known> known{};
};
[[nodiscard]] std::string_view to_string(SiteChange::Kind kind);  // "step", "drift", "place"

struct SiteModel {
  std::string title;     // "" is "weir"
  std::string repo_url;  // commits are at <it>/commit/NAME; "" makes no links
  history::History history;
  std::vector<std::vector<SiteChange>> changes;  // by series, each by index; may be shorter
  std::vector<history::StoredVerdict> verdicts;  // those that can not be read are left out
  std::map<std::string, std::string> subjects;   // of commits, as the runs name them
};

// An address to which "/commit/NAME" can be put: http or https, nothing in it that a browser would
// read otherwise; without a final '/'. Code::usage.
[[nodiscard]] Result<std::string> repo_url(std::string_view text);

inline constexpr std::size_t k_cells_a_spark_file = 50;
inline constexpr std::size_t k_most_run_pages = 2'000;  // the newest, and as many with verdicts

struct SiteIndex;  // site_parts.hpp

class Site {
 public:
  explicit Site(SiteModel model);
  Site(Site&&) noexcept;
  Site& operator=(Site&&) = delete;
  ~Site();

  // Of all documents: "data/overview.js", "data/cells/0a1b….js", …
  [[nodiscard]] std::vector<std::string> paths() const;
  // Nothing where there is no such document.
  [[nodiscard]] std::optional<std::string> text(std::string_view path) const;
  [[nodiscard]] const SiteIndex& index() const { return *index_; }

 private:
  std::unique_ptr<const SiteIndex> index_;
};

}  // namespace weir::site
