// Which judgements of a cell follow from which finding.

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using Entry = Board::Entry;

// All else that changed follows from it: of work that crosses to the CPU what is fused around it,
// which kernels run, and what memory they take; of a cache which kernels read it.
bool leads(const Entry& entry) {
  constexpr std::array k_kinds = {kind::batches_changed, kind::work_moved_to_cpu,
                                  kind::work_moved_to_gpu};
  const std::string& is = entry.finding.kind;
  return entry.rank < 0 || holds(k_kinds, is) || (is == kind::memory_changed && entry.rank == 0);
}

// Of what the others are the outcome.
Entry& leader_of(std::vector<Entry>& entries) {
  Entry* found = first_of(entries, leads);
  return found == nullptr ? entries.front() : *found;
}

bool owns_kernels(const Entry& entry) {
  return std::ranges::any_of(entry.items,
                             [](const auto& item) { return item.starts_with("kernel "); });
}

// Kernels that stayed on the device run more often: that follows from no work that left it.
bool is_apart(const Entry& entry, const Entry& first) {
  return first.finding.kind == kind::work_moved_to_cpu &&
         entry.finding.kind == kind::batching_lost && owns_kernels(entry);
}

// A step of the CPU in each layer cuts the graph where it stands.
bool is_cut_by(const Entry& entry, const Entry& first) {
  return first.finding.kind == kind::sync_per_layer && entry.finding.kind == kind::splits_changed &&
         entry.finding.delta > k_none;
}

// What goes behind all causes is the outcome of the first.
bool follows(const Entry& entry, const Entry& first) {
  constexpr std::array k_own = {kind::threads_changed, kind::served_changed};
  if (entry.finding.also || is_apart(entry, first)) return false;
  return entry.rank >= 2 || is_cut_by(entry, first) ||
         (leads(first) && !holds(k_own, entry.finding.kind));
}

// An engine may be slower for it, or else faster.
bool may_make(const Finding& finding, bool is_slower) {
  using enum FindingKind::Effect;
  const FindingKind* kind = find_named(k_finding_kinds, finding.kind);
  return kind == nullptr || kind->effect == either || kind->effect == (is_slower ? slower : faster);
}

// Metrics that differ beyond their noise, or that the gate called changed.
std::map<std::string, unit::Metric> moved_metrics(const Board& board) {
  std::map<std::string, unit::Metric> moved;
  for (const auto& [name, one] : board.evidence.gate->changed) moved.emplace(name, one.metric);
  for (const auto& [name, one] : board.found.moved) moved.emplace(name, one.metric);
  return moved;
}

// Who explains what. `board` has an entry and outlives this.
class Owners {
 public:
  explicit Owners(Board& board) : board_(board), first_(&leader_of(board.entries)) {
    for (Entry& entry : board.entries) {
      for (const std::string& item : entry.items) by_item_[item] = &entry;
      if (kernels_ == nullptr && owns_kernels(entry)) kernels_ = &entry;
    }
    if (leads(*first_)) kernels_ = first_;
    for (Entry& entry : board.entries) {
      if (is_apart(entry, *first_)) kernels_ = &entry;
    }
    own_counts_of_kernels();
    for (const std::string& item : board.followed) {
      // Barriers stand between dispatches.
      Entry* dispatches = item == "barriers" ? look_up(by_item_, "dispatches", nullptr) : nullptr;
      by_item_.try_emplace(item, dispatches != nullptr ? dispatches : first_);
    }
  }

