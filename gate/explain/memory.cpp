// Finds changes of device memory: its uses and how often it is requested. Also pipelines that are
// made while tokens are generated.
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// Uses of memory in causal order: with a longer cache intermediate results grow as well.
struct MemoryUse {
  const char *base, *what, *look_at;
};
constexpr MemoryUse k_uses[] = {
    {"weights_bytes", "The weights take",
     "which layers are on the device (-ngl), types of tensors."},
    {"kv_cache_bytes", "The KV cache takes",
     "the context (-c), sequences (-np), types of the cache (-ctk, -ctv)."},
    {"compute_bytes", "Intermediate results take",
     "the batch (-b, -ub), flash attention (-fa), fused ops."},
    {"device_memory_peak_bytes", "The engine takes", "buffers beside weights, cache and results."},
    {"bound_buffer_peak_bytes", "Buffers take", "which buffers the engine makes, and how large."}};

// Returns " = 512 tokens of f16 or 256 tokens of f32": the lengths that a KV cache of so many
// bytes may have, in multiples of 256 tokens. "" if there is none.
std::string context_text(const ModelFacts* model, const Rational& bytes) {
  constexpr std::int64_t k_tokens_step = 256;
  struct Type {
    const char* name;
    std::int64_t bytes, numbers;
  };
  constexpr Type k_types[] = {{"f16", 2, 1}, {"q8_0", 34, 32}, {"f32", 4, 1}};
  if (model == nullptr || !model->cached_numbers || !bytes.is_integer()) return "";
  std::vector<std::string> lengths;
  for (const Type& type : k_types) {
    const auto bytes_per_token = *model->cached_numbers * type.bytes / type.numbers;
    if (bytes_per_token == 0 || bytes.numerator() % (bytes_per_token * k_tokens_step) != 0)
      continue;
    lengths.push_back(
        fmt::format("{} tokens of {}", bytes.numerator() / bytes_per_token, type.name));
  }
  return lengths.empty() ? "" : " = " + text::join(lengths, " or ");
}

// Returns true if the KV cache changed by at least an eighth, which is more than its padding,
// while no work moved: then the cache is the cause of other changes.
bool is_cache_cause(const ExplainState& state) {
  const auto bytes = exact_values(state.evidence, "kv_cache_bytes");
  // A gained fusion comes with another build.
  constexpr std::array k_moves_of_work = {kind::work_moved_to_cpu, kind::work_moved_to_gpu,
                                          kind::fusion_gained};
  const auto moves_work = [&](const ExplainState::Entry& entry) {
    return holds(k_moves_of_work, entry.finding.kind);
  };
  return bytes && state.differences.levels.contains("kv_cache_bytes") && !state.entries.empty() &&
         !state.any_entry(moves_work) &&
         8 * absolute_value(state.differences.levels.at("kv_cache_bytes")) >= bytes->before.value();
}

// Returns true if memory of this use changed by a tenth or more, and nothing else but a few
// barriers of many.
bool are_buffers_cause(const ExplainState& state, const char* level) {
  constexpr double k_much = 0.1, k_little = 0.05;
  const auto bytes = exact_values(state.evidence, level);
  const auto barriers = exact_counts(state.evidence, "barriers");
  return bytes && barriers && state.differences.counts.size() == 1 &&
         state.differences.kernels.empty() && state.differences.graph.empty() &&
         state.evidence.code.empty() &&
         absolute_value(state.differences.levels.at(level)) >= k_much * bytes->before.value() &&
         state.differences.count("barriers") != k_zero &&
         absolute_value(state.differences.count("barriers")) <= k_little * barriers->before.value();
}

// Returns one line on memory that changed: "kv cache: 512 KiB = 256 tokens of f16 to 1.00 MiB =
// 512 tokens of f16 (+512 KiB)".
std::string level_text(const ExplainState& state, const std::string& name,
                       const ExactCounts& both) {
  const unit::Metric metric = unit::find_metric(name).value_or(unit::Metric{});
  const auto value_text = [&](const Rational& bytes) {
    return unit::show(metric, bytes.value()) +
           (name == "kv_cache_bytes" ? context_text(state.model, bytes) : "");
  };
  const Rational delta = both.delta().value_or(k_zero);
  const std::string label = name.ends_with("_bytes") ? name.substr(0, name.size() - 6) : name;
  const char* sign = delta > k_zero ? "+" : "\u2212";
  return fmt::format("{}: {} to {} ({}{})", readable_name(label), value_text(both.before),
                     value_text(both.after), sign, unit::show(metric, absolute_value(delta)));
}

// Returns a finding about memory for one use, such as the KV cache. It explains all memory that
// changed in the same direction. `is_explained_elsewhere`: an earlier finding says where to look.
Finding memory_finding(ExplainState& state, const MemoryUse& use, bool is_explained_elsewhere) {
  const Rational delta = state.differences.levels.at(use.base);
  Finding finding = make_finding(kind::memory_changed, use.base);
  finding.delta = delta;
  finding.headline = fmt::format("{} {} memory.", use.what, delta > k_zero ? "more" : "less");
  if (!is_explained_elsewhere) finding.look_at = use.look_at;
  const bool has_cache_size = state.model != nullptr && state.model->cached_numbers;
  for (const auto& [name, change] : state.differences.levels) {
    if (!same_sign(change, delta)) continue;
    state.mark_explained(name);
    const auto both = exact_values(state.evidence, name);
    if (!both) continue;
    finding.lines.push_back(level_text(state, name, *both));
    if (name == "kv_cache_bytes" && has_cache_size) {
      finding.lines.push_back(fmt::format("the cache of a token: {} = {} numbers",
                                          state.model->cached_numbers_text,
                                          *state.model->cached_numbers));
    }
  }
  return finding;
}

