#include "gate/config/rules.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::config {
namespace {

using verdict::Amount;
using verdict::Limit;
using verdict::LimitEntry;
using verdict::MaxChange;
using verdict::Mode;
using verdict::Proposal;
using Effect = Proposal::Effect;

std::string number(double value) { return fmt::format("{:.10g}", value); }

// A setting whose larger value decides less often that something is wrong is looser.
Effect grows(double from, double to, bool more_is_looser) {
  if (from == to) return Effect::changed;
  return (to > from) == more_is_looser ? Effect::looser : Effect::tighter;
}

// One kind of a limit as text, on both sides.
struct Change {
  std::string kind, from, to;
  Effect effect = Effect::changed;
  friend auto operator<=>(const Change&, const Change&) = default;
};

// More room is looser; none at all (absent) the loosest.
void compare(const char* kind, const std::optional<Amount>& from, const std::optional<Amount>& to,
             bool more_is_looser, std::vector<Change>& changes) {
  if (from == to) return;
  const auto shown = [](const std::optional<Amount>& one) {
    return one ? verdict::show(*one) : "";
  };
  const Effect effect = !from ? Effect::tighter
                        : !to ? Effect::looser
                        : from->relative != to->relative
                            ? Effect::changed
                            : grows(from->value, to->value, more_is_looser);
  changes.push_back({kind, shown(from), shown(to), effect});
}

void compare(const char* kind, const std::optional<MaxChange>& from,
             const std::optional<MaxChange>& to, std::vector<Change>& changes) {
  const auto amount = [](const auto& one) {
    return one ? std::optional(one->amount) : std::nullopt;
  };
  compare(kind, amount(from), amount(to), true, changes);
  // Half of the amount unless it is said: that it moved along says nothing more.
  if (!from || !to || amount(from) != amount(to)) return;
  compare("tolerate", from->tolerate, to->tolerate, true, changes);
}

std::vector<Change> changes_of(const Limit& from, const Limit& to) {
  std::vector<Change> changes;
  if (from.exact != to.exact) {
    const auto shown = [](bool exact) { return exact ? "exact" : "not exact"; };
    changes.push_back(
        {"", shown(from.exact), shown(to.exact), to.exact ? Effect::tighter : Effect::looser});
  }
  compare("max_drop", from.max_drop, to.max_drop, changes);
  compare("max_increase", from.max_increase, to.max_increase, changes);
  compare("max_decrease", from.max_decrease, to.max_decrease, changes);
  compare("max", from.max, to.max, true, changes);
  compare("min", from.min, to.min, false, changes);
  // What holds nothing is not gated whatever its mode.
  if (from.mode != to.mode && (from.any() || to.any())) {
    changes.push_back({"mode", std::string(verdict::to_string(from.mode)),
                       std::string(verdict::to_string(to.mode)),
                       to.mode > from.mode ? Effect::looser : Effect::tighter});
  }
  return changes;
}

bool same(const LimitEntry& a, const LimitEntry& b) {
  const auto judged = [](const LimitEntry& one) {
    return std::tie(one.match, one.metrics, one.exact, one.max_drop, one.max_increase,
                    one.max_decrease, one.tolerate, one.max, one.min, one.mode);
  };
  return judged(a) == judged(b);
}

// Entries that are put off, by what they are about.
void later(const std::vector<LimitEntry>& base, const std::vector<LimitEntry>& head,
           std::vector<Proposal>& proposals) {
  for (const LimitEntry& after : head) {
    for (const LimitEntry& before : base) {
      if (!same(before, after) || before.until == after.until) continue;
      const bool longer = !after.until || (before.until && *after.until > *before.until);
      const bool loosens = after.mode.value_or(Mode::gate) != Mode::gate;
      proposals.push_back(
          {fmt::format("until of the limit of {}",
                       after.metrics.empty() ? "every metric" : text::join(after.metrics)),
           before.until.value_or(""), after.until.value_or(""),
           longer == loosens ? Effect::looser : Effect::tighter});
    }
  }
}

// What other limits would change, told by what they mean for each cell and metric rather than by
// the lines they are written in: an entry that overrides nothing changes nothing.
void compare_limits(const std::vector<profile::CellKey>& cells,
                    const std::vector<unit::Metric>& metrics, const std::vector<LimitEntry>& base,
                    const std::vector<LimitEntry>& head, std::vector<Proposal>& proposals) {
  later(base, head, proposals);
  if (std::ranges::equal(base, head, same)) return;
  // (what changes, in which cells) -> metrics that change alike
  std::map<std::pair<std::string, Change>, std::vector<std::string>> of_metric;
  const auto note = [&](const profile::CellKey& cell, const std::string& name, const Limit& before,
                        const Limit& after) {
    for (Change& change : changes_of(before, after)) {
      of_metric[{name, std::move(change)}].push_back(cell.str());
    }
  };
  for (const profile::CellKey& cell : cells) {
    for (const unit::Metric& metric : metrics) {
      note(cell, metric.name, verdict::resolve_limit(cell, metric, base),
           verdict::resolve_limit(cell, metric, head));
    }
    for (const char* name : verdict::k_specials) {
      note(cell, name, verdict::resolve_special(cell, name, base),
           verdict::resolve_special(cell, name, head));
    }
  }
  std::map<std::pair<Change, std::vector<std::string>>, std::vector<std::string>> alike;
  for (auto& [what, names] : of_metric) {
    alike[{what.second, std::move(names)}].push_back(what.first);
  }
  for (const auto& [what, of] : alike) {
    const Change& change = what.first;
    proposals
        .emplace_back(Proposal{fmt::format("{} of {}", change.kind.empty() ? "limit" : change.kind,
                                           verdict::some_of(of)),
                               change.from, change.to, change.effect})
        .about(what.second);
  }
}

// What counts a cell, or reads a number of it.
std::set<std::string> sources_of(const Cell& cell, const ProbeDevices& sees) {
  std::set<std::string> sources;
  for (const std::string& probe : cell.engine->probes) {
    const auto* devices = look_up(sees, probe);
    if (devices != nullptr && holds(*devices, cell.device)) sources.insert("probe " + probe);
  }
  if (cell.engine->reports_counts()) sources.insert("counts of output " + cell.engine->output);
  for (const ValueRule& rule : cell.engine->generic.values) sources.insert(rule.metric);
  return sources;
}

std::string device_of(const Cell& cell) {
  if (!cell.twin) return cell.device;
  const std::string twin = fmt::format("{} twin {}", cell.device, *cell.twin);
  return cell.twin_devices == 1 ? twin : fmt::format("{} x{}", twin, cell.twin_devices);
}

// What of a cell is another, by the names of its parts.
std::vector<std::string> differing(const Cell& before, const Cell& after) {
  std::vector<std::string> differ;
  for (const auto& [part, text] : before.identity) {  // the same parts on both sides
    if (after.identity.at(part) != text) differ.push_back(part);
  }
  if (before.model_path != after.model_path) differ.emplace_back("model");
  return differ;
}

// By contents: names aside.
bool measured_alike(const Cell& before, const Cell& after) {
  const EngineSettings &a = *before.engine, &b = *after.engine;
  return device_of(before) == device_of(after) && differing(before, after).empty() &&
         (a.name == b.name || (a.command == b.command && a.output == b.output &&
                               a.server.has_value() == b.server.has_value()));
}

class Rules {
 public:
  Rules(const Settings& base, const Matrix& base_cells, const Settings& head,
        const Matrix& head_cells, const ProbeDevices& sees)
      : base_(base), head_(head), sees_(sees) {
    for (const Cell& cell : base_cells.cells) before_.emplace(cell.key.str(), &cell);
    for (const Cell& cell : head_cells.cells) {
      after_.emplace(cell.key.str(), &cell);
      cells_.push_back(cell.key);
    }
    for (const Cell& cell : base_cells.cells) find(cell);
    hold_limits();
  }

