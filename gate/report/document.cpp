#include "gate/report/document.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

namespace {

// With the cell's name where it is about one, which `what` does not name already.
std::string line_of(const verdict::Proposal& proposal) {
  std::string line = proposal.words();
  if (proposal.cells_in_all == 1 && !proposal.cells.empty() &&
      proposal.what.find(proposal.cells.front()) == std::string::npos) {
    line += ", in " + proposal.cells.front();
  }
  return one_line(line, 400);
}

}  // namespace

ProposalWords proposal_words(const verdict::GateVerdict& gate, std::size_t most) {
  ProposalWords words;
  if (gate.proposals.empty()) return words;
  std::size_t looser = 0;
  for (const verdict::Proposal& one : gate.proposals) {
    looser += one.effect == verdict::Proposal::Effect::looser ? 1 : 0;
    if (words.lines.size() < most) words.lines.push_back(line_of(one));
  }
  if (gate.proposals.size() > most) {
    words.lines.push_back(fmt::format("and {} more", gate.proposals.size() - most));
  }
  words.head = plural(gate.proposals.size(), "edit") + " to the rules";
  if (looser > 0) words.head += fmt::format(", {} of them looser", looser);
  if (gate.rules) {
    words.head += fmt::format("; judged by those of {} ({})", one_line(gate.rules->ref, 100),
                              one_line(gate.rules->commit.substr(0, 7), 10));
  }
  return words;
}

using verdict::Outcome;

namespace {

bool has(const Verbs& verbs, std::string_view verb) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

std::vector<std::string> names_of(const verdict::GateVerdict& gate, Outcome outcome) {
  std::vector<std::string> names;
  for (const auto& cell : gate.cells) {
    if (cell.verdict == outcome) names.push_back(cell.cell.str());
  }
  return names;
}

// A name as a pattern that a shell hands on unchanged between single quotes.
std::string as_pattern(std::string_view name, std::size_t most) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-' || c == '/' || c == '@' || c == '*';
    if (plain) {
      out += c;
    } else if (out.empty() || out.back() != '*') {
      out += '*';
    }
  }
  return clip_middle(out, most, "*");
}

// One word as a shell hands it on; nothing where that can not be shown in a line.
std::optional<std::string> shell_word(const std::string& word) {
  if (word.empty() || one_line(word, 1000) != word) return std::nullopt;
  return text::shell_word(word);
}

// "--against origin/main", last, for a command takes the rest of the line. False where the words
// can not be shown.
bool add_against(Hint& hint, const verdict::GateVerdict& gate) {
  if (!gate.against) return true;
  if (gate.against->command.empty()) {
    const auto spec = shell_word(gate.against->spec);
    if (spec) hint.words.push_back("--against " + *spec);
    return spec.has_value();
  }
  hint.words.emplace_back("--against --");
  for (const std::string& word : gate.against->command) {
    const auto quoted = shell_word(word);
    if (!quoted) return false;
    hint.words.push_back(*quoted);
  }
  return true;
}

// Counts alone would not show all that failed.
bool times_failed(const verdict::GateVerdict& gate) {
  for (const auto& cell : gate.cells) {
    for (const auto& metric : cell.metrics) {
      if (metric.verdict == Outcome::fail && metric.metric.kind != unit::Kind::count) return true;
    }
  }
  return false;
}

// "-c FILE" where it is not the default one; left out where a shell would read the name otherwise.
void add_config(Hint& hint, const verdict::GateVerdict& gate) {
  const bool plain = gate.config.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@") ==
                     std::string::npos;
  if (plain && !gate.config.empty() && gate.config != "weir.yaml") {
    hint.words.push_back("-c " + gate.config);
  }
}

void add_cells(Hint& hint, const std::vector<std::string>& cells, std::size_t most) {
  constexpr std::string_view k_option = "--cell ";
  const std::size_t around = k_option.size() + 2;  // two quotes
  for (const std::string& pattern : cell_patterns(cells, most > around ? most - around : 1)) {
    hint.words.push_back(fmt::format("{}'{}'", k_option, pattern));
  }
}

}  // namespace

std::vector<std::string> cell_patterns(const std::vector<std::string>& cells, std::size_t most) {
  constexpr std::size_t k_by_name = 3;
  std::vector<std::string> out;
  if (cells.size() <= k_by_name) {
    for (const std::string& cell : cells) out.push_back(as_pattern(cell, most));
    return out;
  }
  // Part by part, what all have alike: "llama.cpp/*/vulkan/*".
  std::vector<std::string> shared = text::split(cells.front(), '/');
  for (const std::string& cell : cells) {
    const std::vector<std::string> parts = text::split(cell, '/');
    if (parts.size() != shared.size()) shared.assign(1, "*");
    for (std::size_t i = 0; i < shared.size(); ++i) {
      if (i >= parts.size() || parts[i] != shared[i]) shared[i] = "*";
    }
  }
  // A star crosses '/': of several in a row one is enough.
  const auto both = [](const std::string& one, const std::string& next) {
    return one == "*" && next == "*";
  };
  shared.erase(std::unique(shared.begin(), shared.end(), both), shared.end());
  out.push_back(as_pattern(text::join(shared, "/"), most));
  return out;
}

std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs, std::size_t most) {
  std::vector<Hint> out;
  const bool fails = gate.verdict == Outcome::fail;
  if (fails && has(verbs, "explain")) out.push_back({"why", {"weir explain"}});
  const bool errors = !names_of(gate, Outcome::error).empty();
  if (errors && has(verbs, "doctor")) out.push_back({"look", {"weir doctor"}});
  if (fails && has(verbs, "gate --counts-only")) {
    Hint again{"again", {"weir gate"}};
    add_config(again, gate);
    if (!times_failed(gate)) again.words.emplace_back("--counts-only");
    add_cells(again, names_of(gate, Outcome::fail), most);
    if (add_against(again, gate)) out.push_back(std::move(again));
  }
  if (fails && has(verbs, "/weir accept")) out.push_back({"comment", {"/weir accept REASON"}});
  // Beside a base program nothing that is stored is wrong: there is nothing to accept.
  const bool to_accept = !gate.against && (fails || gate.verdict == Outcome::fresh ||
                                           gate.verdict == Outcome::improved);
  if (to_accept && has(verbs, "baseline accept")) {
    Hint accept{"accept", {"weir baseline accept"}};
    add_config(accept, gate);
    const auto cells = names_of(gate, gate.verdict);
    if (cells.size() < gate.cells.size() || gate.some_cells) add_cells(accept, cells, most);
    if (fails && has(verbs, "baseline accept --reason")) {
      accept.words.push_back(fmt::format("--reason '{}'", k_ellipsis));
    }
    out.push_back(std::move(accept));
  }
  return out;
}

}  // namespace weir::report
