#include "gate/report/document.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

// In the order in which outcomes are declared.
constexpr OutcomeLook k_looks[] = {
    {"FAIL", "1;31", "\u274c", "error", "failure", " broke a limit", 1},
    {"error", "1;35", "\u26a0\ufe0f", "error", "error", " could not be measured", 2},
    {"open", "1;33", "\u2753", "warning", "skipped", " {are} inconclusive", 3},
    {"new", "1;36", "\U0001f195", "warning", "skipped", " {are} new: nothing to judge by", 4},
    {"improved", "1;32", "\u2705", "notice", "", " improved", 0},
    {"accepted", "1;32", "\u2705", "notice", "", " changed as allowed", 0},
    {"pass", "32", "\u2705", "notice", "", "", 0},
    // A circle: what was not measured is not green.
    {"skip", "2", "\u26aa", "notice", "skipped", " cannot be measured on this machine", 5},
    {"info", "2", "\u26aa", "notice", "", "", 0},
};
static_assert(std::size(k_looks) == static_cast<std::size_t>(Outcome::info) + 1);

// Of cells or metrics.
std::size_t count_of(const auto& all, Outcome outcome) {
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const auto& one) { return one.verdict == outcome; }));
}

bool unmeasured(const CellVerdict& cell) {
  return cell.verdict == Outcome::error && !cell.not_compared;
}

// Kernels whose count has the same verdict, and changed.
bool follows_count(const Judgement& one, const CellVerdict& cell) {
  return one.metric.name == verdict::k_kernels &&
         std::ranges::any_of(cell.judgements, [&](const Judgement& count) {
           return adds_up_kernels(cell, count.metric) && count.verdict == one.verdict &&
                  count.baseline != count.current;
         });
}

CellDocument document_of(const CellVerdict& cell, bool to_keep) {
  CellDocument document{&cell, cell_title(cell.cell), cell.reason, {}, {}, {}, {}, {}};
  document.kernels = changed_words(cell.of(verdict::k_kernels).changed);
  document.functions = function_words(cell.functions);
  document.ops = changed_words(cell.of(verdict::k_placement).changed);
  to_keep = to_keep && cell.verdict != Outcome::fail && cell.verdict != Outcome::error;
  for (const Judgement& one : cell.judgements) {
    if (!one.is_metric() && one.verdict == Outcome::info) continue;
    document.rows.push_back({&one, words(one, to_keep), follows_count(one, cell)});
    if (document.reason.empty() && one.is_metric() && one.verdict == cell.verdict) {
      document.reason = one.reason;
    }
  }
  document.passed = count_of(cell.metrics(), Outcome::pass);
  for (const MetricRow& row : document.rows) document.worst_first.push_back(&row);
  // Outcome is declared in order of precedence. What is fine keeps its place after what is not.
  // Counts change with where the work ran.
  const auto rank = [](const MetricRow* row) {
    return std::pair(std::min(row->of->verdict, Outcome::pass),
                     row->of->metric.name != verdict::k_placement);
  };
  std::ranges::stable_sort(document.worst_first, {}, rank);
  return document;
}

}  // namespace

void share(std::vector<Shared>& list, std::string text, const CellDocument& cell) {
  if (text.empty()) return;
  const auto found = std::ranges::find(list, text, &Shared::text);
  if (found == list.end()) {
    list.push_back({std::move(text), {&cell}});
  } else if (found->cells.back() != &cell) {
    found->cells.push_back(&cell);
  }
}

std::string listed(std::vector<std::string> names, std::size_t most) {
  const std::size_t all = names.size();
  names.resize(std::min(all, most));
  return text::join(names) + (all > most ? fmt::format(" and {} more", all - most) : "");
}

const OutcomeLook& look_of(Outcome outcome) { return k_looks[static_cast<std::size_t>(outcome)]; }