  Edits all() {
    std::vector<std::string> removed;
    for (const verdict::HeldCell& held : edits_.cells) {
      if (held.now.empty()) removed.push_back(held.cell);
    }
    if (!removed.empty()) {
      add("cells that are not measured any more",
          fmt::format("{} of {}", removed.size(), before_.size()), "", Effect::looser, true)
          .about(removed);
    }
    cells();
    for (const EngineSettings& engine : base_.engines) {
      if (const EngineSettings* now = find_named(head_.engines, engine.name)) engines(engine, *now);
    }
    for (const EngineSettings& engine : head_.engines) {
      if (find_named(base_.engines, engine.name) == nullptr) {
        allowed(engine.name, {}, engine.cpu_ops_allowed, true);
      }
    }
    compare_limits(cells_, metrics(), base_.limits, head_.limits, edits_.proposals);
    gate();
    edits_.proposals = verdict::in_order(std::move(edits_.proposals));
    return std::move(edits_);
  }

 private:
  Proposal& add(std::string what, std::string from, std::string to, Effect effect,
                bool holds = false) {
    return edits_.proposals.emplace_back(
        Proposal{std::move(what), std::move(from), std::move(to), effect, holds});
  }

  // What became of a cell of the base.
  void find(const Cell& before) {
    verdict::HeldCell& held = edits_.cells.emplace_back(verdict::HeldCell{before.key.str()});
    auto found = after_.find(held.cell);
    if (found == after_.end()) {
      found = std::ranges::find_if(after_, [&](const auto& after) {
        return !before_.contains(after.first) && !renamed_.contains(after.first) &&
               measured_alike(before, *after.second);
      });
      if (found == after_.end()) return;
      renamed_.insert(found->first);
    }
    const Cell& after = *found->second;
    held.now = found->first;
    std::vector<std::string> differ = differing(before, after);
    if (device_of(before) != device_of(after)) differ.emplace_back("device");
    held.changed = text::join(differ);
    const auto had = sources_of(before, sees_), has = sources_of(after, sees_);
    std::vector<std::string> lost;
    std::ranges::set_difference(had, has, std::back_inserter(lost));
    held.lost = text::join(lost);
  }