// Places of findings in the report: a smaller one is listed first.
constexpr int k_rank_cause = 0, k_rank_likely = 1, k_rank_consequence = 2, k_rank_opposite = 3;

// Adds a finding if devices are asked for memory more or less often per token.
void find_allocations(ExplainState& state) {
  const Rational allocations = state.unexplained_change("allocations");
  if (allocations == k_zero) return;
  Finding finding = state.finding_about(kind::memory_changed, "allocations");
  finding.headline = fmt::format("Devices are asked for memory {} often{}.",
                                 allocations > k_zero ? "more" : "less", state.per_unit_text());
  add_number({"allocations", allocations}, finding);
  if (allocations > k_zero) {
    finding.cause = "a buffer is made for each use, where one was kept before.";
    finding.look_at = "what is allocated between two submissions.";
  }
  state.mark_explained("allocations");
  // More work has more results, each with its own memory.
  const Rational dispatches = state.differences.count("dispatches");
  const bool is_consequence = same_sign(dispatches, allocations) &&
                              absolute_value(allocations) <= absolute_value(dispatches);
  state.add(std::move(finding), /*units=*/2 * absolute_value(allocations),
            is_consequence ? k_rank_consequence : k_rank_likely);
}

// Adds a finding about the first use of memory that takes more or less, and one about the first
// that changed in the other direction.
void find_memory_uses(ExplainState& state) {
  bool has_first = false, first_grew = false;
  for (const MemoryUse& use : k_uses) {
    const Rational* delta = look_up(state.differences.levels, use.base);
    if (delta == nullptr) continue;
    const bool grew = *delta > k_zero;
    if (has_first && grew == first_grew) continue;
    const bool has_findings = !state.entries.empty();
    if (has_first) {
      state.add(memory_finding(state, use, /*is_explained_elsewhere=*/has_findings), /*units=*/0.5,
                k_rank_opposite);
      return;
    }
    // A setting fixes the size of a cache, and kernels that read it depend on its shape and type.
    // Barriers may follow from the place of buffers.
    const bool is_cause = is_cache_cause(state) || are_buffers_cause(state, use.base);
    // Changed work needs other memory, so that the finding about work comes first.
    const bool is_explained_elsewhere = !is_cause && has_findings;
    state.add(memory_finding(state, use, is_explained_elsewhere), /*units=*/1,
              is_cause ? k_rank_cause : k_rank_consequence);
    has_first = true;
    first_grew = grew;
  }
}

}  // namespace

// Finds memory that is requested more or less often, and the uses that take more or less.
void find_memory(ExplainState& state) {
  find_allocations(state);
  find_memory_uses(state);
}

// Finds pipelines that are made late: at some length that a shorter run did not reach, or for each
// token.
void find_made_late(ExplainState& state) {
  std::map<std::int64_t, Rational> changes;  // by length
  for (const auto& [name, value_after] : state.evidence.after.metrics) {
    const auto metric = unit::find_metric(name);
    if (!metric || metric->base != "pipelines" || metric->scope != unit::Scope::at_length) continue;
    const auto both = exact_values(state.evidence, name);
    if (both) changes[metric->length.value_or(0)] = both->delta().value_or(k_zero);
  }
  const Rational per_token = state.unexplained_change("pipelines");
  if (changes.empty() && per_token == k_zero) return;
  Finding finding = state.finding_about(kind::made_late, "pipelines");
  state.mark_explained("shader_modules");
  state.mark_explained("pipelines");
  if (changes.empty()) {
    // In a burst, a pipeline that is made once is a fraction per token.
    const bool of_requests =
        state.evidence.scope == unit::Scope::per_request || !per_token.is_integer();
    const std::string when = of_requests ? "while requests are served" : "for each token";
    if (per_token > k_zero) {
      finding.headline = fmt::format("Pipelines are made {}: {} until they are compiled.", when,
                                     of_requests ? "requests wait" : "it waits");
    } else {
      finding.headline = fmt::format("Fewer pipelines are made {}.", when);
    }
    add_number({"pipelines", per_token}, finding);
    // Other kernels have other pipelines.
    const bool follows = per_token < k_zero || !state.differences.kernels.empty();
    return state.add(std::move(finding), /*units=*/10 * absolute_value(per_token),
                     /*rank=*/follows ? 2 : 0);
  }
  std::optional<std::pair<std::int64_t, Rational>> shorter;
  for (const auto& [length, change] : changes) {
    // A pipeline that the shortest run makes too is made at the start.
    const auto before = shorter;
    shorter = {length, change};
    if (!before || change <= before->second) continue;
    finding.metric = fmt::format("pipelines_at_{}", length);
    finding.delta = change;
    finding.headline = fmt::format(
        "{} made between token {} and {}: it waits until they are compiled.",
        change == Rational(1) ? "A pipeline is" : "Pipelines are", before->first, length);
    finding.lines.push_back(fmt::format("+{} pipelines", change.str()));
    finding.cause = "a kernel that is needed late is not compiled at the start.";
    finding.look_at =
        "what changes with the length: attention split in parts, another kernel from a size on.";
    return state.add(std::move(finding), /*units=*/10, /*rank=*/0);
  }
}

}  // namespace weir::explain
