#include "gate/flow/veiled.hpp"

#include <algorithm>

namespace weir::flow {
namespace {

void hide(std::string& text, const config::Veil& veil) { text = veil.text(text); }

void hide(std::optional<std::string>& text, const config::Veil& veil) {
  if (text) hide(*text, veil);
}

void hide(std::vector<std::string>& lines, const config::Veil& veil) {
  for (std::string& line : lines) hide(line, veil);
}

// A command with aliases in it is no command: all of it goes.
void hide(verdict::Against& against, const config::Veil& veil) {
  const auto names = [&](const std::string& word) { return veil.text(word) != word; };
  if (names(against.spec) || std::any_of(against.command.begin(), against.command.end(), names)) {
    against = {};
  }
}

void hide(verdict::Finding& finding, const config::Veil& veil) {
  hide(finding.headline, veil);
  hide(finding.lines, veil);
  hide(finding.ops, veil);
  hide(finding.tensors, veil);
}

void hide(verdict::CellVerdict& cell, const config::Veil& veil) {
  cell.cell = veil.cell(std::move(cell.cell));
  hide(cell.reason, veil);
  hide(cell.base, veil);
  for (verdict::MetricVerdict& metric : cell.metrics) {
    hide(metric.reason, veil);
    hide(metric.limit.reason, veil);
    hide(metric.warnings, veil);
  }
  hide(cell.kernels_reason, veil);
  hide(cell.placement_reason, veil);
  hide(cell.stderr_tail, veil);
  hide(cell.warnings, veil);
  hide(cell.notes, veil);
  hide(cell.counts_skipped, veil);
  hide(cell.instructions_skipped, veil);
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
    for (std::string* words : {&one.what, &one.from, &one.to}) hide(*words, veil);
    for (std::string& cell : one.cells) cell = veil.cell_name(cell);
  }
  hide(verdict.not_judged, veil);
  hide(verdict.notes, veil);
  return verdict;
}

profile::Profile veiled(profile::Profile profile, const config::Veil& veil) {
  if (!veil.hides()) return profile;
  profile.cell = veil.cell(std::move(profile.cell));
  for (auto& [name, measured] : profile.metrics) hide(measured.warnings, veil);
  hide(profile.placement.reason, veil);
  hide(profile.work.model, veil);
  hide(profile.provenance.engine_build, veil);
  hide(profile.errors, veil);
  hide(profile.stderr_tail, veil);
  hide(profile.counts_skipped, veil);
  hide(profile.instructions_skipped, veil);
  if (profile.functions) {
    std::map<std::string, Rational> shown;
    for (const auto& [name, count] : profile.functions->counts) shown[veil.text(name)] = count;
    profile.functions->counts = std::move(shown);
  }
  for (profile::ServerFigure& figure : profile.server) hide(figure.name, veil);
  hide(profile.warnings, veil);
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
    hide(side->name, veil);
    hide(side->words, veil);
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
