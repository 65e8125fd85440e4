// Compares the rules of two versions of weir.yaml: limits, gate settings, and what is measured.
#include "gate/config/rules.hpp"

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
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

std::string number_text(double value) { return fmt::format("{:.10g}", value); }

// Returns the effect of a setting that goes from `from` to `to`. `more_is_looser`: larger values
// let more regressions pass.
Effect effect_of_growth(double from, double to, bool more_is_looser) {
  if (from == to) return Effect::changed;
  return (to > from) == more_is_looser ? Effect::looser : Effect::tighter;
}

// A change of one part of a limit ("max_drop", "mode"), with both values as text.
struct Change {
  std::string kind, from, to;
  Effect effect = Effect::changed;
  friend auto operator<=>(const Change&, const Change&) = default;
};

// Returns the effect of replacing the limit `from` by `to`. An absent limit is the loosest.
// An absolute and a relative amount cannot be ordered: `changed`.
Effect effect_of_amounts(const std::optional<Amount>& from, const std::optional<Amount>& to,
                         bool more_is_looser) {
  if (!from) return Effect::tighter;
  if (!to) return Effect::looser;
  if (from->relative != to->relative) return Effect::changed;
  return effect_of_growth(from->value, to->value, more_is_looser);
}

// Adds the change of one amount of a limit to `changes`, if there is one.
void compare_amounts(const char* kind, const std::optional<Amount>& from,
                     const std::optional<Amount>& to, bool more_is_looser,
                     std::vector<Change>& changes) {
  if (from == to) return;
  const auto amount_text = [](const std::optional<Amount>& amount) {
    return amount ? verdict::show(*amount) : "";
  };
  changes.push_back(
      {kind, amount_text(from), amount_text(to), effect_of_amounts(from, to, more_is_looser)});
}

// Adds the changes of `max_drop`, `max_increase` or `max_decrease`, and of its `tolerate`.
void compare_max_change(const char* kind, const std::optional<MaxChange>& from,
                        const std::optional<MaxChange>& to, std::vector<Change>& changes) {
  const auto amount_in = [](const std::optional<MaxChange>& limit) {
    return limit ? std::optional(limit->amount) : std::nullopt;
  };
  compare_amounts(kind, amount_in(from), amount_in(to), /*more_is_looser=*/true, changes);
  // `tolerate` defaults to half of the amount, so it is compared only if the amount stayed.
  if (!from || !to || amount_in(from) != amount_in(to)) return;
  compare_amounts("tolerate", from->tolerate, to->tolerate, /*more_is_looser=*/true, changes);
}

// Moves the kinds of limit that replaced an exact one, or that it replaced, into the exact limit's
// change, which comes first. They would be reported as several edits otherwise.
void join_replaced_kinds(std::vector<Change>& changes) {
  Change& exact = changes.front();
  const bool was_exact = exact.effect == Effect::looser;
  const auto is_replacement = [&](const Change& change) {
    return (was_exact ? change.from : change.to).empty();
  };
  std::vector<std::string> kinds;
  for (const Change& change : std::span(changes).subspan(1)) {
    if (is_replacement(change))
      kinds.push_back(fmt::format("{} {}", change.kind, was_exact ? change.to : change.from));
  }
  if (kinds.empty()) return;
  std::string& replaced = was_exact ? exact.to : exact.from;
  replaced = text::join(kinds);
  changes.erase(std::remove_if(changes.begin() + 1, changes.end(), is_replacement), changes.end());
}

