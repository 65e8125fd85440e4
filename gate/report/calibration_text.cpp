// Writes the result of `weir calibrate` as text.
#include "gate/report/calibration_text.hpp"

#include <algorithm>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/text_style.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

using verdict::CalibratedCell;
using verdict::CalibratedMetric;
using verdict::Calibration;

constexpr std::size_t k_tag_width = 6;

std::string share_text(double part) { return unit::percent(part, part > 0 && part < 0.1 ? 2 : 0); }

// Writes the answer, then each cell, then how sure the answer is.
class CalibrationWriter {
 public:
  CalibrationWriter(const Calibration& calibration, const TextStyle& style)
      : calibration_(calibration), page_(style.color, columns_of(style.width, 20)) {}

  std::string run() {
    const bool keeps_budget = calibration_.keeps_budget;
    page_.add_paragraph("weir calibrate: ", printable_line(calibration_.answer), 2, k_bold,
                        keeps_budget ? "32" : "1;31");
    const auto* named = find_first(
        calibration_.cells, [](const CalibratedCell& cell) { return !cell.machine_name.empty(); });
    const std::string machine = named == nullptr ? "" : ", " + named->machine_name;
    page_.add_paragraph(
        "", printable_line(calibration_.date + machine + "; beside " + calibration_.base), 2, "",
        k_dim);
    for (const CalibratedCell& cell : calibration_.cells) show(cell);
    if (!calibration_.cells.empty()) add_gates();
    for (const std::string& note : calibration_.notes) add_line("note", printable_line(note));
    return page_.finish();
  }

 private:
  void add_line(std::string_view what, const std::string& words) {
    const std::string head = "      " + pad_right(what, 10);
    page_.add_paragraph(head, words, head.size(), k_dim);
  }

  // Says how many pairs a verdict takes, and how long: on average and for 95 of 100 gates.
  static std::string needed_pairs_text(const CalibratedCell& cell,
                                       const verdict::PairsNeeded& pairs) {
    const double seconds = cell.pair_seconds;
    if (pairs.decided < 0.95) {
      return fmt::format("no verdict within {} pairs in {} of gates", cell.max_pairs,
                         share_text(1 - pairs.decided));
    }
    return fmt::format("{:.0f} pairs, {}; 95 of 100 gates within {:.0f}, {}", std::ceil(pairs.mean),
                       unit::show_duration(pairs.mean * seconds), std::ceil(pairs.p95),
                       unit::show_duration(pairs.p95 * seconds));
  }

  void add_runs(const CalibratedMetric& metric, const char* side,
                const std::optional<verdict::RunSpread>& runs) {
    if (!runs) return;
    add_line(side, fmt::format("{}; 8 of 10 runs lie between {} and {}",
                               unit::show(metric.metric, runs->median),
                               unit::show(metric.metric, std::min(runs->fast, runs->slow)),
                               unit::show(metric.metric, std::max(runs->fast, runs->slow))));
  }

  // Says how much the two runs of a pair differ; `noise` is the standard deviation of the logarithm
  // of their ratio, infinite if too many runs did not end.
  static std::string noise_text(double noise) {
    if (!std::isfinite(noise)) return "more than a quarter of the pairs has a run that did not end";
    const double share = std::expm1(noise);
    return share < 0.5 ? fmt::format("runs of a pair differ by {:.1f} % (one sd)", 100 * share)
                       : fmt::format("runs of a pair differ {:.1f} x (one sd)", 1 + share);
  }

  void show(const CalibratedMetric& metric) {
    const std::string head = "      " + unit::display_name(metric.metric) + "  ";
    const std::string noise = noise_text(metric.noise);
    page_.add_paragraph(head, fmt::format("{}, {}", metric.limit, noise), 8, k_bold);
    add_runs(metric, "base", metric.base);
    add_runs(metric, "candidate", metric.candidate);
    add_line("verdict", verdict_text(metric));
  }

  // Returns the verdict of the sequential test with its evidence values.
  static std::string verdict_text(const CalibratedMetric& metric) {
    const auto odds = [](double log) {
      return log < std::log(1e6) ? fmt::format("{:.3g}", std::exp(log)) : "1e6 and more";
    };
    // In the order in which decisions are declared.
    constexpr std::string_view k_decisions[] = {"inconclusive", "pass", "FAIL",
                                                "none (the sides spread unlike)"};
    const std::string_view decision = k_decisions[static_cast<std::size_t>(metric.decision)];
    return fmt::format(
        "{} after {} (evidence: slower {}, beyond {} {}, within {} {})", decision,
        text::plural(static_cast<std::size_t>(metric.decided_after), "pair", "pairs"),
        odds(metric.log_slower), metric.tolerated, odds(metric.log_beyond), metric.amount,
        odds(metric.log_within));
  }

  void show(const CalibratedCell& cell) {
    page_.add_blank_line();
    std::string_view tag = cell.keeps_budget ? "holds" : "NO";
    if (cell.error) tag = "error";
    page_.add_paragraph(pad_right(tag, k_tag_width),
                        clip_middle(cell_title(cell.cell), page_.width() - k_tag_width),
                        k_tag_width, cell.error || !cell.keeps_budget ? "1;31" : "32", k_bold);
    if (cell.error) return page_.add_paragraph("      ", printable_line(*cell.error), k_tag_width);
    add_line("pairs", fmt::format("{} measured, {} each", cell.pairs,
                                  unit::show_duration(cell.pair_seconds)));
    for (const CalibratedMetric& metric : cell.metrics) show(metric);
    add_line("no change", needed_pairs_text(cell, cell.unchanged));
    add_line("at limit", needed_pairs_text(cell, cell.at_limit));
  }

  // Says how often replayed gates failed with nothing changed.
  void add_gates() {
    const Calibration& all = calibration_;
    page_.add_blank_line();
    page_.add_paragraph(
        "gate  ",
        fmt::format("{} of {} replayed gates failed with nothing changed: at most {} (95 % sure); "
                    "gate.false_alarm promises {} by the coin, whatever these pairs are like.",
                    all.failed, all.replays, share_text(all.max_failed_share),
                    share_text(all.false_alarm)),
        k_tag_width, k_bold);
    if (!all.two_builds) return;
    page_.add_paragraph(
        "      ",
        fmt::format("{} of {} failed with the two builds as different as they were seen: what two "
                    "builds of one source differ by is real to any gate.",
                    all.measured_failed, all.replays),
        k_tag_width);
  }

  const Calibration& calibration_;
  Page page_;
};

}  // namespace

std::string calibration_text(const Calibration& calibration, const TextStyle& style) {
  return CalibrationWriter(calibration, style).run();
}

}  // namespace weir::report
