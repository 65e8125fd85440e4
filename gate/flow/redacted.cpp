#include "gate/flow/redacted.hpp"

namespace weir::flow {
namespace {

void hide(std::string& text, const config::Redactor& redactor) { text = redactor.text(text); }

void hide(std::optional<std::string>& text, const config::Redactor& redactor) {
  if (text) hide(*text, redactor);
}

void hide(std::vector<std::string>& lines, const config::Redactor& redactor) {
  for (std::string& line : lines) hide(line, redactor);
}

// Several of them.
template <class... Texts>
void hide_all(const config::Redactor& redactor, Texts&... texts) {
  (hide(texts, redactor), ...);
}

// A command with aliases in it is no command: all of it goes.
void hide(verdict::Against& against, const config::Redactor& redactor) {
  const auto names = [&](const std::string& word) { return redactor.text(word) != word; };
  if (names(against.spec) || std::ranges::any_of(against.command, names)) {
    against = {};
  }
}

void hide(verdict::Finding& finding, const config::Redactor& redactor) {
  hide_all(redactor, finding.headline, finding.lines, finding.ops, finding.tensors);
  for (verdict::FindingNumber& number : finding.numbers) hide(number.name, redactor);
}

void hide(verdict::Cause& cause, const config::Redactor& redactor) {
  hide_all(redactor, cause.headline, cause.ops);
  for (std::string& cell : cause.cells) cell = redactor.cell_name(cell);
}

void hide(verdict::CellVerdict& cell, const config::Redactor& redactor) {
  cell.cell = redactor.cell(std::move(cell.cell));
  hide_all(redactor, cell.reason, cell.base, cell.not_compared, cell.stderr_tail, cell.warnings,
           cell.notes, cell.counts_skipped, cell.instructions_skipped, cell.host_skipped);
  for (verdict::Judgement& one : cell.judgements) {
    hide_all(redactor, one.reason, one.limit.reason, one.warnings);
  }
  for (verdict::Finding& finding : cell.findings) hide(finding, redactor);
  if (cell.twin_check) {
    cell.twin_check->against = redactor.cell(std::move(cell.twin_check->against));
  }
  // Functions without a symbol go by their library, which may be the engine's program.
  for (verdict::Changed& one : cell.functions) hide(one.name, redactor);
  for (profile::ServerFigure& figure : cell.server) hide(figure.name, redactor);
}

}  // namespace

void hide(verdict::Proposal& proposal, const config::Redactor& redactor) {
  hide_all(redactor, proposal.what, proposal.from, proposal.to);
  for (std::string& cell : proposal.cells) cell = redactor.cell_name(cell);
}

verdict::GateVerdict redacted(verdict::GateVerdict verdict, const config::Redactor& redactor) {
  if (!redactor.hides()) return verdict;
  for (verdict::CellVerdict& cell : verdict.cells) hide(cell, redactor);
  for (verdict::Cause& cause : verdict.causes) hide(cause, redactor);
  for (verdict::Unexplained& rest : verdict.unexplained) {
    for (std::string& cell : rest.cells) cell = redactor.cell_name(cell);
  }
  hide(verdict.base_source, redactor);
  if (verdict.against) hide(*verdict.against, redactor);
  if (verdict.runs && std::ranges::any_of(*verdict.runs, [&](const std::string& run) {
        return redactor.text(run) != run;
      })) {
    verdict.runs->clear();
  }
  // Nor is one with an alias in place of a folder: an empty word is not shown.
  for (auto& [name, value] : verdict.options) {
    if (redactor.text(value) != value) value.clear();
  }
  for (verdict::Proposal& one : verdict.proposals) hide(one, redactor);
  hide_all(redactor, verdict.unjudged, verdict.not_judged, verdict.notes);
  for (verdict::NotCompared& one : verdict.not_compared) hide(one.reason, redactor);
  return verdict;
}

profile::Profile redacted(profile::Profile profile, const config::Redactor& redactor) {
  if (!redactor.hides()) return profile;
  const profile::CellKey own = profile.cell;
  profile.cell = redactor.cell(std::move(profile.cell));
  if (own != profile.cell) {
    for (auto& [hash, code] : profile.code_facts) code.options.clear();
    profile.work.likely.clear();
  }
  for (auto& [name, measured] : profile.metrics) hide(measured.warnings, redactor);
  hide_all(redactor, profile.placement.reason, profile.work.model, profile.provenance.engine_build,
           profile.errors, profile.stderr_tail, profile.counts_skipped,
           profile.instructions_skipped, profile.host_skipped, profile.warnings);
  if (profile.functions) {
    std::map<std::string, Rational> shown;
    for (const auto& [name, count] : profile.functions->counts) shown[redactor.text(name)] = count;
    profile.functions->counts = std::move(shown);
  }
  for (profile::ServerFigure& figure : profile.server) hide(figure.name, redactor);
  return profile;
}

verdict::Calibration redacted(verdict::Calibration calibration, const config::Redactor& redactor) {
  // Sentences name cells.
  std::vector<std::string*> sentences{&calibration.answer, &calibration.base};
  for (std::string& note : calibration.notes) sentences.push_back(&note);
  for (verdict::CalibratedCell& cell : calibration.cells) {
    const std::string own = cell.cell.str();
    cell.cell = redactor.cell(cell.cell);
    const std::string shown = cell.cell.str();
    hide(cell.error, redactor);
    for (std::string* sentence : sentences) {
      for (auto at = sentence->find(own); at != std::string::npos;
           at = sentence->find(own, at + shown.size())) {
        sentence->replace(at, own.size(), shown);
      }
    }
  }
  for (std::string* sentence : sentences) hide(*sentence, redactor);
  return calibration;
}

explain::Explanation redacted(explain::Explanation why, const config::Redactor& redactor) {
  if (!redactor.hides()) return why;
  why.cell = redactor.cell_name(why.cell);
  for (verdict::Finding& finding : why.findings) hide(finding, redactor);
  for (explain::Hint& hint : why.hints) hide(hint.text, redactor);
  for (explain::Check& check : why.checklist) hide(check.note, redactor);
  hide(why.doubts, redactor);
  return why;
}

explain::Comparison redacted(explain::Comparison comparison, const config::Redactor& redactor) {
  if (!redactor.hides()) return comparison;
  for (explain::ComparedInput* side : {&comparison.a, &comparison.b}) {
    hide_all(redactor, side->name, side->words);
  }
  for (verdict::Finding& finding : comparison.findings) hide(finding, redactor);
  hide(comparison.doubts, redactor);
  return comparison;
}

Error redacted(Error error, const config::Redactor& redactor) {
  hide(error.message, redactor);
  return error;
}

void RedactedProgress::show(const run::ProgressState& state) {
  run::ProgressState shown = state;
  shown.cell = redactor_.cell_name(state.cell);
  inner_.show(shown);
}

}  // namespace weir::flow