// Returns the parts of a limit that differ, each with its effect: looser or tighter.
std::vector<Change> list_changes(const Limit& from, const Limit& to) {
  std::vector<Change> changes;
  // Under `mode: off` limits on a change do not apply.
  const bool is_off = from.mode == Mode::off || to.mode == Mode::off;
  const bool is_exactness_new = !is_off && from.exact != to.exact;
  if (is_exactness_new) {
    const auto exact_text = [](bool exact) { return exact ? "exact" : "not exact"; };
    changes.push_back({"", exact_text(from.exact), exact_text(to.exact),
                       to.exact ? Effect::tighter : Effect::looser});
  }
  if (!is_off) {
    compare_max_change("max_drop", from.max_drop, to.max_drop, changes);
    compare_max_change("max_increase", from.max_increase, to.max_increase, changes);
    compare_max_change("max_decrease", from.max_decrease, to.max_decrease, changes);
  }
  compare_amounts("max", from.max, to.max, /*more_is_looser=*/true, changes);
  compare_amounts("min", from.min, to.min, /*more_is_looser=*/false, changes);
  if (is_exactness_new) join_replaced_kinds(changes);
  // The mode of a limit that sets nothing has no effect.
  if (from.mode != to.mode && (from.is_set() || to.is_set())) {
    changes.push_back({"mode", std::string(verdict::to_string(from.mode)),
                       std::string(verdict::to_string(to.mode)),
                       to.mode > from.mode ? Effect::looser : Effect::tighter});
  }
  return changes;
}

// Returns true if both entries set the same limits for the same cells, whatever their `until`.
bool judges_same(const LimitEntry& a, const LimitEntry& b) {
  const auto judging_members = [](const LimitEntry& entry) {
    return std::tie(entry.match, entry.metrics, entry.exact, entry.max_drop, entry.max_increase,
                    entry.max_decrease, entry.tolerate, entry.max, entry.min, entry.mode);
  };
  return judging_members(a) == judging_members(b);
}

// Adds a proposal (an edit that a pull request makes) for each limit of which only `until`
// differs. A later end is looser for an entry under `mode: report` or `off`, tighter for one that
// gates.
void compare_expiry(const std::vector<LimitEntry>& base, const std::vector<LimitEntry>& head,
                    std::vector<Proposal>& proposals) {
  for (const LimitEntry& after : head) {
    for (const LimitEntry& before : base) {
      if (!judges_same(before, after) || before.until == after.until) continue;
      const bool is_longer = !after.until || (before.until && *after.until > *before.until);
      const bool loosens_gate = after.mode.value_or(Mode::gate) != Mode::gate;
      proposals.push_back(
          {fmt::format("until of the limit of {}",
                       after.metrics.empty() ? "every metric" : text::join(after.metrics)),
           before.until.value_or(""), after.until.value_or(""),
           is_longer == loosens_gate ? Effect::looser : Effect::tighter});
    }
  }
}

// Returns the limits that judge a pull request: the base's, after the defaults for metrics that
// only engines of the head declare.
std::vector<LimitEntry> judging_limits(const Settings& base, const Settings& head) {
  std::vector<LimitEntry> limits;
  for (const LimitEntry& entry : head.limits) {
    if (entry.source != verdict::k_default_source) continue;
    const bool is_in_base = std::ranges::any_of(base.limits, [&](const LimitEntry& other) {
      return other.source == entry.source && other.match.engine == entry.match.engine &&
             other.metrics == entry.metrics;
    });
    if (!is_in_base) limits.push_back(entry);
  }
  limits.insert(limits.end(), base.limits.begin(), base.limits.end());
  return limits;
}

// The cells to which the same entries of both versions apply: their limits change alike.
struct CellClasses {
  CellClasses(const std::vector<profile::CellKey>& cells, const verdict::LimitTable& base,
              const verdict::LimitTable& head) {
    std::map<std::pair<verdict::EntrySet, verdict::EntrySet>, std::size_t> places;
    for (const profile::CellKey& cell : cells) {
      std::pair fitting{base.fitting(cell), head.fitting(cell)};
      const auto [place, is_new] = places.try_emplace(fitting, list.size());
      if (is_new) list.push_back(std::move(fitting));
      class_of_cell.push_back(place->second);
    }
  }
  // Returns the names of the cells of these classes, in the order of cells.
  [[nodiscard]] std::vector<std::string> names_of(
      const std::vector<std::size_t>& classes, const std::vector<profile::CellKey>& cells) const {
    std::vector<bool> is_wanted(list.size());
    for (const std::size_t wanted : classes) is_wanted[wanted] = true;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (is_wanted[class_of_cell[i]]) names.push_back(cells[i].str());
    }
    return names;
  }

  std::vector<std::pair<verdict::EntrySet, verdict::EntrySet>> list;
  std::vector<std::size_t> class_of_cell;
};

