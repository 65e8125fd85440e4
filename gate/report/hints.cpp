// Finds commands that help with a verdict, in a form that can be pasted into a shell.
#include "gate/report/hints.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/report/words.hpp"

namespace weir::report {

namespace {

// Returns the names of the cells that `filter` selects.
std::vector<std::string> cell_names(const verdict::GateVerdict& gate,
                                    const std::function<bool(const CellVerdict&)>& filter) {
  std::vector<std::string> names;
  for (const auto& cell : gate.cells) {
    if (filter(cell)) names.push_back(cell.cell.str());
  }
  return names;
}

// Returns a filter for cells with this outcome.
auto has_outcome(Outcome outcome) {
  return [outcome](const CellVerdict& cell) { return cell.verdict == outcome; };
}

// Characters that a shell passes on unchanged, quoted or not.
constexpr std::string_view k_plain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@";

// Returns a pattern for a name that a shell passes on unchanged between single quotes: other
// characters become "*".
std::string shell_pattern(std::string_view name, std::size_t max_columns) {
  std::string out;
  for (const char c : name) {
    if (c == '*' || k_plain.find(c) != k_plain.npos) {
      out += c;
    } else if (out.empty() || out.back() != '*') {
      out += '*';
    }
  }
  return clip_middle(out, max_columns, "*");
}

// Quotes a word for a shell; nothing if it can't be shown in a line.
std::optional<std::string> shell_word(const std::string& word) {
  if (word.empty() || printable_line(word, 1000) != word) return std::nullopt;
  return text::shell_word(word);
}

// Adds "--against origin/main" or "--against -- COMMAND" to a suggested command. It must come last
// because a command takes the rest of the line. Returns false if it can't be shown.
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

// Returns true if counts alone don't show every failure: a time failed, or a cell without counts.
bool needs_times(const verdict::GateVerdict& gate) {
  for (const auto& cell : gate.cells) {
    if (cell.verdict == Outcome::fail && cell.counts_skip_reason) return true;
    for (const auto& metric : cell.metrics()) {
      if (metric.verdict == Outcome::fail && metric.metric.kind != unit::Kind::count) return true;
    }
  }
  return false;
}

// Adds the options that are in `names` to a suggested command, a repeated one for each of its
// values. Returns false if a value can't be shown.
bool add_options(Hint& hint, const std::map<std::string, std::string>& options,
                 std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string* value = look_up(options, name);
    if (value == nullptr) continue;
    const bool is_repeated =
        name == std::string_view("--merged-pr") || name == std::string_view("--base-pr");
    const auto values = is_repeated ? text::split(*value, ' ') : std::vector<std::string>{*value};
    for (const std::string& one : values) {
      const auto word = shell_word(one);
      if (!word) return false;
      hint.words.push_back(fmt::format("{} {}", name, *word));
    }
  }
  return true;
}

// Adds the gate's runs to a suggested command, unless it is the newest below weir-out, the default.
// Returns false if a run can't be shown.
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

// Adds "--cell 'PATTERN'" for these cells, each at most `max_columns` wide if it can be; nothing
// for all cells. Returns false if patterns would select other cells. A gate of selected cells does
// not know the names of the others, so only whole names are sure to select no other cell.
bool add_cells(Hint& hint, const verdict::GateVerdict& gate, const std::vector<std::string>& cells,
               std::size_t max_columns) {
  if (cells.size() == gate.cells.size() && !gate.is_selection) return true;
  constexpr std::string_view k_option = "--cell ";
  const std::size_t around = k_option.size() + 2;  // two quotes
  std::vector<std::string> all;
  if (!gate.is_selection) all = cell_names(gate, [](const CellVerdict&) { return true; });
  const auto patterns = cell_patterns(cells, all, max_columns > around ? max_columns - around : 1);
  for (const std::string& pattern : patterns) {
    hint.words.push_back(fmt::format("{}'{}'", k_option, pattern));
  }
  return !patterns.empty();
}

// Returns a cell's name with "*" in place of some parts between "/": bit i of `parts_to_replace` is
// part i.
std::string put_stars(const std::string& name, unsigned parts_to_replace) {
  std::vector<std::string> parts = text::split(name, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if ((parts_to_replace >> i & 1U) != 0) parts[i] = "*";
  }
  // A star matches across '/', so one is enough for several parts in a row.
  const auto both_stars = [](const std::string& part, const std::string& next) {
    return part == "*" && next == "*";
  };
  parts.erase(std::unique(parts.begin(), parts.end(), both_stars), parts.end());
  return text::join(parts, "/");
}

// Returns true if --cell selects the name by this pattern: a prompt without "@d256" selects each of
// its depths.
bool pattern_selects(const std::string& pattern, const std::string& name) {
  const std::string line = name.substr(0, name.find('@', name.rfind('/') + 1));
  return text::glob_match(pattern, name) || text::glob_match(pattern, line);
}

// Returns true if an engine failed in the cell, alone or in pairs with its base.
bool has_failed_to_run(const CellVerdict& cell) {
  const bool has_last_words = cell.verdict == Outcome::error && !cell.stderr_tail.empty();
  return is_unmeasured(cell) || has_last_words;
}

}  // namespace