  // Limits that hold cells which are gone, and no other: each told with these.
  void hold_limits() {
    for (const LimitEntry& entry : base_.limits) {
      std::vector<verdict::HeldCell*> gone;
      bool left =
          std::ranges::any_of(cells_, [&](const auto& key) { return entry.match.fits(key); });
      for (verdict::HeldCell& held : edits_.cells) {
        if (!entry.match.fits(before_.at(held.cell)->key)) continue;
        if (held.now.empty()) {
          gone.push_back(&held);
        } else {
          left = true;
        }
      }
      for (verdict::HeldCell* held : gone) {
        if (!left) held->limits.push_back(entry.source);
      }
    }
  }

  // Cells of one name that are measured otherwise: what is stored of them says nothing any more.
  void cells() {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> devices;
    std::map<std::string, std::vector<std::string>> parts;
    std::vector<std::string> passed;
    for (const auto& [name, before] : before_) {
      if (!after_.contains(name)) continue;
      const Cell& after = *after_.at(name);
      if (device_of(*before) != device_of(after)) {
        devices[{device_of(*before), device_of(after)}].push_back(name);
      }
      const std::vector<std::string> differ = differing(*before, after);
      if (!differ.empty()) parts[text::join(differ, " and ")].push_back(name);
      if (before->passed != after.passed) passed.push_back(name);
    }
    if (!passed.empty()) {
      add("variables passed through to cells", "", "", Effect::changed, true).about(passed);
    }
    for (const auto& [change, names] : devices) {
      add("the device of cells", change.first, change.second, Effect::looser, true).about(names);
    }
    for (const auto& [what, names] : parts) {
      add(what + " of cells, for which stored baselines say nothing then", "", "", Effect::looser,
          true)
          .about(names);
    }
  }