// Adds a proposal for each change of the limits that apply to a metric of a cell. The lines of
// weir.yaml are not compared: an entry that overrides nothing changes nothing.
void compare_limits(const std::vector<profile::CellKey>& cells,
                    const std::vector<unit::Metric>& metrics, const std::vector<LimitEntry>& base,
                    const std::vector<LimitEntry>& head, std::vector<Proposal>& proposals) {
  compare_expiry(base, head, proposals);
  if (std::ranges::equal(base, head, judges_same)) return;
  const verdict::LimitTable base_limits(base), head_limits(head);
  const CellClasses classes(cells, base_limits, head_limits);
  // Both versions together can make every cell and metric a case of its own.
  constexpr std::size_t k_max_comparisons = 1'000'000;
  if (classes.list.size() * metrics.size() > k_max_comparisons) {
    proposals.push_back({"limits, in too many ways to list", "", "", Effect::looser});
    return;
  }
  // Metric and change -> the classes of cells in which the metric's limit changes so.
  std::map<std::pair<std::string, Change>, std::vector<std::size_t>> classes_of_change;
  for (std::size_t i = 0; i < classes.list.size(); ++i) {
    const auto& [in_base, in_head] = classes.list[i];
    const auto note = [&](const std::string& name, const Limit& before, const Limit& after) {
      for (Change& change : list_changes(before, after)) {
        classes_of_change[{name, std::move(change)}].push_back(i);
      }
    };
    for (const unit::Metric& metric : metrics) {
      note(metric.name, base_limits.resolve(in_base, metric), head_limits.resolve(in_head, metric));
    }
    for (const char* name : verdict::k_non_metrics) {
      note(name, base_limits.resolve_non_metric(in_base, name),
           head_limits.resolve_non_metric(in_head, name));
    }
  }
  // Change and cells -> the metrics whose limits change alike, which share one proposal.
  std::map<std::pair<Change, std::vector<std::size_t>>, std::vector<std::string>> groups;
  for (auto& [metric_change, change_classes] : classes_of_change) {
    const auto& [metric, change] = metric_change;
    groups[{change, std::move(change_classes)}].push_back(metric);
  }
  // Names of cells are for the proposals that are listed: the loosest.
  std::vector<const decltype(groups)::value_type*> ordered;
  for (const auto& group : groups) ordered.push_back(&group);
  std::ranges::stable_sort(ordered, {}, [](const auto* group) {
    const auto& [change, change_classes] = group->first;
    return change.effect;
  });
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const auto& [group, metric_names] = *ordered[i];
    const auto& [change, change_classes] = group;
    Proposal& proposal = proposals.emplace_back(
        Proposal{fmt::format("{} of {}", change.kind.empty() ? "limit" : change.kind,
                             verdict::list_some(metric_names)),
                 change.from, change.to, change.effect});
    if (i <= verdict::k_max_proposals) proposal.about(classes.names_of(change_classes, cells));
  }
}

// Returns the device with its twin, if there is one: "cuda twin h100 x2".
std::string describe_device(const Cell& cell) {
  if (!cell.twin) return cell.device;
  const std::string twin = fmt::format("{} twin {}", cell.device, *cell.twin);
  return cell.twin_devices == 1 ? twin : fmt::format("{} x{}", twin, cell.twin_devices);
}

// Returns the parts of a cell's fingerprint that differ: "arguments", "environment", "prompt",
// "model".
std::vector<std::string> differing_parts(const Cell& before, const Cell& after) {
  std::vector<std::string> parts;
  for (const auto& [part, text] : before.identity) {  // both cells have the same parts
    if (after.identity.at(part) != text) parts.push_back(part);
  }
  if (before.model_path != after.model_path) parts.emplace_back("model");
  return parts;
}

// Returns what a cell measures, whatever its name: cells with equal texts and engines that run
// alike measure the same thing.
std::string measured_text(const Cell& cell) {
  std::string text = describe_device(cell) + '\0' + cell.model_path;
  for (const auto& [part, identity] : cell.identity) text += '\0' + identity;
  return text;
}

// Returns true if both engines run the same program in the same way, whatever their names.
bool runs_alike(const EngineSettings& a, const EngineSettings& b) {
  return a.name == b.name || (a.command == b.command && a.output == b.output &&
                              a.server.has_value() == b.server.has_value());
}

