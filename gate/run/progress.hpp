// Progress that people see on standard error during a run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "gate/profile/record.hpp"
#include "gate/sys/clock.hpp"

namespace weir::run {

struct ProgressState {
  profile::Pass pass = profile::Pass::counted;
  std::int64_t done = 0, total = 0;    // steps of this pass
  std::string cell;                    // being run
  std::optional<double> seconds_left;  // for the whole run; for pairs, of the budget
  std::optional<std::int64_t> pair{};  // being run; how many there will be is not known
};

// Thread-safe.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void show(const ProgressState& state) = 0;
  // A line that stays: "waiting for the lock …", "… left out".
  virtual void say(const std::string& line) = 0;
  // Takes a bar away.
  virtual void finish() = 0;
};

class NoProgress final : public Progress {
 public:
  void show(const ProgressState&) override {}
  void say(const std::string&) override {}
  void finish() override {}
};

// One line that is drawn over again (at most 10 times a second); for terminals.
class BarProgress final : public Progress {
 public:
  using Write = std::function<void(std::string_view)>;
  BarProgress(const sys::Clock& clock, Write write, std::size_t columns, bool color);
  void show(const ProgressState& state) override;
  void say(const std::string& line) override;
  void finish() override;

 private:
  const sys::Clock& clock_;
  Write write_;
  std::size_t columns_;
  bool color_;
  std::mutex mutex_;
  double drawn_at_ = -1;
  bool drawn_ = false;
  std::string line_;
};

// Plain lines: one when a pass begins, then one every `every_seconds` at most; for logs.
class LineProgress final : public Progress {
 public:
  using Write = std::function<void(std::string_view)>;
  LineProgress(const sys::Clock& clock, Write write, double every_seconds = 15);
  void show(const ProgressState& state) override;
  void say(const std::string& line) override;
  void finish() override {}

 private:
  const sys::Clock& clock_;
  Write write_;
  double every_;
  std::mutex mutex_;
  std::optional<profile::Pass> pass_;
  double last_line_at_ = 0;
};

// The one that fits: none when `quiet`, a bar of `bar_columns` where given, else lines.
[[nodiscard]] std::unique_ptr<Progress> make_progress(const sys::Clock& clock, bool quiet,
                                                      std::optional<std::size_t> bar_columns,
                                                      bool color);

// "1 m 12 s", "8 s", "2 h 5 m": rounded up, for what is left is never "0 s" (unit::show_duration
// rounds to nearest, for what has passed).
[[nodiscard]] std::string show_time_left(double seconds);
// One bar without cursor moves, at most `columns` wide.
[[nodiscard]] std::string bar_line(const ProgressState& state, std::size_t columns);

}  // namespace weir::run
