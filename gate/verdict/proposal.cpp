#include "gate/verdict/proposal.hpp"

#include "gate/base/json.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using Effect = Proposal::Effect;

constexpr auto k_effects = names_in_order<Effect>("looser", "changed", "tighter");

// A stored number that is worse than before lets a worse program pass.
Effect of_numbers(const unit::Metric& metric, double from, double to) {
  if (from == to) return Effect::changed;
  const bool rose = to > from;
  return rose == (metric.better == unit::Better::higher) ? Effect::tighter : Effect::looser;
}

class Compare {
 public:
  Compare(const Baseline& base, const Baseline& head) : base_(base), head_(head) {}

  std::vector<Proposal> all() {
    if (base_.fingerprint != head_.fingerprint) {
      add("what the cell is", base_.fingerprint, head_.fingerprint, Effect::changed);
    }
    counts();
    if (base_.kernels != head_.kernels) add("kernels", "", "", Effect::changed);
    if (base_.placement != head_.placement) placement();
    if (base_.work != head_.work) add("the work done", "", "", Effect::changed);
    times();
    if (made_.empty()) add("other parts", "", "", Effect::changed);
    return std::move(made_);
  }

 private:
  void add(const std::string& part, std::string from, std::string to, Effect effect) {
    made_.push_back({fmt::format("baseline {} of {} ({})", part, base_.cell, base_.device_class),
                     std::move(from),
                     std::move(to),
                     effect,
                     false,
                     {base_.cell},
                     1});
  }

  void counts() {
    for (const auto& [name, before] : base_.counts) {
      const Measurement* after = look_up(head_.counts, name);
      if (after == nullptr) {
        add(name, shown(before), "", Effect::looser);
        continue;
      }
      const std::string from = shown(before), to = shown(*after);
      if (from != to) {
        add(name, from, to,
            of_numbers(before.metric, before.value().value_or(0), after->value().value_or(0)));
      } else if (before.nature != after->nature) {
        add(name + " as", std::string(profile::to_string(before.nature)),
            std::string(profile::to_string(after->nature)),
            before.nature == profile::Nature::exact ? Effect::looser : Effect::tighter);
      } else if (before.repeatability != after->repeatability) {
        const double was = before.repeatability.value_or(0), is = after->repeatability.value_or(0);
        add(name + " repeats within", fmt::format("{:.2g} %", was * 100),
            fmt::format("{:.2g} %", is * 100), is > was ? Effect::looser : Effect::tighter);
      }
    }
    for (const auto& [name, after] : head_.counts) {
      if (!base_.counts.contains(name)) add(name, "", shown(after), Effect::tighter);
    }
  }

  void placement() {
    const auto ops = [](const Baseline& one) {
      const auto names = collect<std::string>(one.placement.cpu_ops, [](const auto& op) {
        return fmt::format("{} {}", op.second, op.first);
      });
      return names.empty() ? std::string(profile::to_string(one.placement.state))
                           : "on the CPU " + text::join(names);
    };
    const auto more = [](const Baseline& one, const Baseline& other) {
      return std::ranges::any_of(one.placement.cpu_ops, [&](const auto& op) {
        const auto* times = look_up(other.placement.cpu_ops, op.first);
        return times == nullptr || *times < op.second;
      });
    };
    const Effect effect = more(head_, base_)   ? Effect::looser
                          : more(base_, head_) ? Effect::tighter
                                               : Effect::changed;
    add("placement", ops(base_), ops(head_), effect);
  }

  using Samples = std::map<std::string, std::vector<double>>;
  static Samples samples_of(const std::vector<baseline::Session>& sessions) {
    Samples all;
    for (const baseline::Session& session : sessions) {
      for (const auto& [name, samples] : session.samples) {
        all[name].insert(all[name].end(), samples.begin(), samples.end());
      }
    }
    return all;
  }