// Compares two versions of weir.yaml. `base` holds the rules that apply, `head` the proposed ones.
class RulesComparison {
 public:
  RulesComparison(const Settings& base, const Matrix& base_cells, const Settings& head,
                  const Matrix& head_cells, const Digest& digest, const FileEdits& file_edits)
      : base_(base), head_(head), digest_(digest), file_edits_(file_edits) {
    for (const Cell& cell : base_cells.cells) before_.emplace(cell.key.str(), &cell);
    for (const Cell& cell : head_cells.cells) {
      after_.emplace(cell.key.str(), &cell);
      cells_.push_back(cell.key);
    }
    for (const auto& [name, cell] : after_) {
      if (!before_.contains(name)) new_cells_[measured_text(*cell)].push_back(name);
    }
    other_sections_ = compare_other_sections(*base.tree, *head.tree, digest);
    for (const Cell& cell : base_cells.cells) match_cell(cell);
    assign_limits();
  }

  // Returns all proposals in order, and what became of each cell of the base. Call it once.
  Edits take_edits() {
    std::vector<std::string> removed;
    for (const verdict::BaseCell& base_cell : edits_.cells) {
      if (base_cell.current_name.empty()) removed.push_back(base_cell.cell);
    }
    if (!removed.empty()) {
      add("cells that are not measured any more",
          fmt::format("{} of {}", removed.size(), before_.size()), "", Effect::looser,
          /*holds=*/true)
          .about(removed);
    }
    for (auto& [difference, names] : cells_of_difference_) {
      add(difference.key, difference.from, difference.to, Effect::changed, /*holds=*/true)
          .about(std::move(names));
    }
    for (const EngineSettings& engine : base_.engines) {
      const EngineSettings* head_engine = find_named(head_.engines, engine.name);
      if (head_engine == nullptr) continue;
      compare_cpu_ops(engine.name, engine.cpu_ops_allowed, head_engine->cpu_ops_allowed,
                      /*holds=*/false);
    }
    for (const EngineSettings& engine : head_.engines) {
      if (find_named(base_.engines, engine.name) == nullptr) {
        compare_cpu_ops(engine.name, {}, engine.cpu_ops_allowed, /*holds=*/true);
      }
    }
    compare_limits(cells_, limitable_metrics(), judging_limits(base_, head_), head_.limits,
                   edits_.proposals);
    compare_gate();
    if (member_or_null(*base_.tree, "explain") != member_or_null(*head_.tree, "explain")) {
      add("explain", "", "", Effect::changed);
    }
    edits_.proposals = verdict::in_order(std::move(edits_.proposals));
    return std::move(edits_);
  }

 private:
  // `holds`: the edit takes effect with the pull request already, since it is no rule.
  Proposal& add(std::string what, std::string from, std::string to, Effect effect,
                bool holds = false) {
    return edits_.proposals.emplace_back(
        Proposal{std::move(what), std::move(from), std::move(to), effect, holds});
  }

  // Records what became of a cell of the base: its name in the head, and the keys that differ. A
  // cell without its old name may be a renamed one that measures the same.
  void match_cell(const Cell& before) {
    verdict::BaseCell& base_cell = edits_.cells.emplace_back(verdict::BaseCell{before.key.str()});
    auto match = after_.find(base_cell.cell);
    if (match == after_.end()) {
      std::vector<std::string>& alike = new_cells_[measured_text(before)];
      const auto renamed = std::ranges::find_if(alike, [&](const std::string& name) {
        return runs_alike(*before.engine, *after_.at(name)->engine);
      });
      if (renamed == alike.end()) return;
      match = after_.find(*renamed);
      alike.erase(renamed);
    }
    base_cell.current_name = match->first;
    const EntryEdit edit = compare_cell(before, *match->second);
    base_cell.edit = edit.hash;
    std::vector<std::string> keys;
    for (const KeyDifference& difference : edit.differences) {
      keys.push_back(difference.key);
      cells_of_difference_[difference].push_back(base_cell.cell);
    }
    base_cell.edited = verdict::list_some(keys);
  }