  [[nodiscard]] Entry& leader() const { return *first_; }
  // Null: nobody does.
  [[nodiscard]] Entry* of(const std::string& item) const {
    Entry* const* found = look_up(by_item_, item);
    return found != nullptr ? *found : leads(*first_) ? first_ : nullptr;
  }
  [[nodiscard]] Entry* of_kernels() const { return kernels_; }
  [[nodiscard]] Entry* of_code() const {
    Entry* code = of("code");
    return code != nullptr ? code : kernels_;
  }
  [[nodiscard]] Entry* of_metric(const unit::Metric& metric) const {
    if (by_item_.contains(metric.name)) return of(metric.name);
    if (metric.kind != unit::Kind::count) return of_time(metric);
    if (unit::buffer_label(metric.name)) return of("buffers");
    if (unit::is_summed_cost(metric.base)) return kernels_ != nullptr ? kernels_ : of_code();
    if (unit::names_work(metric.name)) return of_work(metric.name);
    const bool of_context = metric.scope == unit::Scope::per_context_token;
    const bool taken = by_item_.contains(metric.base);
    return of(of_context && !taken ? "context " + metric.base : metric.base);
  }

 private:
  // Dispatches go with the kernels that make up most of their change; on the CPU its ops are such.
  void own_counts_of_kernels() {
    const bool cpu = board_.evidence.device == "cpu";
    const char* base = cpu ? "cpu_ops" : "dispatches";
    const double change = board_.found.count(base).value();
    std::map<const Entry*, double> shares;  // in the direction of the change
    for (const Move& kernel : board_.found.kernels) {
      const Entry* owner = look_up(by_item_, "kernel " + kernel.name, nullptr);
      shares[owner] += kernel.delta().value() * (change < 0 ? -1 : 1);
    }
    const Entry* known = look_up(by_item_, base, nullptr);
    const bool contradicted = known != nullptr && look_up(shares, known, 0) < 0;
    if (change == 0 || (cpu ? known != nullptr : !contradicted)) return;
    const auto share = [&](const Entry& entry) { return look_up(shares, &entry, 0); };
    const auto most = std::ranges::max_element(board_.entries, {}, share);
    if (share(*most) > 0) by_item_[base] = &*most;
  }

  [[nodiscard]] Entry* of_work(const std::string& name) const {
    if (name.find("_calls:") == std::string::npos) return of_code();
    return kernels_ != nullptr ? kernels_ : of("cpu_ops");
  }

  // The first that may be why.
  [[nodiscard]] Entry* of_time(const unit::Metric& metric) const {
    const double* ratio = look_up(board_.found.times, metric.name);
    if (ratio == nullptr) return nullptr;
    const bool slower = (metric.better == unit::Better::lower) == (*ratio > 1);
    return first_of(board_.entries, [&](const Entry& entry) {
      const Finding& finding = entry.finding;
      if (finding.also) return false;
      if (finding.kind == kind::time_changed) return true;
      if (metric.kind == unit::Kind::quality) return false;
      if (metric.kind == unit::Kind::memory) {
        return leads(entry) || finding.kind == kind::memory_changed;
      }
      return may_make(finding, slower);
    });
  }

  Board& board_;
  Entry* first_;
  Entry* kernels_ = nullptr;  // the first that explains any
  std::map<std::string, Entry*> by_item_;
};

void claim(Entry* owner, const std::string& judgement) {
  if (owner != nullptr) owner->finding.claims.push_back(judgement);
}

}  // namespace

void add_claims(Board& board) {
  if (!board.evidence.gate || board.entries.empty()) return;
  const Owners owners(board);
  for (const auto& [name, metric] : moved_metrics(board)) {
    claim(owners.of_metric(metric), name);
  }
  if (!board.found.kernels.empty()) claim(owners.of_kernels(), "kernels");
  if (!board.evidence.code.empty()) claim(owners.of_code(), "kernel_code");
  const bool misplaced = board.evidence.gate->placement == verdict::Outcome::fail;
  if (misplaced || !board.found.cpu_ops.empty()) claim(owners.of("cpu_ops"), "placement");
  Entry& first = owners.leader();
  for (Entry& entry : board.entries) {
    if (&entry == &first || !follows(entry, first)) continue;
    std::ranges::move(std::exchange(entry.finding.claims, {}),
                      std::back_inserter(first.finding.claims));
  }
}

}  // namespace weir::explain