  void engines(const EngineSettings& before, const EngineSettings& after) {
    const std::string of = " of engine " + before.name;
    allowed(before.name, before.cpu_ops_allowed, after.cpu_ops_allowed, false);
    const auto list = [](const std::vector<std::string>& names) {
      return names.empty() ? std::string("none") : text::join(names);
    };
    const std::set<std::string> had(before.probes.begin(), before.probes.end());
    const std::set<std::string> has(after.probes.begin(), after.probes.end());
    if (had != has) {
      const bool lost = !std::includes(has.begin(), has.end(), had.begin(), had.end());
      add("probes" + of, list(before.probes), list(after.probes),
          lost ? Effect::looser : Effect::tighter, true);
    }
    if (before.output != after.output) {
      add("output" + of, before.output, after.output, Effect::changed, true);
    }
    if (before.timeout_seconds != after.timeout_seconds) {
      add("timeout" + of, unit::show_duration(before.timeout_seconds),
          unit::show_duration(after.timeout_seconds),
          grows(before.timeout_seconds, after.timeout_seconds, true), true);
    }
    for (const auto& [what, same] :
         {std::pair{"command", before.command == after.command},
          {"build", before.build == after.build},
          {"profile_args", before.profile_args == after.profile_args},
          {"counted_env", before.counted_env == after.counted_env},
          {"kernel_names", before.kernel_names == after.kernel_names},
          {"cuda_code", before.cuda_code == after.cuda_code},
          {"instructions", before.instructions == after.instructions},
          {"metrics read from the output", same_rules(before.generic, after.generic)},
          {"the way of asking", asked(before.server) == asked(after.server)}}) {
      if (!same) add(what + of, "", "", Effect::changed, true);
    }
  }

  // When it is up says nothing of what is measured of it.
  static bool same_rules(const GenericOutput& a, const GenericOutput& b) {
    const auto parts = [](const ValueRule& one) {
      const unit::Scale scale = one.scale.value_or(unit::Scale{});
      return std::tuple(one.metric, one.regex, one.pointer, one.stream, one.pick, one.custom,
                        one.scale.has_value(), scale.unit, scale.factor);
    };
    return std::ranges::equal(a.values, b.values, {}, parts, parts) &&
           std::ranges::equal(a.facts, b.facts, {}, parts, parts);
  }

  static std::optional<ServerSettings> asked(std::optional<ServerSettings> server) {
    if (!server) return server;
    server->ready_url = server->ready_line = server->metrics = "";
    server->ready_seconds = 0;
    return server;
  }

  void allowed(const std::string& engine, const std::vector<CpuOp>& before,
               const std::vector<CpuOp>& after, bool holds) {
    // Reasons may be worded anew.
    const auto has = [](const std::vector<CpuOp>& ops, CpuOp op) {
      return std::ranges::any_of(ops, [&](const CpuOp& one) {
        op.why = one.why;
        return op == one;
      });
    };
    const auto what = [&](const CpuOp& op) {
      std::string words = fmt::format("cpu_ops_allowed of engine {}: {}", engine, op.op);
      if (!op.when.empty()) words += " where " + op.when;
      const std::pair<const char*, const std::string&> parts[] = {{"engine", op.match.engine},
                                                                  {"model", op.match.model},
                                                                  {"backend", op.match.backend},
                                                                  {"prompt", op.match.prompt},
                                                                  {"variant", op.match.variant}};
      for (const auto& [part, glob] : parts) {
        if (!glob.empty()) words += fmt::format(", {} {}", part, glob);
      }
      return words;
    };
    for (const CpuOp& op : after) {
      if (!has(before, op)) add(what(op), "", "\"" + op.why + "\"", Effect::looser, holds);
    }
    for (const CpuOp& op : before) {
      if (!has(after, op)) add(what(op), "\"" + op.why + "\"", "", Effect::tighter, holds);
    }
  }

