// Private names out of everything that leaves weir: verdicts, calibrations, profiles, progress,
// errors. What is hidden is copied; judging, the journal and baselines go by the true names.
#pragma once

#include "gate/base/result.hpp"
#include "gate/config/veil.hpp"
#include "gate/explain/compare.hpp"
#include "gate/explain/explain.hpp"
#include "gate/run/progress.hpp"
#include "gate/verdict/calibration.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::flow {
[[nodiscard]] verdict::GateVerdict veiled(verdict::GateVerdict verdict, const config::Veil& veil);
[[nodiscard]] profile::Profile veiled(profile::Profile profile, const config::Veil& veil);
[[nodiscard]] verdict::Calibration veiled(verdict::Calibration calibration,
                                          const config::Veil& veil);
[[nodiscard]] explain::Explanation veiled(explain::Explanation why, const config::Veil& veil);
[[nodiscard]] explain::Comparison veiled(explain::Comparison comparison, const config::Veil& veil);
[[nodiscard]] Error veiled(Error error, const config::Veil& veil);

// Shows to `inner` what is left; both are the caller's. As thread-safe as `inner`.
class VeiledProgress final : public run::Progress {
 public:
  VeiledProgress(run::Progress& inner, const config::Veil& veil) : inner_(inner), veil_(veil) {}
  void show(const run::ProgressState& state) override;
  void say(const std::string& line) override { inner_.say(veil_.text(line)); }
  void finish() override { inner_.finish(); }

 private:
  run::Progress& inner_;
  const config::Veil& veil_;
};

}  // namespace weir::flow
