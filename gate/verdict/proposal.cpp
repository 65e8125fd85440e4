// Lists the edits of rules and stored baselines that a pull request proposes.
#include "gate/verdict/proposal.hpp"

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/variation.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using Effect = Proposal::Effect;

constexpr auto k_effects = names_in_order<Effect>("looser", "changed", "tighter");

// The effect of another stored number: a worse one lets a worse program pass.
Effect effect_of_change(const unit::Metric& metric, double from, double to) {
  if (from == to) return Effect::changed;
  const bool rose = to > from;
  return rose == (metric.better == unit::Better::higher) ? Effect::tighter : Effect::looser;
}

// Finds all that differs between two versions of a stored baseline.
class BaselineDiff {
 public:
  BaselineDiff(const Baseline& base, const Baseline& head) : base_(base), head_(head) {}

  // All differences as proposals; one for "other parts" if none is found.
  std::vector<Proposal> compare() {
    if (base_.fingerprint != head_.fingerprint) {
      add("what the cell is", base_.fingerprint, head_.fingerprint, Effect::changed);
    }
    compare_counts();
    if (base_.kernels != head_.kernels) add("kernels", "", "", Effect::changed);
    if (base_.placement != head_.placement) compare_placement();
    if (base_.work != head_.work) add("the work done", "", "", Effect::changed);
    compare_times();
    if (proposals_.empty()) add("other parts", "", "", Effect::changed);
    return std::move(proposals_);
  }

 private:
  void add(const std::string& part, std::string from, std::string to, Effect effect) {
    proposals_.push_back(
        {fmt::format("baseline {} of {} ({})", part, base_.cell, base_.device_class),
         std::move(from),
         std::move(to),
         effect,
         /*is_in_force=*/false,
         {base_.cell},
         1});
  }

  // Adds a proposal for each count that changed, went or came.
  void compare_counts() {
    for (const auto& [name, before] : base_.counts) {
      const Measurement* after = look_up(head_.counts, name);
      if (after == nullptr) {
        add(name, value_text(before), "", Effect::looser);
        continue;
      }
      const std::string from = value_text(before), to = value_text(*after);
      if (from != to) {
        add(name, from, to,
            effect_of_change(before.metric, before.value().value_or(0),
                             after->value().value_or(0)));
      } else if (before.nature != after->nature) {
        add(name + " as", std::string(profile::to_string(before.nature)),
            std::string(profile::to_string(after->nature)),
            before.nature == profile::Nature::exact ? Effect::looser : Effect::tighter);
      } else if (before.relative_spread != after->relative_spread) {
        const double before_share = before.relative_spread.value_or(0),
                     after_share = after->relative_spread.value_or(0);
        add(name + " repeats within", fmt::format("{:.2g} %", before_share * 100),
            fmt::format("{:.2g} %", after_share * 100),
            after_share > before_share ? Effect::looser : Effect::tighter);
      } else {
        compare_ranges(name, before, *after);
      }
    }
    for (const auto& [name, after] : head_.counts) {
      if (!base_.counts.contains(name)) add(name, "", value_text(after), Effect::tighter);
    }
  }

  // Adds a proposal for a count that varies in another range.
  void compare_ranges(const std::string& name, const Measurement& before,
                      const Measurement& after) {
    const auto from = profile::find_variation(before), to = profile::find_variation(after);
    const auto range = [](const auto& varied) { return varied ? varied->range() : std::string(); };
    if (range(from) == range(to)) return;
    // Without a range, a multiple of the spread passes.
    const bool is_looser = !to || (from && (to->low < from->low || to->high > from->high));
    add(name + " varies", range(from), range(to), is_looser ? Effect::looser : Effect::tighter);
  }

  // Adds a proposal for another placement: looser if more ops may run elsewhere.
  void compare_placement() {
    const auto ops = [](const Baseline& baseline) {
      const profile::Placement& placement = baseline.placement;
      const auto show_op = [](const auto& op) { return fmt::format("{} {}", op.second, op.first); };
      const auto on_cpu = collect<std::string>(placement.cpu_ops, show_op);
      std::vector<std::string> places = collect<std::string>(placement.other_ops, show_op);
      if (!on_cpu.empty()) places.insert(places.begin(), "on the CPU " + text::join(on_cpu));
      return places.empty() ? std::string(profile::to_string(placement.state)) : text::join(places);
    };
    // Returns true if some op runs elsewhere more often in `a`.
    const auto runs_more = [](const Baseline& a, const Baseline& b) {
      const auto ops_of_b = b.placement.ops_elsewhere();
      return std::ranges::any_of(a.placement.ops_elsewhere(), [&](const auto& op) {
        const auto* calls = look_up(ops_of_b, op.first);
        return calls == nullptr || *calls < op.second;
      });
    };
    Effect effect = Effect::changed;
    if (runs_more(head_, base_)) {
      effect = Effect::looser;
    } else if (runs_more(base_, head_)) {
      effect = Effect::tighter;
    }
    add("placement", ops(base_), ops(head_), effect);
  }

  // The samples of all sessions together, by metric.
  using Samples = std::map<std::string, std::vector<double>>;
  static Samples join_samples(const std::vector<baseline::Session>& sessions) {
    Samples joined;
    for (const baseline::Session& session : sessions) {
      for (const auto& [name, samples] : session.samples) {
        joined[name].insert(joined[name].end(), samples.begin(), samples.end());
      }
    }
    return joined;
  }

