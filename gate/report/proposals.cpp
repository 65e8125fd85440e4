// Writes the edits of a pull request to the rules that judge it.
#include "gate/report/proposals.hpp"

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

// Returns the line of an edit; names the cell of an edit that is about a single one.
static std::string proposal_line(const verdict::Proposal& proposal) {
  std::string line = proposal.words();
  if (proposal.cells_in_all == 1 && !proposal.cells.empty() &&
      proposal.what.find(proposal.cells.front()) == std::string::npos) {
    line += ", in " + proposal.cells.front();
  }
  return printable_line(line, 400);
}

// Lists proposed edits of rules, at most `max_lines`, under a headline that says how many make a
// rule looser.
ProposalText proposal_text(const verdict::GateVerdict& gate, std::size_t max_lines) {
  ProposalText text;
  if (gate.proposals.empty()) return text;
  std::size_t looser = 0;
  for (const verdict::Proposal& proposal : gate.proposals) {
    if (proposal.effect == verdict::Proposal::Effect::looser) ++looser;
    text.lines.push_back(proposal_line(proposal));
  }
  text.lines = shortened(std::move(text.lines), max_lines);
  text.head = text::plural(gate.proposals.size(), "edit") + " to the rules";
  if (looser > 0) text.head += fmt::format(", {} of them looser", looser);
  if (gate.rules) {
    text.head += fmt::format("; judged by those of {} ({})", printable_line(gate.rules->ref, 100),
                             printable_line(text::short_commit(gate.rules->commit), 10));
  }
  return text;
}

}  // namespace weir::report
