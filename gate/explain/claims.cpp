// Decides which judgements of a cell follow from which finding.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using Entry = ExplainState::Entry;

// Returns true if everything else that changed follows from this finding. Work that moved to the
// CPU changes fusions around it, kernels and memory; a cache changes which kernels read it.
bool is_cause_of_all(const Entry& entry) {
  constexpr std::array k_kinds = {kind::batches_changed, kind::work_moved_to_cpu,
                                  kind::work_moved_to_gpu};
  const std::string& finding_kind = entry.finding.kind;
  return entry.rank < 0 || holds(k_kinds, finding_kind) ||
         (finding_kind == kind::memory_changed && entry.rank == 0);
}

// Returns the finding that the others follow from; else the first one.
Entry& find_leader(std::vector<Entry>& entries) {
  Entry* leader = find_first(entries, is_cause_of_all);
  return leader == nullptr ? entries.front() : *leader;
}

bool owns_kernels(const Entry& entry) {
  return std::ranges::any_of(entry.items,
                             [](const auto& item) { return item.starts_with("kernel "); });
}

// Returns true if a kernel that was split into parts has all of them on the device. No part is
// missing because its work moved to the CPU.
bool has_parts_on_device(const ExplainState& state, const Entry& entry) {
  WorkChanges joined, parts;
  for (const WorkChange& kernel : state.differences.kernels) {
    if (!holds(entry.items, "kernel " + kernel.name)) continue;
    WorkChanges& side = kernel.is_increase() ? parts : joined;
    side.push_back(&kernel);
  }
  const std::vector<KernelName> names = names_in(parts);
  const auto is_gone_to_cpu = [&](const std::string& work) {
    const auto computes_it = [&](const KernelName& part) { return holds(part.works, work); };
    const auto has_moved_to_cpu = [&](const WorkChange& op) {
      return op.is_increase() && op.work() == work;
    };
    return std::ranges::none_of(names, computes_it) &&
           std::ranges::any_of(state.differences.cpu_ops, has_moved_to_cpu);
  };
  return std::ranges::any_of(joined, [&](const WorkChange* kernel) {
    return std::ranges::none_of(kernel->parsed.works, is_gone_to_cpu) &&
           !find_fused_parts(kernel->parsed, names).empty();
  });
}

// Returns true if `entry` is a cause of its own beside work that left the device: kernels that
// stayed there run more often, or run apart.
bool is_independent(const ExplainState& state, const Entry& entry, const Entry& first) {
  if (first.finding.kind != kind::work_moved_to_cpu) return false;
  if (entry.finding.kind == kind::batching_lost) return owns_kernels(entry);
  return entry.finding.kind == kind::fusion_lost && has_parts_on_device(state, entry);
}

// Returns true if a CPU step in each layer (`first`) explains where the graph is cut.
bool is_cut_by(const Entry& entry, const Entry& first) {
  return first.finding.kind == kind::sync_per_layer && entry.finding.kind == kind::splits_changed &&
         entry.finding.delta > k_zero;
}

// Returns true if this finding is an outcome of the first one.
bool follows(const ExplainState& state, const Entry& entry, const Entry& first) {
  constexpr std::array k_unrelated = {kind::threads_changed, kind::served_changed};
  if (entry.finding.also || is_independent(state, entry, first)) return false;
  return entry.rank >= 2 || is_cut_by(entry, first) ||
         (is_cause_of_all(first) && !holds(k_unrelated, entry.finding.kind));
}

// Returns true if the finding may make an engine slower, or faster.
bool may_explain(const Finding& finding, bool is_slower) {
  using enum FindingKind::Effect;
  const FindingKind* kind = find_named(k_finding_kinds, finding.kind);
  return kind == nullptr || kind->effect == either || kind->effect == (is_slower ? slower : faster);
}

// Returns true if the finding may explain that a time, memory or quality got worse (`slower`).
bool may_explain_time(const Entry& entry, unit::Kind metric_kind, bool slower) {
  const Finding& finding = entry.finding;
  if (finding.also) return false;
  if (finding.kind == kind::time_changed) return true;
  if (metric_kind == unit::Kind::quality) return false;
  if (metric_kind == unit::Kind::memory) {
    return is_cause_of_all(entry) || finding.kind == kind::memory_changed;
  }
  return may_explain(finding, slower);
}

// Returns the metrics that changed beyond their noise, or that the gate called changed.
std::map<std::string, unit::Metric> changed_metrics(const ExplainState& state) {
  std::map<std::string, unit::Metric> metrics;
  for (const auto& [name, change] : state.evidence.gate->changed) {
    metrics.emplace(name, change.metric);
  }
  for (const auto& [name, change] : state.differences.moved) metrics.emplace(name, change.metric);
  return metrics;
}

// The finding that explains each metric or item. `board` has at least one entry and outlives this.
class Owners {
 public:
  // Assigns items to the findings that claim them, then the counts of kernels, then items without a
  // finding.
  explicit Owners(ExplainState& state) : state_(state), first_(&find_leader(state.entries)) {
    for (Entry& entry : state.entries) {
      for (const std::string& item : entry.items) by_item_[item] = &entry;
      if (kernels_ == nullptr && owns_kernels(entry)) kernels_ = &entry;
    }
    if (is_cause_of_all(*first_)) kernels_ = first_;
    for (Entry& entry : state.entries) {
      if (is_independent(state, entry, *first_)) kernels_ = &entry;
    }
    own_counts_of_kernels();
    for (const std::string& item : state.unattributed_items) {
      // Barriers stand between dispatches.
      Entry* dispatches = item == "barriers" ? look_up(by_item_, "dispatches", nullptr) : nullptr;
      by_item_.try_emplace(item, dispatches != nullptr ? dispatches : first_);
    }
  }

