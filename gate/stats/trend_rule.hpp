// The rule that watches a series of nights: a line with a step and a bend, noise that remembers
// (AR 1), outliers that count only as much as their rate allows. The last points are compared with
// a fit that never saw them. So neither a drift nor the step itself is taken for noise or for
// memory.
//
// One test a night, about 7 us. An alert is never taken back. Its error rates and delays, and the
// simulations that its constants were chosen by: docs/evidence/change-points.md. Inside stats.
// Pure.
//
// Sources: Romano, Rigaill, Runge, Fearnhead, JASA 117, 2022 (AR(1) noise beside drift); Fearnhead,
// Rigaill, JASA 114, 2019 (outliers, bounded loss); Page, Biometrika 41, 1954 (CUSUM).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace weir::stats {

// The fit of one night to the points up to it: value = line + step + bend, by weighted least
// squares.
struct NightFit {
  static constexpr std::size_t k_terms = 4;
  using Terms = std::array<double, k_terms>;
  static constexpr std::size_t k_level = 0, k_slope = 1, k_step = 2;  // places in `coefficients`

  std::size_t night = 0, begin = 0;       // over the points [begin, night]
  std::optional<std::size_t> step, bend;  // first point after the step, last before the bend
  // Coefficients in use: level, slope, then those of step and bend if the fit has them.
  std::size_t terms = 2;
  Terms coefficients{};
  std::array<Terms, k_terms> covariance{};  // over the variance of a residual
  double scale = 0;                         // typical size of a residual
  double memory = 0;                        // correlation of a residual with the one before
  double noise = 0;                         // sd of the part that a residual does not remember
  double reach = 0;                         // an outlier weighs no more than exp(-reach^2 / 2)
  double strictness = 0;                    // heavy tails raise thresholds by this
  double last_residual = 0;
  double fresh = 0;  // points since the last change, at least 3

  [[nodiscard]] double points() const { return static_cast<double>(night - begin + 1); }
  [[nodiscard]] std::size_t bend_place() const { return terms - 1; }  // in `coefficients`
  [[nodiscard]] Terms terms_at(std::size_t i) const;
  // The sum of coefficients times terms_at(), without terms that are 0. Half the time of a test is
  // spent here, so it is inline.
  [[nodiscard]] double line_at(std::size_t i) const {
    double line = coefficients[k_level] +
                  (static_cast<double>(i) - static_cast<double>(begin)) * coefficients[k_slope];
    if (step && i >= *step) line += coefficients[k_step];
    if (bend && i > *bend) line += static_cast<double>(i - *bend) * coefficients[bend_place()];
    return line;
  }
};

struct Alert {
  enum class Kind { step, bend };
  std::size_t night = 0;  // when it was raised
  Kind kind = Kind::step;
  std::size_t place = 0;  // first changed point
  double size = 0;        // a step's height; a bend's change of the slope a night
  double memory = 0, noise = 0;
  double excess = 0;     // over the threshold
  bool settled = false;  // kind and place change no more
};

class TrendRule {
 public:
  // Shorter series show no change: a fit takes ten points, and a step two that it has not seen.
  static constexpr std::size_t k_min_points = 12;
  // A step among the points of the first fit is looked for until a series has so many.
  static constexpr std::size_t k_early_points = 24;
  static constexpr std::size_t k_nights_to_revise = 16;  // the kind of an alert may change so long

  // `offset` is added to all thresholds: below 0 finds sooner and errs more often.
  explicit TrendRule(double offset = 0) : offset_(offset), fits_(k_stored_nights) {}

  // The next night's value, finite: a logarithm, or a value over a fixed scale.
  void add(double value);
  // All alerts by night. The kind of the last may change for 16 nights, the place of a step for 6.
  [[nodiscard]] const std::vector<Alert>& alerts() const { return alerts_; }
  // Null if there were too few points, or the night is too long ago to be stored.
  [[nodiscard]] const NightFit* fit_of(std::size_t night) const;

  // How far the last `points` points are from the prediction of the night before them.
  struct Distance {
    double evidence = 0;   // against outliers as the cause
    double clearness = 0;  // against the uncertainty of the line as the cause
    double evidence_needed = 0, clearness_needed = 0;

    [[nodiscard]] double excess() const;
  };
  // Nothing if it cannot be computed, or is no more than noise.
  [[nodiscard]] std::optional<Distance> distance(Alert::Kind kind, std::size_t points) const;

 private:
  static constexpr std::size_t k_stored_nights = 128;

  struct Regime {
    std::size_t begin = 0;
    std::optional<std::size_t> step, bend;
    bool sloped = false;  // a drift was reported
  };
  struct Explanation {
    Alert::Kind kind = Alert::Kind::step;
    std::size_t place = 0;
    double size = 0, likelihood = 0;
  };

  // Two levels that explain all points so far, and how far they lie apart.
  struct TwoLevels {
    std::size_t place = 0;  // first point of the second level
    double size = 0;        // the second level less the first
    double noise = 0;       // sd of the points around their levels
    double squares = 0;     // sum of the squared distances of the points from their levels
  };

  [[nodiscard]] std::size_t night() const { return values_.size() - 1; }
  void revise_last_alert();
  [[nodiscard]] TwoLevels find_two_levels() const;
  [[nodiscard]] bool find_early_step();
  [[nodiscard]] bool is_early_step(const Explanation& change, const TwoLevels& levels) const;
  void add_early_step(const TwoLevels& levels, double excess);
  void find_change();
  void fit();
  void test_slope();
  void add_to_regime(Alert::Kind kind, std::size_t place);
  [[nodiscard]] const NightFit& find_fit_before(std::size_t place) const;
  [[nodiscard]] Explanation explain(const NightFit& fit, std::size_t place) const;
  void fit_initially(NightFit& fit) const;
  void reweight(NightFit& fit, double scale) const;
  void compute_residuals(const NightFit& fit) const;
  void predict_errors(const NightFit& fit, std::size_t first, std::size_t count) const;

  double offset_;
  std::vector<double> values_;
  std::vector<NightFit>
      fits_;  // by night, the last k_stored_nights; terms is 0 where there is none
  std::vector<Alert> alerts_;
  Regime regime_;
  std::size_t last_alert_ = 0;  // its night; 0: none

  // The state before the last alert, while its kind may still change.
  struct RevisableAlert {
    NightFit fit;
    Regime before;
    std::size_t place = 0;
  };
  std::optional<RevisableAlert> revisable_alert_;
  // Buffers that every night uses again, so that none allocates.
  mutable std::vector<double> residuals_, errors_, weights_, sorted_;
};

}  // namespace weir::stats