  // Returns the edits of the keys of a cell, which is `after` now.
  EntryEdit compare_cell(const Cell& before, const Cell& after) {
    const auto old_names = entry_names(before.key), new_names = entry_names(after.key);
    EntryEdit all = other_sections_;
    for (std::size_t i = 0; i < std::size(k_cell_sections); ++i) {
      add_edit(compare_places({k_cell_sections[i], old_names[i], before.key.engine},
                              {k_cell_sections[i], new_names[i], after.key.engine}, before, after),
               all);
    }
    const auto add_values = [&](const std::string& key, const std::string& from,
                                const std::string& to) {
      if (from != to) add_edit({{{key, from, to}}, digest_(from + "\n" + to)}, all);
    };
    add_values("cpu_ops_allowed", cpu_ops_text(before), cpu_ops_text(after));
    if (all.differences.empty())
      add_values("device", describe_device(before), describe_device(after));
    // Lists in a prompt make cells, so each cell's own values are compared. The parts of a
    // fingerprint hold them.
    const std::string parts = text::join(differing_parts(before, after));
    if (all.differences.empty() && !parts.empty()) {
      add_edit({{{parts, "", ""}}, digest_(dump_json(Json(after.identity)))}, all);
    }
    if (const EntryEdit* files = look_up(file_edits_, before.key.str())) add_edit(*files, all);
    // The values of a private cell may be texts of which no part is to be shown.
    if (before.is_private || after.is_private) {
      for (KeyDifference& difference : all.differences) {
        difference.from.clear();
        difference.to.clear();
      }
    }
    return all;
  }

  void add_edit(const EntryEdit& edit, EntryEdit& all) const {
    all.differences.insert(all.differences.end(), edit.differences.begin(), edit.differences.end());
    if (edit.hash.empty()) return;
    all.hash = all.hash.empty() ? edit.hash : digest_(all.hash + edit.hash);
  }

  // Compares two entries, once for all cells that are made of them.
  const EntryEdit& compare_places(const EntryPlace& base, const EntryPlace& head,
                                  const Cell& before, const Cell& after) {
    const auto [edit, is_new] = edits_of_entries_.try_emplace({base, head});
    if (is_new) {
      const auto may_add = [&](const std::string& metric) {
        return may_add_metric(*before.engine, *after.engine, metric);
      };
      edit->second = compare_entries(*base_.tree, base, *head_.tree, head, may_add, digest_);
    }
    return edit->second;
  }

  // Returns the ops that the base's rules allow on the CPU in a cell. An engine under a new name
  // has no rules in the base, but its own.
  [[nodiscard]] std::string cpu_ops_text(const Cell& cell) const {
    const EngineSettings* engine = find_named(base_.engines, cell.key.engine);
    if (engine == nullptr) engine = cell.engine;
    std::vector<std::string> ops;
    for (const CpuOp& op : engine->cpu_ops_in(cell.key)) {
      ops.push_back(op.when.empty() ? op.op : op.op + " where " + op.when);
    }
    std::ranges::sort(ops);
    return text::join(ops);
  }

  // Returns true if the head may add a metric to an engine without an edit of what is measured:
  // nothing else may give this metric, and the engine runs as before.
  static bool may_add_metric(const EngineSettings& before, const EngineSettings& after,
                             const std::string& name) {
    const ValueRule* rule = find_first(
        after.generic.values, [&](const ValueRule& value) { return value.metric == name; });
    if (rule == nullptr) return false;
    const auto metric = rule->find_metric();
    if (!metric) return false;
    // The first count of an engine changes how it is run, and what its probes have to see.
    if (metric->kind == unit::Kind::count) return before.probes.empty() && before.reports_counts();
    return rule->custom || metric->kind == unit::Kind::time;
  }