  // Adds a proposal for each metric whose stored samples changed, by machine class.
  void compare_times() {
    for (const auto& [machine, sessions] : base_.sessions) {
      const Samples before = join_samples(sessions);
      const Samples after =
          join_samples(look_up(head_.sessions, machine, std::vector<baseline::Session>()));
      for (const auto& [name, samples] : before) {
        const auto* now = look_up(after, name);
        const std::string what = fmt::format("samples of {} on {}", name, machine);
        if (now == nullptr) {
          add(what, fmt::format("{} stored", samples.size()), "", Effect::looser);
        } else if (samples != *now) {
          add_changed_samples(what, name, samples, *now);
        }
      }
    }
    for (const auto& [machine, sessions] : head_.sessions) {
      if (base_.sessions.contains(machine)) continue;
      add("samples on " + machine, "", fmt::format("{} stored", sessions.size()), Effect::tighter);
    }
  }

  // Adds a proposal for changed samples, with both medians.
  void add_changed_samples(const std::string& what, const std::string& name,
                           const std::vector<double>& before, const std::vector<double>& after) {
    const auto metric = unit::find_metric(name);
    const auto from = stats::median(before), to = stats::median(after);
    if (!from || !to) return add(what, "", "", Effect::changed);
    const auto median_text = [&](double value, std::size_t number) {
      return fmt::format("{} (median of {})",
                         metric ? unit::show(*metric, value) : fmt::format("{:.4g}", value),
                         number);
    };
    add(what, median_text(*from, before.size()), median_text(*to, after.size()),
        metric ? effect_of_change(*metric, *from, *to) : Effect::changed);
  }

  const Baseline& base_;
  const Baseline& head_;
  std::vector<Proposal> proposals_;
};

}  // namespace

// Returns true for an edit of how cells are measured: they are not judged.
static bool is_unjudged(const Proposal& proposal) {
  return proposal.is_in_force && proposal.effect == Effect::changed;
}

std::string_view to_string(Proposal::Effect effect) { return name_of(k_effects, effect); }

// Returns the edit in one line: "max_drop of decode_tokens_per_second: 5 % → 20 %: looser, in 12
// cells".
std::string Proposal::words() const {
  std::string line = what;
  if (!from.empty() && !to.empty()) {
    line += fmt::format(": {} → {}", from, to);
  } else if (!from.empty()) {
    line += fmt::format(": {} → removed", from);
  } else if (!to.empty()) {
    line += fmt::format(": added, {}", to);
  }
  line += is_unjudged(*this) ? ": not judged" : fmt::format(": {}", to_string(effect));
  if (is_in_force && !is_unjudged(*this)) line += ", and holds already";
  if (cells_in_all > 1) line += fmt::format(", in {} cells", cells_in_all);
  return line;
}

void Proposal::about(std::vector<std::string> all_cells) {
  cells_in_all = static_cast<std::int64_t>(all_cells.size());
  if (all_cells.size() > k_max_cells_listed) all_cells.resize(k_max_cells_listed);
  cells = std::move(all_cells);
}

// Sorts edits of limits and baselines: unjudged ones first, then looser ones, of these the ones in
// force first. Cuts the list at k_max_proposals; a last entry counts the others.
std::vector<Proposal> in_order(std::vector<Proposal> proposals) {
  std::ranges::stable_sort(proposals, {}, [](const Proposal& proposal) {
    return std::tuple(!is_unjudged(proposal), proposal.effect, !proposal.is_in_force);
  });
  if (proposals.size() > k_max_proposals) {
    const std::size_t left_out = proposals.size() - k_max_proposals + 1;
    const Effect last_effect = proposals[k_max_proposals - 1].effect;
    proposals.resize(k_max_proposals - 1);
    proposals.push_back({fmt::format("{} more edits", left_out), "", "", last_effect});
  }
  return proposals;
}

std::string list_some(const std::vector<std::string>& names, std::size_t max_names) {
  const std::span some = std::span(names).first(std::min(max_names, names.size()));
  const std::size_t more = names.size() - some.size();
  return text::join(some) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

// Lists the changes of one baseline file between base and head of a pull request. Null stands for
// a file that does not exist there.
std::vector<Proposal> compare_baselines(const Baseline* base, const Baseline* head) {
  if (base == nullptr && head == nullptr) return {};
  if (base != nullptr && head != nullptr) return BaselineDiff(*base, *head).compare();
  const Baseline& baseline = base != nullptr ? *base : *head;
  const std::string what = fmt::format("baseline of {} ({})", baseline.cell, baseline.device_class);
  const std::string counts = text::plural(baseline.counts.size(), "count");
  const bool removed = head == nullptr;
  return {{.what = what,
           .from = removed ? counts : "",
           .to = removed ? "" : counts,
           .effect = removed ? Effect::looser : Effect::tighter,
           .is_in_force = false,
           .cells = {baseline.cell},
           .cells_in_all = 1}};
}

void fields(Fields& io, Proposal& proposal) {
  io("what", proposal.what);
  io.always("from", NullIfEmpty{proposal.from});
  io.always("to", NullIfEmpty{proposal.to});
  io("effect", Named{proposal.effect, k_effects, "has an effect that is not known"});
  io.always("holds", proposal.is_in_force);
  io.always("cells", proposal.cells);
  io.always("cells_in_all", proposal.cells_in_all);
  io.write_only("words", proposal.words());
}

}  // namespace weir::verdict