  // The finding that the others follow from.
  [[nodiscard]] Entry& leader() const { return *first_; }
  // Returns the finding that explains an item; null if none does.
  [[nodiscard]] Entry* owner_of(const std::string& item) const {
    Entry* const* owner = look_up(by_item_, item);
    if (owner != nullptr) return *owner;
    return is_cause_of_all(*first_) ? first_ : nullptr;
  }
  [[nodiscard]] Entry* owner_of_kernels() const { return kernels_; }
  [[nodiscard]] Entry* owner_of_code() const {
    Entry* code = owner_of("code");
    return code != nullptr ? code : kernels_;
  }
  [[nodiscard]] Entry* owner_of_metric(const unit::Metric& metric) const {
    if (by_item_.contains(metric.name)) return owner_of(metric.name);
    if (metric.kind != unit::Kind::count) return owner_of_time(metric);
    if (unit::buffer_label(metric.name)) return owner_of("buffers");
    if (unit::is_summed_cost(metric.base)) return kernels_ != nullptr ? kernels_ : owner_of_code();
    if (unit::is_op_or_kernel_metric(metric.name)) return owner_of_work(metric.name);
    // Calls of a vendor's library are kernels, too.
    const bool is_of_library = metric.base == "cublas_calls" || metric.base == "hipblas_calls";
    if (is_of_library && !by_item_.contains(metric.base)) return owner_of_library_calls();
    const bool of_context = metric.scope == unit::Scope::per_context_token;
    const bool has_owner = by_item_.contains(metric.base);
    return owner_of(of_context && !has_owner ? "context " + metric.base : metric.base);
  }

 private:
  // Assigns dispatches to the finding whose kernels make up most of their change. On the CPU ops
  // take the place of dispatches.
  void own_counts_of_kernels() {
    const bool cpu = state_.evidence.device == "cpu";
    const char* base = cpu ? "cpu_ops" : "dispatches";
    const double change = state_.differences.count(base).value();
    const double direction = change < 0 ? -1 : 1;
    std::map<const Entry*, double> shares;  // in the direction of the change
    for (const WorkChange& kernel : state_.differences.kernels) {
      const Entry* owner = look_up(by_item_, "kernel " + kernel.name, nullptr);
      shares[owner] += kernel.delta().value() * direction;
    }
    const Entry* current = look_up(by_item_, base, nullptr);
    const bool is_contradicted = current != nullptr && look_up(shares, current, 0) < 0;
    const bool is_assigned = cpu ? current != nullptr : !is_contradicted;
    if (change == 0 || is_assigned) return;
    const auto share = [&](const Entry& entry) { return look_up(shares, &entry, 0); };
    const auto largest_share = std::ranges::max_element(state_.entries, {}, share);
    if (share(*largest_share) > 0) by_item_[base] = &*largest_share;
  }

  [[nodiscard]] Entry* owner_of_work(const std::string& name) const {
    if (name.find("_calls:") == std::string::npos) return owner_of_code();
    return kernels_ != nullptr ? kernels_ : owner_of("cpu_ops");
  }

  // Returns the finding that explains a call of a vendor's library that ran more or less often.
  [[nodiscard]] Entry* owner_of_library_calls() const {
    for (const WorkChange& kernel : state_.differences.kernels) {
      if (is_library_call(kernel.name)) return owner_of("kernel " + kernel.name);
    }
    return kernels_;
  }

  // Returns the first finding that may explain a time.
  [[nodiscard]] Entry* owner_of_time(const unit::Metric& metric) const {
    const double* ratio = look_up(state_.differences.times, metric.name);
    if (ratio == nullptr) return nullptr;
    const bool slower = unit::got_worse(metric.better, /*rose=*/*ratio > 1);
    for (Entry& entry : state_.entries) {
      if (may_explain_time(entry, metric.kind, slower)) return &entry;
    }
    return nullptr;
  }

  ExplainState& state_;
  Entry* first_;
  Entry* kernels_ = nullptr;  // the first that explains any
  std::map<std::string, Entry*> by_item_;
};

void add_claim(Entry* owner, const std::string& judgement) {
  if (owner != nullptr) owner->finding.claims.push_back(judgement);
}

}  // namespace

// Assigns each metric that the gate judged as changed to the finding that explains it. A finding
// that only follows from the first one passes its metrics on to that.
void add_claims(ExplainState& state) {
  if (!state.evidence.gate || state.entries.empty()) return;
  const Owners owners(state);
  for (const auto& [name, metric] : changed_metrics(state)) {
    add_claim(owners.owner_of_metric(metric), name);
  }
  if (!state.differences.kernels.empty()) add_claim(owners.owner_of_kernels(), "kernels");
  if (!state.evidence.code.empty()) add_claim(owners.owner_of_code(), "kernel_code");
  const bool misplaced = state.evidence.gate->placement == verdict::Outcome::fail;
  if (misplaced || !state.differences.cpu_ops.empty())
    add_claim(owners.owner_of("cpu_ops"), "placement");
  Entry& leader = owners.leader();
  for (Entry& entry : state.entries) {
    if (&entry == &leader || !follows(state, entry, leader)) continue;
    std::ranges::move(entry.finding.claims, std::back_inserter(leader.finding.claims));
    entry.finding.claims.clear();
  }
}

}  // namespace weir::explain
