// Hides private names in verdicts, profiles, explanations and errors. One hide() for each type.
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

void hide(std::vector<verdict::Changed>& changes, const config::Redactor& redactor) {
  for (verdict::Changed& change : changes) hide(change.name, redactor);
}

// Hides private names among those of kernels, ops or functions.
void hide(std::optional<profile::KernelSet>& kernels, const config::Redactor& redactor) {
  if (!kernels) return;
  std::map<std::string, Rational> counts;
  for (const auto& [name, count] : kernels->counts) counts[redactor.text(name)] = count;
  kernels->counts = std::move(counts);
}

// Hides private names in several texts.
template <class... Texts>
void hide_all(const config::Redactor& redactor, Texts&... texts) {
  (hide(texts, redactor), ...);
}

// Drops a whole command if a private name is in it: with an alias it would not run.
void hide(verdict::Against& against, const config::Redactor& redactor) {
  const auto has_private_name = [&](const std::string& word) {
    return redactor.text(word) != word;
  };
  if (has_private_name(against.spec) || std::ranges::any_of(against.command, has_private_name)) {
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

// Hides private names in the verdict on one cell.
void hide(verdict::CellVerdict& cell, const config::Redactor& redactor) {
  cell.cell = redactor.cell(std::move(cell.cell));
  hide_all(redactor, cell.reason, cell.base, cell.not_compared, cell.stderr_tail, cell.warnings,
           cell.notes, cell.counts_skip_reason, cell.instructions_skip_reason,
           cell.host_skip_reason, cell.device_class, cell.device_name);
  for (verdict::Judgement& judgement : cell.judgements) {
    hide_all(redactor, judgement.reason, judgement.limit.reason, judgement.warnings,
             judgement.changed);
    for (verdict::KernelChange& code : judgement.code) hide(code.kernel, redactor);
  }
  for (verdict::Finding& finding : cell.findings) hide(finding, redactor);
  if (cell.twin_check) {
    cell.twin_check->against = redactor.cell(std::move(cell.twin_check->against));
    hide(cell.twin_check->device, redactor);
  }
  // A function without a symbol is named by its library, which may be the engine's program.
  hide(cell.functions, redactor);
  for (profile::ServerFigure& figure : cell.server) hide(figure.name, redactor);
}

}  // namespace

void hide(verdict::Proposal& proposal, const config::Redactor& redactor) {
  hide_all(redactor, proposal.what, proposal.from, proposal.to);
  for (std::string& cell : proposal.cells) cell = redactor.cell_name(cell);
}

// Returns the verdict with private names hidden in all its parts.
verdict::GateVerdict redacted(verdict::GateVerdict verdict, const config::Redactor& redactor) {
  if (!redactor.hides()) return verdict;
  for (verdict::CellVerdict& cell : verdict.cells) hide(cell, redactor);
  for (verdict::Cause& cause : verdict.causes) hide(cause, redactor);
  for (verdict::Unexplained& unexplained : verdict.unexplained) {
    for (std::string& cell : unexplained.cells) cell = redactor.cell_name(cell);
  }
  hide(verdict.base_origin, redactor);
  if (verdict.against) hide(*verdict.against, redactor);
  if (verdict.runs && std::ranges::any_of(*verdict.runs, [&](const std::string& run) {
        return redactor.text(run) != run;
      })) {
    verdict.runs->clear();
  }
  // An option with a private name is emptied: an empty value is not shown.
  for (auto& [name, value] : verdict.options) {
    if (redactor.text(value) != value) value.clear();
  }
  for (verdict::Proposal& proposal : verdict.proposals) hide(proposal, redactor);
  hide_all(redactor, verdict.nothing_judged_reason, verdict.not_judged, verdict.notes);
  for (verdict::NotCompared& not_compared : verdict.not_compared)
    hide(not_compared.reason, redactor);
  return verdict;
}

// Returns the profile with private names hidden. A private cell loses the options of its kernels
// too.
profile::Profile redacted(profile::Profile profile, const config::Redactor& redactor) {
  if (!redactor.hides()) return profile;
  const profile::CellKey true_key = profile.cell;
  profile.cell = redactor.cell(std::move(profile.cell));
  if (true_key != profile.cell) {
    for (auto& [hash, code] : profile.code_facts) code.options.clear();
    profile.work.likely.clear();
  }
  for (auto& [name, measurement] : profile.metrics) hide(measurement.warnings, redactor);
  hide_all(redactor, profile.placement.reason, profile.work.model, profile.provenance.engine_build,
           profile.errors, profile.stderr_tail, profile.counts_skip_reason,
           profile.instructions_skip_reason, profile.host_skip_reason, profile.warnings);
  hide_all(redactor, profile.provenance.device_class, profile.provenance.device_name,
           profile.provenance.probed_device_class, profile.provenance.probed_device_name,
           profile.kernels, profile.graph_ops, profile.functions);
  for (profile::ServerFigure& figure : profile.server) hide(figure.name, redactor);
  return profile;
}

// Returns the calibration with aliases for private cells, also within its sentences.
verdict::Calibration redacted(verdict::Calibration calibration, const config::Redactor& redactor) {
  // Sentences contain names of cells.
  std::vector<std::string*> sentences{&calibration.answer, &calibration.base};
  for (std::string& note : calibration.notes) sentences.push_back(&note);
  for (verdict::CalibratedCell& cell : calibration.cells) {
    const std::string true_name = cell.cell.str();
    cell.cell = redactor.cell(cell.cell);
    const std::string alias = cell.cell.str();
    hide(cell.error, redactor);
    for (std::string* sentence : sentences) {
      for (auto at = sentence->find(true_name); at != std::string::npos;
           at = sentence->find(true_name, at + alias.size())) {
        sentence->replace(at, true_name.size(), alias);
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
  hide(why.warnings, redactor);
  return why;
}

explain::Comparison redacted(explain::Comparison comparison, const config::Redactor& redactor) {
  if (!redactor.hides()) return comparison;
  for (explain::ComparedInput* side : {&comparison.a, &comparison.b}) {
    hide_all(redactor, side->name, side->words);
  }
  for (verdict::Finding& finding : comparison.findings) hide(finding, redactor);
  hide(comparison.warnings, redactor);
  return comparison;
}

Error redacted(Error error, const config::Redactor& redactor) {
  hide(error.message, redactor);
  return error;
}

void RedactedProgress::show(const run::ProgressState& state) {
  run::ProgressState redacted_state = state;
  redacted_state.cell = redactor_.cell_name(state.cell);
  inner_.show(redacted_state);
}

}  // namespace weir::flow
