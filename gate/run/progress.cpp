// Shows progress: a bar on a terminal, else lines.
#include "gate/run/progress.hpp"

#include <cmath>
#include <cstdio>

#include "gate/base/text.hpp"

namespace weir::run {
namespace {

constexpr double k_redraw_seconds = 0.1;

// Shortens text to `columns` by replacing its front with "…". The end of a cell's name says more
// than its beginning.
std::string shorten_front(const std::string& text, std::size_t columns) {
  if (text::columns(text) <= columns) return text;
  if (columns < 2) return "";
  std::size_t from = text.size();
  for (std::size_t kept_columns = 0; from > 0 && kept_columns + 1 < columns;) {
    --from;
    if ((static_cast<unsigned char>(text[from]) & 0xC0U) != 0x80U) ++kept_columns;
  }
  return "…" + text.substr(from);
}

void write_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string time_left_text(const ProgressState& state) {
  if (!state.seconds_left) return "";
  return show_time_left(*state.seconds_left) + (state.pair ? " of the budget left" : " left");
}

std::string pair_text(const ProgressState& state) {
  return *state.pair == 0 ? "warm-up" : fmt::format("pair {}", *state.pair);
}

}  // namespace

// Returns a time such as "1 m 12 s", rounded up: what is left is never "0 s".
std::string show_time_left(double seconds) {
  const auto whole_seconds = static_cast<long long>(std::ceil(std::clamp(seconds, 0.0, 1e9)));
  if (whole_seconds < 60) return fmt::format("{} s", whole_seconds);
  if (whole_seconds < 3600) {
    return whole_seconds % 60 == 0
               ? fmt::format("{} m", whole_seconds / 60)
               : fmt::format("{} m {} s", whole_seconds / 60, whole_seconds % 60);
  }
  const long long minutes = (whole_seconds + 59) / 60;
  return minutes % 60 == 0 ? fmt::format("{} h", minutes / 60)
                           : fmt::format("{} h {} m", minutes / 60, minutes % 60);
}

// Returns the line of the progress bar, at most `columns` wide: pass, bar or pair, cell and time
// left.
std::string bar_line(const ProgressState& state, std::size_t columns) {
  // On a narrow terminal, numbers say more than a bar.
  std::size_t bar_width = 0;
  if (columns >= 48) bar_width = 8;
  if (columns >= 72) bar_width = 24;
  const std::int64_t total = std::max<std::int64_t>(1, state.total);
  const std::int64_t done = std::clamp<std::int64_t>(state.done, 0, total);
  const auto filled = static_cast<std::size_t>(
      static_cast<double>(bar_width) * static_cast<double>(done) / static_cast<double>(total));
  std::string line = fmt::format(" {:<8} ", to_string(state.pass));
  if (state.pair) {
    line += " " + pair_text(state);
  } else {
    for (std::size_t i = 0; i < bar_width; ++i) line += i < filled ? "█" : "░";
    line += fmt::format("  {}/{}", state.done, state.total);
  }
  const std::string time_left = time_left_text(state);
  const std::size_t used_columns =
      text::columns(line) + (time_left.empty() ? 0 : text::columns(time_left) + 3);
  if (columns > used_columns + 5)
    line += "   " + shorten_front(state.cell, columns - used_columns - 3);
  if (!time_left.empty()) line += "   " + time_left;
  while (text::columns(line) > columns) line.pop_back();  // a character goes with its first byte
  return line;
}

BarProgress::BarProgress(const sys::Clock& clock, Write write, std::size_t columns, bool color)
    : clock_(clock), write_(std::move(write)), columns_(columns), color_(color) {}

void BarProgress::show(const ProgressState& state) {
  const std::lock_guard hold(mutex_);
  line_ = bar_line(state, columns_ - 1);  // a full line would wrap on some terminals
  const double now = clock_.steady();
  if (drawn_ && now - drawn_at_ < k_redraw_seconds) return;
  drawn_at_ = now;
  drawn_ = true;
  write_(color_ ? "\r\x1b[K\x1b[2m" + line_ + "\x1b[0m" : "\r\x1b[K" + line_);
}

void BarProgress::say(const std::string& line) {
  const std::lock_guard hold(mutex_);
  std::string text = text::neutralize_ci_commands(line) + "\n";
  if (drawn_) text = "\r\x1b[K" + text + line_;
  write_(text);
}

void BarProgress::finish() {
  const std::lock_guard hold(mutex_);
  if (drawn_) write_("\r\x1b[K");
  drawn_ = false;
}

LineProgress::LineProgress(const sys::Clock& clock, Write write, double every_seconds)
    : clock_(clock), write_(std::move(write)), every_(every_seconds) {}

// Writes a line of progress if the pass is another one, or if `every_` seconds have passed since
// the last line.
void LineProgress::show(const ProgressState& state) {
  const std::lock_guard hold(mutex_);
  const double now = clock_.steady();
  if (pass_ == state.pass && now - last_line_at_ < every_) return;
  pass_ = state.pass;
  last_line_at_ = now;
  const std::string place =
      state.pair ? pair_text(state) : fmt::format("{}/{}", state.done, state.total);
  std::string line = fmt::format("{} {}  {}", to_string(state.pass), place, state.cell);
  const std::string time_left = time_left_text(state);
  if (!time_left.empty()) line += "  " + time_left;
  write_(line + "\n");
}

void LineProgress::say(const std::string& line) {
  const std::lock_guard hold(mutex_);
  write_(text::neutralize_ci_commands(line) + "\n");
}

std::unique_ptr<Progress> make_progress(const sys::Clock& clock, bool quiet,
                                        std::optional<std::size_t> bar_columns, bool color) {
  if (quiet) return std::make_unique<NoProgress>();
  if (bar_columns) {
    return std::make_unique<BarProgress>(clock, write_to_stderr, *bar_columns, color);
  }
  return std::make_unique<LineProgress>(clock, write_to_stderr);
}

}  // namespace weir::run
