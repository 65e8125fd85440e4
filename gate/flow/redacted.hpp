// Hides private names in everything that leaves weir: verdicts, calibrations, profiles, progress,
// errors. Works on copies: judging, the journal and baselines use the true names.
#pragma once

#include "gate/base/result.hpp"
#include "gate/config/redactor.hpp"
#include "gate/explain/compare.hpp"
#include "gate/explain/explain.hpp"
#include "gate/run/progress.hpp"
#include "gate/verdict/calibration.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::flow {
[[nodiscard]] verdict::GateVerdict redacted(verdict::GateVerdict verdict,
                                            const config::Redactor& redactor);
[[nodiscard]] profile::Profile redacted(profile::Profile profile, const config::Redactor& redactor);
[[nodiscard]] verdict::Calibration redacted(verdict::Calibration calibration,
                                            const config::Redactor& redactor);
[[nodiscard]] explain::Explanation redacted(explain::Explanation why,
                                            const config::Redactor& redactor);
[[nodiscard]] explain::Comparison redacted(explain::Comparison comparison,
                                           const config::Redactor& redactor);
void hide(verdict::Proposal& proposal, const config::Redactor& redactor);
[[nodiscard]] Error redacted(Error error, const config::Redactor& redactor);
// Returns redacted() for errors as a function for map_error(). `redactor` is the caller's.
[[nodiscard]] inline auto redacting(const config::Redactor& redactor) {
  return [&redactor](Error error) { return redacted(std::move(error), redactor); };
}

// Passes progress on to `inner` with private names hidden. Both are the caller's. As thread-safe as
// `inner`.
class RedactedProgress final : public run::Progress {
 public:
  RedactedProgress(run::Progress& inner, const config::Redactor& redactor)
      : inner_(inner), redactor_(redactor) {}
  void show(const run::ProgressState& state) override;
  void say(const std::string& line) override { inner_.say(redactor_.text(line)); }
  void finish() override { inner_.finish(); }

 private:
  run::Progress& inner_;
  const config::Redactor& redactor_;
};

}  // namespace weir::flow