Document::Document(const GateVerdict& verdict)
    : gate(verdict),
      headline(report::headline(verdict)),
      rule(short_rule(verdict)),
      beside_base(report::beside_base(verdict)) {
  std::vector<std::string> parts;
  if (gate.verdict == Outcome::fail && gate.unjudged) {  // else it is the headline
    parts.push_back(one_line(*gate.unjudged, 300));
  }
  for (const std::string& part : gate.not_judged) parts.push_back(one_line(part, 200));
  not_judged = text::join(parts);
  base = one_line(gate.base_source, 300);
  const bool named = gate.base_commit && gate.base_commit->size() >= 7 &&
                     base.find(gate.base_commit->substr(0, 7)) != std::string::npos;
  if (gate.base_commit && !named) {
    if (!base.empty()) base += ", ";
    base += "commit " + one_line(*gate.base_commit, 12);
  }
  for (const CellVerdict& cell : gate.cells)
    cells.push_back(document_of(cell, !gate.against && !gate.runs));
  for (const CellDocument& cell : cells) {
    if (cell.of->verdict < Outcome::pass) to_read.push_back(&cell);
  }
  std::ranges::stable_sort(to_read, {}, [](const CellDocument* one) { return one->of->verdict; });
  blocks = blocks_of(to_read, collect<profile::CellKey>(gate.cells, &CellVerdict::cell));
  // Of one verdict, what holds for more cells comes first.
  std::ranges::stable_sort(blocks, {}, [](const Block& one) {
    return std::pair(one.of().verdict, -std::ssize(one.cells));
  });
  find_causes();
}

std::string Document::first_line(std::string_view between) const {
  return not_judged.empty() ? headline : fmt::format("{}{}{}", headline, between, not_judged);
}

std::size_t Document::cells_with(Outcome outcome) const { return count_of(gate.cells, outcome); }

std::vector<Shared> Document::warnings(
    const std::function<bool(const verdict::CellVerdict&)>& of) const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    if (of && !of(*cell.of)) continue;
    for (const std::string& warning : cell.of->warnings) share(out, one_line(warning), cell);
    for (const MetricRow& row : cell.rows) {
      for (const std::string& warning : row.of->warnings) {
        share(out, fmt::format("{}: {}", row.words.label, one_line(warning)), cell);
      }
    }
  }
  return out;
}

std::vector<Shared> Document::notes() const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    for (const std::string& note : cell.of->notes) share(out, one_line(note), cell);
    share(out, judged_by(*cell.of), cell);
  }
  for (const std::string& note : gate.notes) out.push_back({one_line(note), {}});
  return out;
}

std::vector<Shared> Document::other_code() const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    for (const verdict::OtherCode& one : cell.of->of(verdict::k_kernel_code).code) {
      share(out, one_line(fmt::format("{}: {}", one.kernel, one.words())), cell);
    }
  }
  return out;
}

std::vector<Shared> Document::by_reason(Outcome outcome) const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    if (cell.of->verdict != outcome) continue;
    const std::string reason = one_line(cell.reason);
    share(out, reason.empty() ? "no reason given" : reason, cell);
  }
  return out;
}

std::string judged_by(const CellVerdict& cell) {
  if (!cell.base || cell.base->empty() || *cell.base == "same device class") return "";
  return "judged by: " + one_line(*cell.base);
}

// ", 1 cause, 2 changes unexplained"; "" of one cell with one cause.
static std::string causes_of(const GateVerdict& gate) {
  const std::size_t causes = gate.causes.size(), rest = gate.unexplained.size();
  const bool single = causes == 1 && count_of(gate.cells, Outcome::fail) == 1;
  if (gate.verdict != Outcome::fail || causes == 0 || single) return "";
  std::string out = ", " + plural(causes, "cause");
  if (rest > 0) out += fmt::format(", {} unexplained", plural(rest, "change"));
  return out;
}

