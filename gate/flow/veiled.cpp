#include "gate/flow/veiled.hpp"

namespace weir::flow {
namespace {

void hide(std::string& text, const config::Veil& veil) { text = veil.text(text); }

void hide(std::optional<std::string>& text, const config::Veil& veil) {
  if (text) hide(*text, veil);
}

void hide(std::vector<std::string>& lines, const config::Veil& veil) {
  for (std::string& line : lines) hide(line, veil);
}

// Several of them.
template <class... Texts>
void hide_all(const config::Veil& veil, Texts&... texts) {
  (hide(texts, veil), ...);
}

// A command with aliases in it is no command: all of it goes.
void hide(verdict::Against& against, const config::Veil& veil) {
  const auto names = [&](const std::string& word) { return veil.text(word) != word; };
  if (names(against.spec) || std::ranges::any_of(against.command, names)) {
    against = {};
  }
}

void hide(verdict::Finding& finding, const config::Veil& veil) {
  hide_all(veil, finding.headline, finding.lines, finding.ops, finding.tensors);
}

void hide(verdict::CellVerdict& cell, const config::Veil& veil) {
  cell.cell = veil.cell(std::move(cell.cell));
  hide_all(veil, cell.reason, cell.base, cell.kernels_reason, cell.placement_reason,
           cell.stderr_tail, cell.warnings, cell.notes, cell.counts_skipped,
           cell.instructions_skipped);
  for (verdict::MetricVerdict& metric : cell.metrics) {
    hide_all(veil, metric.reason, metric.limit.reason, metric.warnings);
  }
  for (verdict::Finding& finding : cell.findings) hide(finding, veil);
  if (cell.twin_check) {
    cell.twin_check->against = veil.cell(std::move(cell.twin_check->against));
  }
  // Functions without a symbol go by their library, which may be the engine's program.
  for (verdict::Changed& one : cell.functions) hide(one.name, veil);
  for (profile::ServerFigure& figure : cell.server) hide(figure.name, veil);
}

}  // namespace

verdict::GateVerdict veiled(verdict::GateVerdict verdict, const config::Veil& veil) {
  if (!veil.hides()) return verdict;
  for (verdict::CellVerdict& cell : verdict.cells) hide(cell, veil);
  hide(verdict.base_source, veil);
  if (verdict.against) hide(*verdict.against, veil);
  for (verdict::Proposal& one : verdict.proposals) {
    hide_all(veil, one.what, one.from, one.to);
    for (std::string& cell : one.cells) cell = veil.cell_name(cell);
  }
  hide_all(veil, verdict.not_judged, verdict.notes);
  return verdict;
}

profile::Profile veiled(profile::Profile profile, const config::Veil& veil) {
  if (!veil.hides()) return profile;
  profile.cell = veil.cell(std::move(profile.cell));
  for (auto& [name, measured] : profile.metrics) hide(measured.warnings, veil);
  hide_all(veil, profile.placement.reason, profile.work.model, profile.provenance.engine_build,
           profile.errors, profile.stderr_tail, profile.counts_skipped,
           profile.instructions_skipped, profile.warnings);
  if (profile.functions) {
    std::map<std::string, Rational> shown;
    for (const auto& [name, count] : profile.functions->counts) shown[veil.text(name)] = count;
    profile.functions->counts = std::move(shown);
  }
  for (profile::ServerFigure& figure : profile.server) hide(figure.name, veil);
  return profile;
}

verdict::Calibration veiled(verdict::Calibration calibration, const config::Veil& veil) {
  // Sentences name cells.
  std::vector<std::string*> sentences{&calibration.answer, &calibration.base};
  for (std::string& note : calibration.notes) sentences.push_back(&note);
  for (verdict::CalibratedCell& cell : calibration.cells) {
    const std::string own = cell.cell.str();
    cell.cell = veil.cell(cell.cell);
    const std::string shown = cell.cell.str();
    if (cell.error) cell.error = veil.text(*cell.error);
    for (std::string* sentence : sentences) {
      for (auto at = sentence->find(own); at != std::string::npos;
           at = sentence->find(own, at + shown.size())) {
        sentence->replace(at, own.size(), shown);
      }
    }
  }
  for (std::string* sentence : sentences) *sentence = veil.text(*sentence);
  return calibration;
}

explain::Explanation veiled(explain::Explanation why, const config::Veil& veil) {
  if (!veil.hides()) return why;
  why.cell = veil.cell_name(why.cell);
  for (verdict::Finding& finding : why.findings) hide(finding, veil);
  for (explain::Hint& hint : why.hints) hide(hint.text, veil);
  for (explain::Check& check : why.checklist) hide(check.note, veil);
  hide(why.doubts, veil);
  return why;
}

explain::Comparison veiled(explain::Comparison comparison, const config::Veil& veil) {
  if (!veil.hides()) return comparison;
  for (explain::ComparedSide* side : {&comparison.a, &comparison.b}) {
    hide_all(veil, side->name, side->words);
  }
  for (verdict::Finding& finding : comparison.findings) hide(finding, veil);
  hide(comparison.doubts, veil);
  return comparison;
}

Error veiled(Error error, const config::Veil& veil) {
  hide(error.message, veil);
  return error;
}

void VeiledProgress::show(const run::ProgressState& state) {
  run::ProgressState shown = state;
  shown.cell = veil_.cell_name(state.cell);
  inner_.show(shown);
}

}  // namespace weir::flow
