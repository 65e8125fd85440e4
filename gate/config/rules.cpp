#include "gate/config/rules.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "gate/base/text.hpp"
#include "gate/unit/metric.hpp"

namespace weir::config {
namespace {

using verdict::Proposal;
using Effect = Proposal::Effect;

template <class Section>
const Section* named(const std::vector<Section>& sections, const std::string& name) {
  const auto found = std::find_if(sections.begin(), sections.end(),
                                  [&](const Section& one) { return one.name == name; });
  return found == sections.end() ? nullptr : &*found;
}

std::string on_off(bool on) { return on ? "on" : "off"; }

std::string number(double value) { return fmt::format("{:.10g}", value); }

// A setting whose larger value decides less often that something is wrong is looser.
Effect grows(double from, double to, bool more_is_looser) {
  if (from == to) return Effect::changed;
  return (to > from) == more_is_looser ? Effect::looser : Effect::tighter;
}

class Rules {
 public:
  Rules(const Settings& base, const Matrix& base_cells, const Settings& head,
        const Matrix& head_cells)
      : base_(base), head_(head) {
    for (const Cell& cell : base_cells.cells) before_.emplace(cell.key.str(), &cell);
    for (const Cell& cell : head_cells.cells) after_.emplace(cell.key.str(), &cell);
    for (const Cell& cell : base_cells.cells) {
      if (!after_.contains(cell.key.str())) edits_.removed.push_back(cell.key.str());
    }
    for (const Cell& cell : head_cells.cells) cells_.push_back(cell.key);
  }

