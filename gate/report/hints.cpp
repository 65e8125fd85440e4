#include "gate/report/hints.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/words.hpp"

namespace weir::report {

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