std::string headline(const GateVerdict& gate) {
  const std::size_t all = gate.cells.size();
  const std::string cells = plural(all, "cell");
  std::string out;
  const std::size_t errors = count_of(gate.cells, Outcome::error);
  if (gate.cells.empty()) {
    out = "no cell was measured";
  } else if (gate.verdict != Outcome::fail && gate.unjudged) {
    out = one_line(*gate.unjudged, 300);
    const auto number = std::ranges::count_if(gate.cells, unmeasured);
    if (number > 0) out += fmt::format("; {} could not be measured", number);
  } else if (const std::string_view did = look_of(gate.verdict).headline; !did.empty()) {
    const std::size_t number = count_of(gate.cells, gate.verdict);
    out = fmt::format("{} of {}", number, cells) +
          fmt::format(fmt::runtime(did), fmt::arg("are", number == 1 ? "is" : "are"));
  } else {
    std::size_t passed = 0;
    for (const CellVerdict& cell : gate.cells) passed += count_of(cell.metrics(), Outcome::pass);
    const std::size_t fine = count_of(gate.cells, Outcome::pass);
    out = fmt::format("{}, {} within limits",
                      fine == all ? cells : fmt::format("{} of {}", fine, cells),
                      plural(passed, "metric"));
  }
  out += causes_of(gate);
  if (gate.verdict == Outcome::fail && errors > 0) {
    out += fmt::format(", {} could not be measured", errors);
  }
  if (gate.exit_code == verdict::ExitCode::interrupted) out += "; interrupted before the end";
  return out;
}

std::string short_rule(const GateVerdict& gate) {
  bool exact = false;
  std::optional<double> least, most;
  for (const CellVerdict& cell : gate.cells) {
    for (const Judgement& metric : cell.metrics()) {
      const verdict::Limit& limit = metric.limit;
      if (limit.mode != verdict::Mode::gate) continue;
      exact = exact || limit.exact;
      if (metric.metric.unit != unit::Unit::tokens_per_second || !limit.max_drop) continue;
      if (!limit.max_drop->amount.relative) continue;
      const double drop = limit.max_drop->amount.value;
      least = std::min(least.value_or(drop), drop);
      most = std::max(most.value_or(drop), drop);
    }
  }
  std::string out = exact ? "counts exact" : "";
  if (least && most) {
    if (!out.empty()) out += ", ";
    out += *least == *most
               ? fmt::format("throughput may drop {}", verdict::show({*most, true}))
               : fmt::format("throughput may drop {} to {}", verdict::show({*least, true}),
                             verdict::show({*most, true}));
  }
  return out;
}

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

namespace {

std::vector<std::string> names_of(const verdict::GateVerdict& gate,
                                  const std::function<bool(const CellVerdict&)>& is) {
  std::vector<std::string> names;
  for (const auto& cell : gate.cells) {
    if (is(cell)) names.push_back(cell.cell.str());
  }
  return names;
}

auto with(Outcome outcome) {
  return [outcome](const CellVerdict& cell) { return cell.verdict == outcome; };
}

// What a shell hands on unchanged, quoted or not.
constexpr std::string_view k_plain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@";

// A name as a pattern that a shell hands on unchanged between single quotes.
std::string as_pattern(std::string_view name, std::size_t most) {
  std::string out;
  for (const char c : name) {
    if (c == '*' || k_plain.find(c) != k_plain.npos) {
      out += c;
    } else if (out.empty() || out.back() != '*') {
      out += '*';
    }
  }
  return clip_middle(out, most, "*");
}

// One word as a shell hands it on; nothing where that cannot be shown in a line.
std::optional<std::string> shell_word(const std::string& word) {
  if (word.empty() || one_line(word, 1000) != word) return std::nullopt;
  return text::shell_word(word);
}

// "--against origin/main", last, for a command takes the rest of the line. False where the words
// cannot be shown.
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

// Counts alone would not show all that failed: times, or a cell whose counts nothing takes.
bool times_failed(const verdict::GateVerdict& gate) {
  for (const auto& cell : gate.cells) {
    if (cell.verdict == Outcome::fail && cell.counts_skipped) return true;
    for (const auto& metric : cell.metrics()) {
      if (metric.verdict == Outcome::fail && metric.metric.kind != unit::Kind::count) return true;
    }
  }
  return false;
}

// Those of `options` that a command takes. False where the words cannot be shown.
bool add_options(Hint& hint, const std::map<std::string, std::string>& options,
                 std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string* value = look_up(options, name);
    if (value == nullptr) continue;
    const auto word = shell_word(*value);
    if (!word) return false;
    hint.words.push_back(fmt::format("{} {}", name, *word));
  }
  return true;
}

