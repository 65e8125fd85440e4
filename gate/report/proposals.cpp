#include "gate/report/proposals.hpp"

#include <fmt/format.h>

#include "gate/report/layout.hpp"

namespace weir::report {

// With the cell's name where it is about one, which `what` does not name already.
static std::string line_of(const verdict::Proposal& proposal) {
  std::string line = proposal.words();
  if (proposal.cells_in_all == 1 && !proposal.cells.empty() &&
      proposal.what.find(proposal.cells.front()) == std::string::npos) {
    line += ", in " + proposal.cells.front();
  }
  return one_line(line, 400);
}

ProposalWords proposal_words(const verdict::GateVerdict& gate, std::size_t most) {
  ProposalWords words;
  if (gate.proposals.empty()) return words;
  std::size_t looser = 0;
  for (const verdict::Proposal& one : gate.proposals) {
    looser += one.effect == verdict::Proposal::Effect::looser ? 1 : 0;
    words.lines.push_back(line_of(one));
  }
  words.lines = shortened(std::move(words.lines), most);
  words.head = plural(gate.proposals.size(), "edit") + " to the rules";
  if (looser > 0) words.head += fmt::format(", {} of them looser", looser);
  if (gate.rules) {
    words.head += fmt::format("; judged by those of {} ({})", one_line(gate.rules->ref, 100),
                              one_line(gate.rules->commit.substr(0, 7), 10));
  }
  return words;
}

}  // namespace weir::report