  // Lists with each removed cell the limits that applied to removed cells only.
  void assign_limits() {
    const verdict::LimitTable limits(base_.limits);
    verdict::EntrySet in_head((base_.limits.size() + 63) / 64);
    for (const profile::CellKey& key : cells_) {
      const verdict::EntrySet fitting = limits.fitting(key);
      for (std::size_t i = 0; i < in_head.size(); ++i) in_head[i] |= fitting[i];
    }
    const auto fitting = collect<verdict::EntrySet>(edits_.cells, [&](const auto& base_cell) {
      return limits.fitting(before_.at(base_cell.cell)->key);
    });
    for (std::size_t i = 0; i < base_.limits.size(); ++i) {
      const LimitEntry& entry = base_.limits[i];
      std::vector<verdict::BaseCell*> removed;
      bool still_applies = verdict::contains(in_head, i);
      for (std::size_t cell = 0; cell < fitting.size(); ++cell) {
        verdict::BaseCell& base_cell = edits_.cells[cell];
        if (!verdict::contains(fitting[cell], i)) continue;
        if (base_cell.current_name.empty()) {
          removed.push_back(&base_cell);
        } else {
          still_applies = true;
        }
      }
      if (still_applies || entry.source == verdict::k_default_source) continue;
      for (verdict::BaseCell* cell : removed) cell->limits.push_back(entry.source);
    }
  }

  // Adds a proposal for each op that is added to or removed from `cpu_ops_allowed`.
  void compare_cpu_ops(const std::string& engine, const std::vector<CpuOp>& before,
                       const std::vector<CpuOp>& after, bool holds) {
    for (const CpuOp& op : after) {
      if (has_op(before, op)) continue;
      add(describe_cpu_op(engine, op), "", "\"" + op.why + "\"", Effect::looser, holds);
    }
    for (const CpuOp& op : before) {
      if (has_op(after, op)) continue;
      add(describe_cpu_op(engine, op), "\"" + op.why + "\"", "", Effect::tighter, holds);
    }
  }

  // Returns true if `op` is in `ops`, whatever the reason given for it.
  static bool has_op(const std::vector<CpuOp>& ops, CpuOp op) {
    return std::ranges::any_of(ops, [&](const CpuOp& listed) {
      op.why = listed.why;
      return op == listed;
    });
  }

  // Returns "cpu_ops_allowed of engine NAME: OP where CONDITION, model GLOB …".
  static std::string describe_cpu_op(const std::string& engine, const CpuOp& op) {
    std::string text = fmt::format("cpu_ops_allowed of engine {}: {}", engine, op.op);
    if (!op.when.empty()) text += " where " + op.when;
    const std::pair<const char*, const std::string&> parts[] = {{"engine", op.match.engine},
                                                                {"model", op.match.model},
                                                                {"backend", op.match.backend},
                                                                {"prompt", op.match.prompt},
                                                                {"variant", op.match.variant}};
    for (const auto& [part, glob] : parts) {
      if (!glob.empty()) text += fmt::format(", {} {}", part, glob);
    }
    return text;
  }

  // Returns every metric that a limit could apply to: weir's own, single ops and kernels that
  // limits name, and metrics that engines declare.
  [[nodiscard]] std::vector<unit::Metric> limitable_metrics() const {
    std::vector<unit::Metric> metrics;
    std::set<std::string> names;
    const auto add_metric = [&](const std::string& name,
                                const std::optional<unit::Metric>& metric) {
      if (!metric) return;
      const bool is_new = names.insert(name).second;
      if (is_new) metrics.push_back(*metric);
    };
    for (const std::string& name : unit::metric_names()) add_metric(name, unit::find_metric(name));
    for (const Settings* settings : {&base_, &head_}) {
      for (const LimitEntry& entry : settings->limits) {
        for (const std::string& pattern : entry.metrics) {
          if (unit::is_op_or_kernel_metric(pattern))
            add_metric(pattern, unit::find_metric(pattern));
        }
      }
    }
    for (const EngineSettings& engine : head_.engines) {
      for (const ValueRule& rule : engine.generic.values) add_metric(rule.metric, rule.custom);
    }
    return metrics;
  }