// By itself weir explain takes the newest run below weir-out. False where a run cannot be shown.
bool add_run(Hint& hint, const verdict::GateVerdict& gate) {
  if (gate.runs) {
    for (const std::string& run : *gate.runs) {
      const auto word = shell_word(run);
      if (!word) return false;
      hint.words.push_back(*word);
    }
    return gate.runs->size() == 2;
  }
  if (!gate.options.contains("--out") && !gate.options.contains("--from")) return true;
  const auto run = shell_word(gate.run.value_or(""));
  if (run) hint.words.push_back(*run);
  return run.has_value();
}

// False where a pattern would say other cells than these.
bool add_cells(Hint& hint, const verdict::GateVerdict& gate, const std::vector<std::string>& cells,
               std::size_t most) {
  if (cells.size() == gate.cells.size() && !gate.some_cells) return true;
  constexpr std::string_view k_option = "--cell ";
  const std::size_t around = k_option.size() + 2;  // two quotes
  std::vector<std::string> all;
  if (!gate.some_cells) all = names_of(gate, [](const CellVerdict&) { return true; });
  const auto patterns = cell_patterns(cells, all, most > around ? most - around : 1);
  for (const std::string& pattern : patterns) {
    hint.words.push_back(fmt::format("{}'{}'", k_option, pattern));
  }
  return !patterns.empty();
}

// `name` with stars in place of the parts in `stars`, one bit each.
std::string generalised(const std::string& name, unsigned stars) {
  std::vector<std::string> parts = text::split(name, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if ((stars >> i & 1U) != 0) parts[i] = "*";
  }
  // A star crosses '/': of several in a row one is enough.
  const auto both = [](const std::string& one, const std::string& next) {
    return one == "*" && next == "*";
  };
  parts.erase(std::unique(parts.begin(), parts.end(), both), parts.end());
  return text::join(parts, "/");
}

// As --cell does: a prompt without "@d256" stands for each of its depths.
bool selects(const std::string& pattern, const std::string& name) {
  const std::string line = name.substr(0, name.find('@', name.rfind('/') + 1));
  return text::glob_match(pattern, name) || text::glob_match(pattern, line);
}

}  // namespace

std::vector<std::string> cell_patterns(const std::vector<std::string>& wanted,
                                       const std::vector<std::string>& all, std::size_t most) {
  constexpr std::size_t k_by_name = 3, k_most = 12;
  constexpr unsigned k_parts = 4;
  const auto matches = [](const std::vector<std::string>& names, const std::string& pattern) {
    return std::ranges::count_if(names,
                                 [&](const std::string& name) { return selects(pattern, name); });
  };
  std::vector<std::string> out, left = wanted;
  while (!left.empty() && out.size() < k_most) {
    const std::string name = left.front();
    const auto exact = [&](const std::string& pattern) {
      if (all.empty()) return pattern == name;
      return matches(all, pattern) == matches(wanted, pattern);
    };
    std::string best = name;
    for (unsigned stars = 1; wanted.size() > k_by_name && stars < 1U << k_parts; ++stars) {
      const std::string wider = generalised(name, stars);
      if (matches(left, wider) > matches(left, best) && exact(wider)) best = wider;
    }
    std::string shown = as_pattern(best, most);
    if (!exact(shown)) shown = as_pattern(best, best.size());
    if (!exact(shown)) return {};
    std::erase_if(left, [&](const std::string& one) { return selects(shown, one); });
    out.push_back(std::move(shown));
  }
  return left.empty() ? out : std::vector<std::string>{};
}

std::string allowed_ops(const OpsByEngine& ops) {
  constexpr std::size_t k_most = 1000;  // so many ops are no exception to anything
  const auto name = [](const std::string& word) {
    const bool plain =
        text::is_letter(word.front()) && word.find_first_not_of(k_plain) == word.npos;
    return plain ? word : dump_json(Json(word));  // which YAML reads too
  };
  const auto shown = [](const std::string& word) {
    return !word.empty() && one_line(word, 100) == word;
  };
  std::vector<std::string> engines;
  for (const auto& [engine, all] : ops) {
    std::vector<std::string> entries;
    for (const auto& [op, backends] : all) {
      if (!shown(op)) continue;
      const bool one = backends.size() == 1 && shown(*backends.begin());
      const std::string why = fmt::format("\"{}\"", k_ellipsis);
      entries.push_back(fmt::format(
          "{}: {}", name(op),
          one ? fmt::format("{{match: {{backend: {}}}, why: {}}}", name(*backends.begin()), why)
              : why));
    }
    if (entries.empty() || !shown(engine)) continue;
    engines.push_back(
        fmt::format("{}: {{cpu_ops_allowed: {{{}}}}}", name(engine), text::join(entries)));
  }
  const std::string line = fmt::format("engines: {{{}}}", text::join(engines));
  return engines.empty() || line.size() > k_most ? "" : line;
}