// Returns patterns for --cell that match `wanted` and no other cell: names for a few cells, else
// globs, the widest first. Each is at most `max_columns` wide, unless it then selects other cells.
// Empty if more than 12 patterns are needed. If `all` is empty, only whole names are exact.
std::vector<std::string> cell_patterns(const std::vector<std::string>& wanted,
                                       const std::vector<std::string>& all,
                                       std::size_t max_columns) {
  constexpr std::size_t k_max_names = 3, k_max_patterns = 12;
  constexpr unsigned k_replaceable_parts = 4;
  const auto count_matches = [](const std::vector<std::string>& names, const std::string& pattern) {
    return std::ranges::count_if(
        names, [&](const std::string& name) { return pattern_selects(pattern, name); });
  };
  std::vector<std::string> out, uncovered = wanted;
  while (!uncovered.empty() && out.size() < k_max_patterns) {
    const std::string name = uncovered.front();
    // True if the pattern selects wanted cells only.
    const auto is_exact = [&](const std::string& pattern) {
      if (all.empty()) return pattern == name;
      return count_matches(all, pattern) == count_matches(wanted, pattern);
    };
    std::string best = name;
    // Counts through all sets of parts.
    const unsigned sets = wanted.size() > k_max_names ? 1U << k_replaceable_parts : 0;
    for (unsigned set = 1; set < sets; ++set) {
      const std::string wider = put_stars(name, set);
      if (count_matches(uncovered, wider) > count_matches(uncovered, best) && is_exact(wider))
        best = wider;
    }
    std::string shown = shell_pattern(best, max_columns);
    if (!is_exact(shown)) shown = shell_pattern(best, best.size());
    if (!is_exact(shown)) return {};
    std::erase_if(uncovered, [&](const std::string& cell) { return pattern_selects(shown, cell); });
    out.push_back(std::move(shown));
  }
  return uncovered.empty() ? out : std::vector<std::string>{};
}

// Returns the line of YAML that lets these ops run on the CPU, by engine. "" if it would be too
// long or unclear.
std::string allowed_ops(const OpsByEngine& ops) {
  constexpr std::size_t k_max_line_length = 1000;  // a longer list of ops is no list of exceptions
  const auto yaml_name = [](const std::string& word) {
    const bool is_plain =
        text::is_letter(word.front()) && word.find_first_not_of(k_plain) == word.npos;
    return is_plain ? word : dump_json(Json(word));  // YAML reads JSON too
  };
  const auto can_show = [](const std::string& word) {
    return !word.empty() && printable_line(word, 100) == word;
  };
  std::vector<std::string> engines;
  std::size_t anchors = 0;
  for (const auto& [engine, all] : ops) {
    std::map<std::string, std::vector<std::string>> ops_by_entry;
    for (const auto& [op, backends] : all) {
      if (!can_show(op)) continue;
      std::string entry = fmt::format("\"{}\"", k_ellipsis);  // the reason, for the reader to write
      if (backends.size() == 1 && can_show(*backends.begin())) {
        entry =
            fmt::format("{{match: {{backend: {}}}, why: {}}}", yaml_name(*backends.begin()), entry);
      }
      ops_by_entry[entry].push_back(yaml_name(op));
    }
    // Several ops share one entry by a YAML anchor, so that a reason is written once.
    std::vector<std::string> entries;
    for (const auto& [entry, names] : ops_by_entry) {
      if (names.size() == 1) {
        entries.push_back(fmt::format("{}: {}", names.front(), entry));
        continue;
      }
      ++anchors;
      for (const std::string& op : names) {
        const bool is_first = &op == &names.front();
        entries.push_back(is_first ? fmt::format("{}: &ops{} {}", op, anchors, entry)
                                   : fmt::format("{}: *ops{}", op, anchors));
      }
    }
    if (entries.empty() || !can_show(engine)) continue;
    engines.push_back(
        fmt::format("{}: {{cpu_ops_allowed: {{{}}}}}", yaml_name(engine), text::join(entries)));
  }
  const std::string line = fmt::format("engines: {{{}}}", text::join(engines));
  return engines.empty() || line.size() > k_max_line_length ? "" : line;
}