  // Every metric that a limit could be about.
  [[nodiscard]] std::vector<unit::Metric> metrics() const {
    std::vector<unit::Metric> all;
    std::set<std::string> seen;
    const auto add_one = [&](const std::string& name, const std::optional<unit::Metric>& metric) {
      if (metric && seen.insert(name).second) all.push_back(*metric);
    };
    for (const std::string& name : unit::metric_names()) add_one(name, unit::find_metric(name));
    for (const Settings* side : {&base_, &head_}) {
      for (const LimitEntry& entry : side->limits) {
        for (const std::string& pattern : entry.metrics) {
          if (unit::names_work(pattern)) add_one(pattern, unit::find_metric(pattern));
        }
      }
    }
    for (const EngineSettings& engine : head_.engines) {
      for (const ValueRule& rule : engine.generic.values) add_one(rule.metric, rule.custom);
    }
    return all;
  }

  void gate() {
    const GateSettings &a = base_.gate, &b = head_.gate;
    const auto one = [&](const char* name, const std::string& from, const std::string& to,
                         Effect effect) {
      if (from != to) add(fmt::format("gate.{}", name), from, to, effect);
    };
    const auto amount = [&](const char* name, auto from, auto to, bool more_is_looser,
                            std::string (*shown)(double) = number) {
      if (from == to) return;
      const auto before = static_cast<double>(from), after = static_cast<double>(to);
      add(fmt::format("gate.{}", name), shown(before), shown(after),
          grows(before, after, more_is_looser));
    };
    const auto flag = [&](const char* name, bool from, bool to, bool on_is_looser,
                          const char* off = "off", const char* on = "on") {
      one(name, from ? on : off, to ? on : off, grows(from, to, on_is_looser));
    };
    // Fewer false alarms take more evidence before anything fails.
    amount("false_alarm", a.false_alarm, b.false_alarm, false);
    amount("missed", a.missed, b.missed, true);
    amount("stored_level", a.stored_level, b.stored_level, false);
    flag("strict", a.strict, b.strict, true);
    amount("budget", a.budget_seconds, b.budget_seconds, false, unit::show_duration);
    amount("runs", a.runs, b.runs, false);
    one("repeats", number(static_cast<double>(a.repeats)), number(static_cast<double>(b.repeats)),
        Effect::changed);
    flag("on_inconclusive", a.fail_on_inconclusive, b.fail_on_inconclusive, false, "warn", "fail");
    flag("on_removed", a.fail_on_removed, b.fail_on_removed, false, "warn", "fail");
    one("comment", std::string(name_of(verdict::k_comments, a.comment)),
        std::string(name_of(verdict::k_comments, b.comment)), Effect::changed);
    flag("accept_own", a.accept_own, b.accept_own, true);
    flag("confirm", a.confirms, b.confirms, true);
    one("confirm", a.confirm.value_or(""), b.confirm.value_or(""), Effect::changed);
    one("reference", a.reference.value_or(""), b.reference.value_or(""), Effect::changed);
  }

  const Settings& base_;
  const Settings& head_;
  const ProbeDevices& sees_;
  std::map<std::string, const Cell*> before_, after_;
  std::set<std::string> renamed_;  // of after_
  std::vector<profile::CellKey> cells_;
  Edits edits_;
};

}  // namespace

void take_rules(const Settings& base, Settings& head) {
  head.limits = base.limits;
  head.gate = base.gate;
  head.rules_from_elsewhere = true;
  for (EngineSettings& engine : head.engines) {
    if (const EngineSettings* before = find_named(base.engines, engine.name)) {
      engine.cpu_ops_allowed = before->cpu_ops_allowed;
    }
  }
}

Edits compare_rules(const Settings& base, const Matrix& base_cells, const Settings& head,
                    const Matrix& head_cells, const ProbeDevices& sees) {
  return Rules(base, base_cells, head, head_cells, sees).all();
}

std::vector<std::string> drop_expired(Settings& base, const std::string& today) {
  std::vector<std::string> words;
  std::erase_if(base.limits, [&](const verdict::LimitEntry& entry) {
    const bool over = entry.until && *entry.until < today &&
                      entry.mode.value_or(verdict::Mode::gate) != verdict::Mode::gate;
    if (over) {
      words.push_back(
          fmt::format("{}: until {}, which is over: it holds no more", entry.source, *entry.until));
    }
    return over;
  });
  return words;
}

}  // namespace weir::config