std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs, std::size_t most) {
  std::vector<Hint> out;
  const bool fails = gate.verdict == Outcome::fail;
  std::map<std::string, std::string> options = gate.options;
  if (!gate.config.empty() && gate.config != "weir.yaml") options["-c"] = gate.config;
  Hint why{"why", {"weir explain"}};
  if (fails && holds(verbs, "explain") && add_run(why, gate)) out.push_back(std::move(why));
  const bool errors = std::ranges::any_of(gate.cells, unmeasured);
  Hint look{"look", {"weir doctor"}};
  if (errors && holds(verbs, "doctor") && add_options(look, options, {"-c"})) {
    out.push_back(std::move(look));
  }
  Hint again{"again", {"weir gate"}};
  if (fails && !gate.runs && holds(verbs, "gate --counts-only") &&
      add_options(again, options,
                  {"-c", "--baselines", "--out", "--rules-from", "--baselines-ref"})) {
    if (!times_failed(gate)) again.words.emplace_back("--counts-only");
    // More cells than failed do no harm here.
    add_cells(again, gate, names_of(gate, with(Outcome::fail)), most);
    if (add_against(again, gate)) out.push_back(std::move(again));
  }
  OpsByEngine to_allow;
  for (const CellVerdict& cell : gate.cells) {
    if (cell.of(verdict::k_placement).verdict != Outcome::fail) continue;
    for (const std::string& op : cell.not_allowed) {
      to_allow[cell.cell.engine][op].insert(cell.cell.backend);
    }
  }
  if (const std::string line = allowed_ops(to_allow); !line.empty()) {
    out.push_back({"allow", {line}});
  }
  // No comment waives where work ran.
  const bool waivable = std::ranges::any_of(gate.cells, [](const CellVerdict& cell) {
    return cell.verdict == Outcome::fail && cell.of(verdict::k_placement).verdict != Outcome::fail;
  });
  if (waivable && !gate.runs && holds(verbs, "/weir accept"))
    out.push_back({"comment", {"/weir accept CODE REASON"}});
  // Beside a base program or another run nothing that is stored is wrong: there is nothing to
  // accept.
  if (gate.against || gate.runs || !holds(verbs, "baseline accept")) return out;
  // A gate may read a remote's branch; what is accepted goes to the local one.
  if (const auto branch = options.find("--baselines-ref"); branch != options.end()) {
    constexpr std::string_view k_remote = "origin/";
    if (branch->second.starts_with(k_remote)) branch->second.erase(0, k_remote.size());
  }
  const auto accept = [&](std::string what, const std::vector<std::string>& cells) {
    Hint hint{std::move(what), {"weir baseline accept"}};
    if (!add_options(hint, options, {"-c", "--baselines", "--out", "--baselines-ref"})) return;
    if (gate.counts_only) hint.words.emplace_back("--counts-only");
    if (cells.empty() || !add_cells(hint, gate, cells, most)) return;
    if (hint.what == "accept" && fails && holds(verbs, "baseline accept --reason")) {
      hint.words.push_back(fmt::format("--reason '{}'", k_ellipsis));
    }
    out.push_back(std::move(hint));
  };
  // Of work that ran elsewhere no baseline is accepted.
  accept("accept", names_of(gate, [&](const CellVerdict& cell) {
           return cell.verdict == (fails ? Outcome::fail : Outcome::improved) && !cell.elsewhere;
         }));
  // Apart from what changed: storing a first baseline shall not store a regression.
  accept("store", names_of(gate, [](const CellVerdict& cell) {
           return cell.verdict >= Outcome::new_ && !cell.elsewhere &&
                  (cell.verdict == Outcome::new_ || cell.not_compared);
         }));
  return out;
}

}  // namespace weir::report
