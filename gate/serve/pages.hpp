// The trend site, live: files of the pages as they were at the start, and documents of a snapshot
// of the whole store. Paths are looked up in tables; none becomes a name of a file. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "gate/history/history.hpp"
#include "gate/history/order.hpp"
#include "gate/history/store.hpp"
#include "gate/serve/http.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/files.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::serve {

// A badge: what the newest verdict says, as an image of its own (SVG). Pure; texts are hostile.

enum class BadgeState { passing, failing, undecided, unmeasured, unknown };

// The part of a verdict that a badge shows: cells and metrics that match ('*' crosses '/'); "":
// all.
struct BadgeSubject {
  std::string cell, metric;
};

// Returns nothing if the verdict has no such cell or metric, and left nothing unjudged.
[[nodiscard]] std::optional<BadgeState> state_of(const verdict::GateVerdict& verdict,
                                                 const BadgeSubject& subject);
[[nodiscard]] BadgeState state_of(verdict::Outcome outcome);

// "passing", "failing", "undecided", "not measured", "unknown".
[[nodiscard]] std::string_view to_string(BadgeState state);

// `label`: at most 60 characters of it are shown. Self-contained: no script, no reference.
[[nodiscard]] std::string badge_svg(std::string_view label, BadgeState state);

struct PageOptions {
  std::string folder;  // made by ci/web; "": no pages
  std::string title, repo_url;
  // Bytes of runs with their points, and of verdicts, that a snapshot shows: the newest.
  std::size_t max_bytes = std::size_t{12} << 20, max_verdict_bytes = std::size_t{3} << 20;
  std::function<history::CommitOrder()> order{};  // empty: series go by time
  std::function<std::map<std::string, std::string>(const history::History&)> subjects{};
};

class Pages {
 public:
  // Code::config where the folder holds no pages.
  [[nodiscard]] static Result<std::unique_ptr<Pages>> load(const sys::Files& files,
                                                           PageOptions options);

  // Makes another snapshot where `store` is not as the last one saw it. One thread at a time.
  [[nodiscard]] Result<void> renew(history::ServiceStore& store, double now);
  // Nothing where there is no such path. 503 for documents until there is a snapshot. Without
  // making any only what is in memory already: at once.
  enum class Making { yes, no };
  [[nodiscard]] std::optional<Response> find(const std::string& path,
                                             Making making = Making::yes) const;

  // When the snapshot was made, which is not when it was last looked whether it has to be.
  [[nodiscard]] std::optional<double> made_at() const;
  // Entries of the history for which the snapshot has no room.
  struct LeftOut {
    std::size_t runs = 0, verdicts = 0;
  };
  [[nodiscard]] LeftOut left_out() const;
  [[nodiscard]] history::CommitOrder order() const {
    return options_.order ? options_.order() : history::CommitOrder();
  }

 private:
  // Documents of one snapshot that somebody asked for: one text for all who take it at once.
  struct Documents {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const std::string>> by_path;  // under mutex, as the next
    std::size_t bytes = 0;
  };
  struct Snapshot {
    std::shared_ptr<const site::Site> site;
    std::shared_ptr<Documents> documents;
    std::string revision;
    double made_at = 0;
    LeftOut left_out{};
  };
  explicit Pages(PageOptions options) : options_(std::move(options)) {}

  PageOptions options_;
  std::map<std::string, Response> files_;  // by path
  mutable std::mutex mutex_;
  Snapshot snapshot_;  // under mutex_
};

}  // namespace weir::serve