  Edits all() {
    if (!edits_.removed.empty()) {
      add("cells that are not measured any more",
          fmt::format("{} of {}", edits_.removed.size(), before_.size()), "", Effect::looser, true)
          .about(edits_.removed);
    }
    cells();
    for (const EngineSettings& engine : base_.engines) {
      if (const EngineSettings* now = named(head_.engines, engine.name)) engines(engine, *now);
    }
    for (const EngineSettings& engine : head_.engines) new_engine(engine);
    for (Proposal& one : compare_limits(cells_, metrics(), base_.limits, head_.limits)) {
      edits_.proposals.push_back(std::move(one));
    }
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

  // Cells of one name that are measured otherwise: what is stored of them says nothing any more.
  void cells() {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> devices;
    std::map<std::string, std::vector<std::string>> parts;
    for (const auto& [name, before] : before_) {
      const auto found = after_.find(name);
      if (found == after_.end()) continue;
      const Cell& after = *found->second;
      const auto device = [](const Cell& cell) {
        return cell.twin ? fmt::format("{} twin {}", cell.device, *cell.twin) : cell.device;
      };
      if (device(*before) != device(after)) {
        devices[{device(*before), device(after)}].push_back(name);
      }
      std::vector<std::string> differ;
      for (const auto& [part, text] : before->identity) {
        const auto now = after.identity.find(part);
        if (now == after.identity.end() || now->second != text) differ.push_back(part);
      }
      for (const auto& [part, text] : after.identity) {
        if (!before->identity.contains(part)) differ.push_back(part);
      }
      if (before->model_path != after.model_path) differ.emplace_back("model");
      if (!differ.empty()) parts[text::join(differ, " and ")].push_back(name);
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
    const auto differs = [&](const char* what, bool same) {
      if (!same) add(what + of, "", "", Effect::changed, true);
    };
    differs("command", before.command == after.command);
    differs("build", before.build == after.build);
    differs("profile_args", before.profile_args == after.profile_args);
    differs("counted_env", before.counted_env == after.counted_env);
    differs("instructions", before.instructions == after.instructions);
    differs("metrics read from the output", same_rules(before.generic, after.generic));
    differs("the way of asking", same_server(before.server, after.server));
  }

  // When it is up says nothing of what is measured of it.
  static bool same_server(const std::optional<ServerSettings>& a,
                          const std::optional<ServerSettings>& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return a->url == b->url && a->api == b->api && a->model_name == b->model_name &&
           a->warm_up == b->warm_up && a->own_fields == b->own_fields &&
           a->extra_body == b->extra_body && a->blocks == b->blocks &&
           a->share_start == b->share_start && a->token_env == b->token_env &&
           a->most_different_outputs == b->most_different_outputs && a->objectives == b->objectives;
  }

  static bool same_rules(const GenericOutput& a, const GenericOutput& b) {
    const auto same = [](const ValueRule& x, const ValueRule& y) {
      return x.metric == y.metric && x.regex == y.regex && x.pointer == y.pointer &&
             x.stream == y.stream && x.pick == y.pick && x.custom == y.custom &&
             x.scale.has_value() == y.scale.has_value() &&
             (!x.scale || (x.scale->unit == y.scale->unit && x.scale->factor == y.scale->factor));
    };
    return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same) &&
           std::equal(a.facts.begin(), a.facts.end(), b.facts.begin(), b.facts.end(), same);
  }

  void new_engine(const EngineSettings& engine) {
    if (named(base_.engines, engine.name) == nullptr) {
      allowed(engine.name, {}, engine.cpu_ops_allowed, true);
    }
  }

  void allowed(const std::string& engine, const std::map<std::string, std::string>& before,
               const std::map<std::string, std::string>& after, bool holds) {
    const auto what = [&](const std::string& op) {
      return fmt::format("cpu_ops_allowed of engine {}: {}", engine, op);
    };
    for (const auto& [op, why] : after) {
      if (!before.contains(op)) add(what(op), "", "\"" + why + "\"", Effect::looser, holds);
    }
    for (const auto& [op, why] : before) {
      if (!after.contains(op)) add(what(op), "\"" + why + "\"", "", Effect::tighter, holds);
    }
  }

  // Every metric that a limit could be about.
  [[nodiscard]] std::vector<unit::Metric> metrics() const {
    std::vector<unit::Metric> all;
    for (const std::string& name : unit::metric_names()) {
      if (const auto metric = unit::find_metric(name)) all.push_back(*metric);
    }
    std::set<std::string> works;
    for (const Settings* side : {&base_, &head_}) {
      for (const verdict::LimitEntry& entry : side->limits) {
        for (const std::string& pattern : entry.metrics) {
          if (unit::names_work(pattern) && works.insert(pattern).second) {
            if (const auto metric = unit::find_metric(pattern)) all.push_back(*metric);
          }
        }
      }
    }
    std::set<std::string> declared;
    for (const EngineSettings& engine : head_.engines) {
      for (const ValueRule& rule : engine.generic.values) {
        if (rule.custom && declared.insert(rule.metric).second) all.push_back(*rule.custom);
      }
    }
    return all;
  }

  void gate() {
    const GateSettings &a = base_.gate, &b = head_.gate;
    const auto amount = [&](const char* name, double from, double to, bool more_is_looser,
                            const std::function<std::string(double)>& shown = number) {
      if (from == to) return;
      add(fmt::format("gate.{}", name), shown(from), shown(to), grows(from, to, more_is_looser));
    };
    const auto flag = [&](const char* name, bool from, bool to, bool on_is_looser) {
      if (from == to) return;
      add(fmt::format("gate.{}", name), on_off(from), on_off(to),
          to == on_is_looser ? Effect::looser : Effect::tighter);
    };
    // Fewer false alarms take more evidence before anything fails.
    amount("false_alarm", a.false_alarm, b.false_alarm, false);
    amount("missed", a.missed, b.missed, true);
    amount("stored_level", a.stored_level, b.stored_level, false);
    flag("strict", a.strict, b.strict, true);
    amount("budget", a.budget_seconds, b.budget_seconds, false, unit::show_duration);
    amount("runs", static_cast<double>(a.runs), static_cast<double>(b.runs), false);
    if (a.repeats != b.repeats) {
      add("gate.repeats", number(static_cast<double>(a.repeats)),
          number(static_cast<double>(b.repeats)), Effect::changed);
    }
    if (a.fail_on_inconclusive != b.fail_on_inconclusive) {
      const auto shown = [](bool fails) { return std::string(fails ? "fail" : "warn"); };
      add("gate.on_inconclusive", shown(a.fail_on_inconclusive), shown(b.fail_on_inconclusive),
          b.fail_on_inconclusive ? Effect::tighter : Effect::looser);
    }
    flag("confirm", a.confirms, b.confirms, true);
    const auto reference = [&](const char* name, const std::optional<std::string>& from,
                               const std::optional<std::string>& to) {
      if (from != to) {
        add(fmt::format("gate.{}", name), from.value_or(""), to.value_or(""), Effect::changed);
      }
    };
    reference("confirm", a.confirm, b.confirm);
    reference("reference", a.reference, b.reference);
  }

  const Settings& base_;
  const Settings& head_;
  std::map<std::string, const Cell*> before_, after_;
  std::vector<profile::CellKey> cells_;
  Edits edits_;
};

}  // namespace

void take_rules(const Settings& base, Settings& head) {
  head.limits = base.limits;
  head.gate = base.gate;
  head.rules_from_elsewhere = true;
  for (EngineSettings& engine : head.engines) {
    if (const EngineSettings* before = named(base.engines, engine.name)) {
      engine.cpu_ops_allowed = before->cpu_ops_allowed;
    }
  }
}

Edits compare_rules(const Settings& base, const Matrix& base_cells, const Settings& head,
                    const Matrix& head_cells) {
  return Rules(base, base_cells, head, head_cells).all();
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
