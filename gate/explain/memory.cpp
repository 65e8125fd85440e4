// Memory that is taken of devices: what it is for, how often it is asked for; and pipelines that
// are made while tokens are generated.
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// In causal order: with a longer cache intermediate results grow as well.
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

// "= 512 tokens of f16, 256 of f32": lengths that caches are made in.
std::string context_words(const ModelFacts* model, const Rational& bytes) {
  constexpr std::int64_t k_step = 256;
  struct Type {
    const char* name;
    std::int64_t bytes, numbers;
  };
  constexpr Type k_types[] = {{"f16", 2, 1}, {"q8_0", 34, 32}, {"f32", 4, 1}};
  if (model == nullptr || !model->cached_numbers || !bytes.whole()) return "";
  std::vector<std::string> ways;
  for (const Type& type : k_types) {
    const auto of_a_token = *model->cached_numbers * type.bytes / type.numbers;
    if (of_a_token == 0 || bytes.numerator() % (of_a_token * k_step) != 0) continue;
    ways.push_back(fmt::format("{} tokens of {}", bytes.numerator() / of_a_token, type.name));
  }
  return ways.empty() ? "" : " = " + text::join(ways, " or ");
}

// The cache is of another size, by more than its padding, and no work moved.
bool cache_leads(const Board& board) {
  const auto bytes = exact_values(board.evidence, "kv_cache_bytes");
  // A fusion that is gained comes with another build.
  constexpr std::array k_moved = {kind::work_moved_to_cpu, kind::work_moved_to_gpu,
                                  kind::fusion_gained};
  const auto moved = [&](const Board::Entry& entry) { return holds(k_moved, entry.finding.kind); };
  return bytes && board.found.levels.contains("kv_cache_bytes") && !board.entries.empty() &&
         !board.any_entry(moved) &&
         8 * size_of(board.found.levels.at("kv_cache_bytes")) >= bytes->before.value();
}

// It is another size, by a tenth or more, and beside it only a few barriers of many changed.
bool buffers_lead(const Board& board, const char* level) {
  constexpr double k_much = 0.1, k_little = 0.05;
  const auto bytes = exact_values(board.evidence, level);
  const auto barriers = exact_counts(board.evidence, "barriers");
  return bytes && barriers && board.found.counts.size() == 1 && board.found.kernels.empty() &&
         board.found.graph.empty() && board.evidence.code.empty() &&
         size_of(board.found.levels.at(level)) >= k_much * bytes->before.value() &&
         board.found.count("barriers") != k_none &&
         size_of(board.found.count("barriers")) <= k_little * barriers->before.value();
}

// "kv cache: 512 KiB = 256 tokens of f16 to 1.00 MiB = 512 tokens of f16 (+512 KiB)"
std::string level_words(const Board& board, const std::string& name, const ExactCounts& both) {
  const unit::Metric metric = unit::find_metric(name).value_or(unit::Metric{});
  const auto shown = [&](const Rational& bytes) {
    return unit::show(metric, bytes.value()) +
           (name == "kv_cache_bytes" ? context_words(board.model, bytes) : "");
  };
  const Rational delta = both.delta().value_or(k_none);
  const std::string what = name.ends_with("_bytes") ? name.substr(0, name.size() - 6) : name;
  return fmt::format("{}: {} to {} ({}{})", plain(what), shown(both.before), shown(both.after),
                     delta > k_none ? "+" : "\u2212", unit::show(metric, size_of(delta)));
}

// About the memory of this use, and all that grew, or fell, with it. `caused`: what was found
// before it says where to look.
Finding memory_finding(Board& board, const MemoryUse& use, bool caused) {
  const Rational delta = board.found.levels.at(use.base);
  Finding finding = finding_of(kind::memory_changed, use.base);
  finding.delta = delta;
  finding.headline = fmt::format("{} {} memory.", use.what, delta > k_none ? "more" : "less");
  if (!caused) finding.look_at = use.look_at;
  for (const auto& [name, change] : board.found.levels) {
    if ((change > k_none) != (delta > k_none)) continue;
    board.take(name);
    const auto both = exact_values(board.evidence, name);
    if (!both) continue;
    finding.lines.push_back(level_words(board, name, *both));
    if (name != "kv_cache_bytes" || board.model == nullptr || !board.model->cached_numbers)
      continue;
    finding.lines.push_back(fmt::format("the cache of a token: {} = {} numbers",
                                        board.model->cached_words, *board.model->cached_numbers));
  }
  return finding;
}

}  // namespace