  void times() {
    for (const auto& [machine, sessions] : base_.sessions) {
      const Samples before = samples_of(sessions);
      const Samples after =
          samples_of(look_up(head_.sessions, machine, std::vector<baseline::Session>()));
      for (const auto& [name, samples] : before) {
        const auto* now = look_up(after, name);
        const std::string what = fmt::format("samples of {} on {}", name, machine);
        if (now == nullptr) {
          add(what, fmt::format("{} stored", samples.size()), "", Effect::looser);
        } else if (samples != *now) {
          changed_samples(what, name, samples, *now);
        }
      }
    }
    for (const auto& [machine, sessions] : head_.sessions) {
      if (base_.sessions.contains(machine)) continue;
      add("samples on " + machine, "", fmt::format("{} stored", sessions.size()), Effect::tighter);
    }
  }

  void changed_samples(const std::string& what, const std::string& name,
                       const std::vector<double>& before, const std::vector<double>& after) {
    const auto metric = unit::find_metric(name);
    const auto from = stats::median(before), to = stats::median(after);
    if (!from || !to) return add(what, "", "", Effect::changed);
    const auto shown = [&](double value, std::size_t number) {
      return fmt::format("{} (median of {})",
                         metric ? unit::show(*metric, value) : fmt::format("{:.4g}", value),
                         number);
    };
    add(what, shown(*from, before.size()), shown(*to, after.size()),
        metric ? of_numbers(*metric, *from, *to) : Effect::changed);
  }

  const Baseline& base_;
  const Baseline& head_;
  std::vector<Proposal> made_;
};

}  // namespace

std::string_view to_string(Proposal::Effect effect) { return name_of(k_effects, effect); }

std::string Proposal::words() const {
  std::string line = what;
  if (!from.empty() && !to.empty()) {
    line += fmt::format(": {} → {}", from, to);
  } else if (!from.empty()) {
    line += fmt::format(": {} → removed", from);
  } else if (!to.empty()) {
    line += fmt::format(": added, {}", to);
  }
  line += fmt::format(": {}", to_string(effect));
  if (holds) line += ", and holds already";
  if (cells_in_all > 1) line += fmt::format(", in {} cells", cells_in_all);
  return line;
}

void Proposal::about(std::vector<std::string> all_cells) {
  cells_in_all = static_cast<std::int64_t>(all_cells.size());
  if (all_cells.size() > k_most_cells_named) all_cells.resize(k_most_cells_named);
  cells = std::move(all_cells);
}

std::vector<Proposal> in_order(std::vector<Proposal> proposals) {
  std::ranges::stable_sort(proposals, {},
                           [](const Proposal& one) { return std::pair(one.effect, !one.holds); });
  if (proposals.size() > k_most_proposals) {
    const std::size_t more = proposals.size() - k_most_proposals + 1;
    const Effect worst = proposals[k_most_proposals - 1].effect;
    proposals.resize(k_most_proposals - 1);
    proposals.push_back({fmt::format("{} more edits", more), "", "", worst});
  }
  return proposals;
}

std::string some_of(const std::vector<std::string>& names, std::size_t most) {
  const std::span some = std::span(names).first(std::min(most, names.size()));
  const std::size_t more = names.size() - some.size();
  return text::join(some) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::vector<Proposal> compare_baselines(const Baseline* base, const Baseline* head) {
  if (base == nullptr && head == nullptr) return {};
  if (base != nullptr && head != nullptr) return Compare(*base, *head).all();
  const Baseline& one = base != nullptr ? *base : *head;
  const std::string what = fmt::format("baseline of {} ({})", one.cell, one.device_class);
  const std::string counts = plural(one.counts.size(), "count");
  if (head == nullptr) return {{what, counts, "", Effect::looser, false, {one.cell}, 1}};
  return {{what, "", counts, Effect::tighter, false, {one.cell}, 1}};
}

void fields(Fields& io, Proposal& proposal) {
  io("what", proposal.what);
  io.always("from", NullIfEmpty{proposal.from});
  io.always("to", NullIfEmpty{proposal.to});
  io("effect", Named{proposal.effect, k_effects, "has an effect that is not known"});
  io.always("holds", proposal.holds);
  io.always("cells", proposal.cells);
  io.always("cells_in_all", proposal.cells_in_all);
  io.derived("words", proposal.words());
}

}  // namespace weir::verdict