std::vector<Hint> hints(const verdict::GateVerdict& gate, const Verbs& verbs,
                        std::size_t max_columns) {
  std::vector<Hint> out;
  const bool fails = gate.verdict == Outcome::fail;
  std::map<std::string, std::string> options = gate.options;
  if (!gate.config.empty() && gate.config != "weir.yaml") options["-c"] = gate.config;
  Hint why{"why", {"weir explain"}};
  if (fails && holds(verbs, "explain") && add_run(why, gate)) out.push_back(std::move(why));
  Hint numbers{"numbers", {"weir gate"}};
  const auto run = shell_word(gate.run.value_or(""));
  if (fails && !gate.runs && run && holds(verbs, "gate --from") &&
      add_options(numbers, options,
                  {"--baselines", "--rules-from", "--baselines-ref", "--waivers-ref", "--pr",
                   "--base", "--merged-pr", "--base-pr"})) {
    numbers.words.push_back("--from " + *run);
    numbers.words.emplace_back("--html report.html");
    out.push_back(std::move(numbers));
  }
  // The command of the first cell that could not be measured shows why; others often fail alike.
  const std::vector<std::string> unmeasured = cell_names(gate, has_failed_to_run);
  Hint look{"look", {"weir doctor"}};
  if (!unmeasured.empty() && holds(verbs, "doctor") && add_options(look, options, {"-c"})) {
    look.words.push_back(
        fmt::format("--cell '{}'", shell_pattern(unmeasured.front(), max_columns)));
    out.push_back(std::move(look));
  }
  Hint again{"again", {"weir gate"}};
  if (fails && !gate.runs && holds(verbs, "gate --counts-only") &&
      add_options(again, options,
                  {"-c", "--baselines", "--out", "--rules-from", "--baselines-ref", "--waivers-ref",
                   "--pr", "--base", "--merged-pr", "--base-pr"})) {
    if (!needs_times(gate)) again.words.emplace_back("--counts-only");
    // It does no harm if no pattern fits and all cells run again.
    add_cells(again, gate, cell_names(gate, has_outcome(Outcome::fail)), max_columns);
    if (add_against(again, gate)) out.push_back(std::move(again));
  }
  OpsByEngine to_allow;
  for (const CellVerdict& cell : gate.cells) {
    if (cell.judgement_of(verdict::k_placement).verdict != Outcome::fail) continue;
    for (const std::string& op : cell.not_allowed) {
      to_allow[cell.cell.engine][op].insert(cell.cell.backend);
    }
  }
  if (const std::string line = allowed_ops(to_allow); !line.empty()) {
    out.push_back({"allow", {line}});
  }
  // A comment can't waive a broken placement.
  const bool waivable = std::ranges::any_of(gate.cells, [](const CellVerdict& cell) {
    return cell.verdict == Outcome::fail &&
           cell.judgement_of(verdict::k_placement).verdict != Outcome::fail;
  });
  if (waivable && !gate.runs && holds(verbs, "/weir waive"))
    out.push_back({"comment", {"/weir waive CODE REASON"}});
  // Runs are compared whatever their settings: that shows the cost of a new option.
  const bool has_new_settings = std::ranges::any_of(gate.cells, [](const CellVerdict& cell) {
    return cell.not_compared &&
           cell.not_compared->find(baseline::k_other_settings) != std::string::npos;
  });
  if (has_new_settings && !gate.runs && run && !gate.run.value_or("").empty() &&
      holds(verbs, "compare")) {
    out.push_back({"compare", {"weir compare", "OLD_RUN", *run}});
  }
  // A comparison with a base program or another run leaves stored baselines alone.
  if (gate.against || gate.runs || !holds(verbs, "baseline accept")) return out;
  // A gate may read a remote's branch; accepted baselines go to the local one.
  if (const auto branch = options.find("--baselines-ref"); branch != options.end()) {
    for (const std::string_view remote : {"refs/remotes/origin/", "origin/"}) {
      if (branch->second.starts_with(remote)) branch->second.erase(0, remote.size());
    }
  }
  const auto accept = [&](std::string what, const std::vector<std::string>& cells) {
    Hint hint{std::move(what), {"weir baseline accept"}};
    if (!add_options(hint, options, {"-c", "--baselines", "--out", "--baselines-ref"})) return;
    if (gate.counts_only) hint.words.emplace_back("--counts-only");
    if (cells.empty() || !add_cells(hint, gate, cells, max_columns)) return;
    if (hint.what == "accept" && fails && holds(verbs, "baseline accept --reason")) {
      hint.words.push_back(fmt::format("--reason '{}'", k_ellipsis));
    }
    out.push_back(std::move(hint));
  };
  // No baseline is accepted from work that ran on another device, and none helps against a plain
  // number.
  accept("accept", cell_names(gate, [&](const CellVerdict& cell) {
           return cell.verdict == (fails ? Outcome::fail : Outcome::improved) &&
                  !cell.ran_elsewhere && std::ranges::none_of(cell.judgements, breaks_plain_limit);
         }));
  // A command of its own: storing a first baseline must not store a regression.
  accept("store", cell_names(gate, [](const CellVerdict& cell) {
           return cell.verdict >= Outcome::new_ && !cell.ran_elsewhere &&
                  (cell.verdict == Outcome::new_ || cell.not_compared);
         }));
  return out;
}

}  // namespace weir::report