void find_memory(Board& board) {
  const Rational asked = board.open("allocations");
  if (asked != k_none) {
    Finding finding = board.about(kind::memory_changed, "allocations");
    finding.headline = fmt::format("Devices are asked for memory {} often{}.",
                                   asked > k_none ? "more" : "less", board.per());
    add_number({"allocations", asked}, finding);
    if (asked > k_none) {
      finding.cause = "a buffer is made for each use, where one was kept before.";
      finding.look_at = "what is allocated between two submissions.";
    }
    board.take("allocations");
    // More work has more results, each in memory of its own.
    const Rational works = board.found.count("dispatches");
    const bool follows = (works > k_none) == (asked > k_none) && size_of(asked) <= size_of(works);
    board.add(std::move(finding), 2 * size_of(asked), follows ? 2 : 1);
  }
  std::optional<bool> leading;  // grew
  for (const MemoryUse& use : k_uses) {
    const Rational* delta = look_up(board.found.levels, use.base);
    const bool grew = delta != nullptr && *delta > k_none;
    if (delta == nullptr || leading == grew) continue;
    // Work that changed needs other memory: that comes first. But a cache is as large as a setting
    // says, and kernels that read it are chosen by its shape and type; a barrier may follow from
    // where buffers lie. What changed the other way is told last.
    const bool leads = !leading && (cache_leads(board) || buffers_lead(board, use.base));
    const bool caused = !leads && !board.entries.empty();
    board.add(memory_finding(board, use, caused), leading ? 0.5 : 1, leading ? 3 : leads ? 0 : 2);
    if (leading) return;
    leading = grew;
  }
}

// At lengths: what is there from some token on, and was not there before it.
void find_made_late(Board& board) {
  std::map<std::int64_t, Rational> changes;  // by length
  for (const auto& [name, is] : board.evidence.after.metrics) {
    const auto metric = unit::find_metric(name);
    if (!metric || metric->base != "pipelines" || metric->scope != unit::Scope::at_length) continue;
    const auto both = exact_values(board.evidence, name);
    if (both) changes[metric->length.value_or(0)] = both->delta().value_or(k_none);
  }
  const Rational each = board.open("pipelines");
  if (changes.empty() && each == k_none) return;
  Finding finding = board.about(kind::made_late, "pipelines");
  board.take("shader_modules");
  board.take("pipelines");
  if (changes.empty()) {
    // Of a burst a pipeline that is made once is a share of one a token.
    const bool of_requests = board.evidence.scope == unit::Scope::per_request || !each.whole();
    const std::string when = of_requests ? "while requests are served" : "for each token";
    finding.headline = each > k_none
                           ? fmt::format("Pipelines are made {}: {} until they are compiled.", when,
                                         of_requests ? "requests wait" : "it waits")
                           : fmt::format("Fewer pipelines are made {}.", when);
    add_number({"pipelines", each}, finding);
    // Other kernels have pipelines of their own.
    const bool follows = each < k_none || !board.found.kernels.empty();
    return board.add(std::move(finding), 10 * size_of(each), follows ? 2 : 0);
  }
  std::optional<std::pair<std::int64_t, Rational>> shorter;
  for (const auto& [length, change] : changes) {
    // What the shortest run makes as well is made at the start.
    const bool late = shorter && change > shorter->second;
    const auto before = std::exchange(shorter, std::pair(length, change));
    if (!late) continue;
    finding.metric = fmt::format("pipelines_at_{}", length);
    finding.delta = change;
    finding.headline = fmt::format(
        "{} made between token {} and {}: it waits until they are compiled.",
        change == Rational(1) ? "A pipeline is" : "Pipelines are", before->first, length);
    finding.lines.push_back(fmt::format("+{} pipelines", change.str()));
    finding.cause = "a kernel that is needed late is not compiled at the start.";
    finding.look_at =
        "what changes with the length: attention split in parts, another kernel from a size on.";
    return board.add(std::move(finding), 10, 0);
  }
}

}  // namespace weir::explain