  // Adds a proposal for each setting of the section `gate` that differs.
  void compare_gate() {
    const GateSettings &a = base_.gate, &b = head_.gate;
    const auto text = [&](const char* name, const std::string& from, const std::string& to,
                          Effect effect) {
      if (from != to) add(fmt::format("gate.{}", name), from, to, effect);
    };
    const auto amount = [&](const char* name, auto from, auto to, bool more_is_looser,
                            std::string (*show)(double) = number_text) {
      if (from == to) return;
      const auto before = static_cast<double>(from), after = static_cast<double>(to);
      add(fmt::format("gate.{}", name), show(before), show(after),
          effect_of_growth(before, after, more_is_looser));
    };
    const auto flag = [&](const char* name, bool from, bool to, bool on_is_looser,
                          const char* off = "off", const char* on = "on") {
      const char* before = from ? on : off;
      const char* after = to ? on : off;
      text(name, before, after, effect_of_growth(from, to, on_is_looser));
    };
    // Fewer false alarms take more evidence before anything fails.
    amount("false_alarm", a.false_alarm, b.false_alarm, false);
    amount("missed", a.missed, b.missed, true);
    amount("stored_level", a.stored_level, b.stored_level, false);
    flag("strict", a.strict, b.strict, true);
    amount("budget", a.budget_seconds, b.budget_seconds, false, unit::show_duration);
    amount("runs", a.runs, b.runs, false);
    text("repeats", number_text(static_cast<double>(a.repeats)),
         number_text(static_cast<double>(b.repeats)), Effect::changed);
    flag("on_inconclusive", a.fail_on_inconclusive, b.fail_on_inconclusive, false, "warn", "fail");
    flag("on_removed", a.fail_on_removed, b.fail_on_removed, false, "warn", "fail");
    text("comment", std::string(name_of(verdict::k_comments, a.comment)),
         std::string(name_of(verdict::k_comments, b.comment)), Effect::changed);
    flag("waive_own", a.waive_own, b.waive_own, true);
    flag("confirm", a.confirms, b.confirms, true);
    text("confirm", a.confirm.value_or(""), b.confirm.value_or(""), Effect::changed);
    text("reference", a.reference.value_or(""), b.reference.value_or(""), Effect::changed);
  }

  const Settings& base_;
  const Settings& head_;
  const Digest& digest_;
  const FileEdits& file_edits_;
  std::map<std::string, const Cell*> before_, after_;
  // New names in after_ that no renamed cell of the base took, by measured_text().
  std::map<std::string, std::vector<std::string>> new_cells_;
  std::vector<profile::CellKey> cells_;
  EntryEdit other_sections_;
  std::map<std::pair<EntryPlace, EntryPlace>, EntryEdit> edits_of_entries_;
  std::map<KeyDifference, std::vector<std::string>> cells_of_difference_;
  Edits edits_;
};

}  // namespace

void copy_rules(const Settings& base, Settings& head) {
  head.limits = judging_limits(base, head);
  head.gate = base.gate;
  head.explain = base.explain;
  head.has_replaced_rules = true;
  for (EngineSettings& engine : head.engines) {
    if (const EngineSettings* before = find_named(base.engines, engine.name)) {
      engine.cpu_ops_allowed = before->cpu_ops_allowed;
    }
  }
}

void copy_privacy(const Settings& base, Settings& head) {
  const auto copy = [](const auto& from, auto& to) {
    for (auto& entry : to) {
      const auto* before = find_named(from, entry.name);
      entry.is_private = entry.is_private || (before != nullptr && before->is_private);
    }
  };
  copy(base.engines, head.engines);
  copy(base.models, head.models);
  copy(base.prompts, head.prompts);
}

Edits compare_rules(const Settings& base, const Matrix& base_cells, const Settings& head,
                    const Matrix& head_cells, const Digest& digest, const FileEdits& file_edits) {
  return RulesComparison(base, base_cells, head, head_cells, digest, file_edits).take_edits();
}

// Removes limits under `mode: report` or `off` whose last day, `until`, has passed. Returns a note
// for each.
std::vector<std::string> remove_expired_limits(Settings& base, const std::string& today) {
  std::vector<std::string> notes;
  std::erase_if(base.limits, [&](const verdict::LimitEntry& entry) {
    const bool is_expired = entry.until && *entry.until < today &&
                            entry.mode.value_or(verdict::Mode::gate) != verdict::Mode::gate;
    if (is_expired) {
      notes.push_back(
          fmt::format("{}: until {}, which is over: it holds no more", entry.source, *entry.until));
    }
    return is_expired;
  });
  return notes;
}

}  // namespace weir::config
