// The table of metrics: names, labels, units, directions; and texts of their values.
#include "gate/unit/metric.hpp"

#include <charconv>
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/unit/kernel_cost.hpp"

namespace weir::unit {
namespace {

// A metric that is measured over a whole process or load, without a scope.
struct NamedMetric {
  const char* name;
  const char* label;
  Kind kind;
  Unit unit;
  Better better;
  const char* about;
};

constexpr std::array k_named_metrics{
    NamedMetric{"decode_tokens_per_second", "decode tok/s", Kind::time, Unit::tokens_per_second,
                Better::higher, "tokens generated per second, one request"},
    NamedMetric{"prefill_tokens_per_second", "prefill tok/s", Kind::time, Unit::tokens_per_second,
                Better::higher, "prompt tokens processed per second"},
    NamedMetric{"output_tokens_per_second", "output tok/s", Kind::time, Unit::tokens_per_second,
                Better::higher, "tokens that a server generated per second, all requests"},
    NamedMetric{"requests_per_second", "requests/s", Kind::time, Unit::requests_per_second,
                Better::higher, "requests that a server answered per second"},
    NamedMetric{"goodput_requests_per_second", "good requests/s", Kind::time,
                Unit::requests_per_second, Better::higher,
                "answered requests per second that kept the engine's slo"},
    NamedMetric{"capacity_requests_per_second", "capacity", Kind::time, Unit::requests_per_second,
                Better::higher, "highest rate of requests at which a server keeps its slo"},
    NamedMetric{"load_seconds", "load time", Kind::time, Unit::seconds, Better::lower,
                "time to load the model"},
    NamedMetric{"cold_time_to_first_token_seconds", "cold time to first token", Kind::time,
                Unit::seconds, Better::lower,
                "time to first token of the first request that a started server is sent"},
    NamedMetric{"iteration_seconds", "iteration time", Kind::time, Unit::seconds, Better::lower,
                "one iteration of each benchmark of a program, added up"},
    NamedMetric{"peak_rss_bytes", "peak memory", Kind::memory, Unit::bytes, Better::lower,
                "resident memory of the largest of the engine's processes"},
    NamedMetric{"perplexity", "perplexity", Kind::quality, Unit::ratio, Better::lower,
                "perplexity, as the engine reports it"},
    NamedMetric{"greedy_agreement", "greedy agreement", Kind::quality, Unit::ratio, Better::higher,
                "share of tokens that a reference also picks"},
    NamedMetric{k_divergence.data(), "output KL", Kind::quality, Unit::ratio, Better::lower,
                "divergence of the likely tokens from the base's, in nats a token"},
    NamedMetric{"process_cpu_seconds", "CPU time", Kind::usage, Unit::seconds, Better::lower,
                "processor time of all threads of a timed process"},
    NamedMetric{"voluntary_switches", "voluntary switches", Kind::usage, Unit::count, Better::lower,
                "context switches of a timed process because a thread of it waited"},
    NamedMetric{"involuntary_switches", "involuntary switches", Kind::usage, Unit::count,
                Better::lower, "context switches of a timed process because it was another's turn"},
    NamedMetric{"minor_faults", "minor faults", Kind::usage, Unit::count, Better::lower,
                "pages that a timed process touched for the first time"},
    NamedMetric{"major_faults", "major faults", Kind::usage, Unit::count, Better::lower,
                "pages that were read from a disk for a timed process"},
    NamedMetric{"draft_acceptance", "draft acceptance", Kind::count, Unit::ratio, Better::higher,
                "share of drafted tokens that the model accepted"},
    NamedMetric{"cached_prompt_share", "prompt from cache", Kind::count, Unit::ratio,
                Better::higher, "share of prompt tokens that the server took from a cache"},
    NamedMetric{"preemptions_per_request", "preemptions/request", Kind::count, Unit::count,
                Better::lower, "requests that a server put off for want of memory, per request"},
    NamedMetric{"server_queue_seconds", "queue time", Kind::time, Unit::seconds, Better::lower,
                "mean time that requests waited in the server's queue"},
    NamedMetric{"server_batch_size", "batch size", Kind::quality, Unit::ratio, Better::higher,
                "requests that a step of the server computes, as it says itself"},
    NamedMetric{"kv_cache_share", "KV cache in use", Kind::quality, Unit::ratio, Better::lower,
                "share of the KV cache in use at the end of a load"},
    NamedMetric{k_failed_requests.data(), "failed requests", Kind::count, Unit::count,
                Better::lower, "requests of a load that failed, where a limit allows some"},
    NamedMetric{k_fits.data(), "fits", Kind::count, Unit::count, Better::higher,
                "1 where the model fits into the memory of a twin, else 0"},
};

// Latencies of requests, in seconds: their middle ("BASE_seconds") and two percentiles
// ("BASE_p90_seconds").
constexpr std::array k_latencies{
    std::pair{"time_to_first_token", "time to first token"},
    std::pair{"time_per_output_token", "time per output token"},
    std::pair{"inter_token_latency", "inter-token latency"},
    std::pair{"end_to_end_latency", "end-to-end latency"},
};
constexpr std::array k_percentiles{"", "p90", "p99"};

// Values that may get worse while a server runs ("BASE_drift").
constexpr std::array k_drifts{
    std::pair{"time_to_first_token", "time to first token"},
    std::pair{"time_per_output_token", "time per output token"},
    std::pair{"end_to_end_latency", "end-to-end latency"},
    std::pair{"resident_memory", "resident memory"},
    std::pair{"draft_acceptance", "draft acceptance"},
    std::pair{"cached_prompt_share", "prompt from cache"},
};

struct Count {
  const char* base;
  Unit unit;
  const char* about;
  Better better = Better::lower;
  bool level = false;           // how much there is at once, which no length adds up
  bool may_be_missing = false;  // in stored baselines
};
constexpr Count newer(const char* base, Unit unit, const char* about) {
  return {.base = base, .unit = unit, .about = about, .may_be_missing = true};
}
constexpr Count level(const char* base, const char* about) {
  return {.base = base, .unit = Unit::bytes, .about = about, .level = true, .may_be_missing = true};
}

constexpr std::array k_counts{
    Count{"dispatches", Unit::count, "kernels that reach the device"},
    Count{"barriers", Unit::count, "pipeline barriers that reach the device"},
    Count{"syncs", Unit::count, "waits of the CPU for work on the device"},
    Count{"copies", Unit::count, "copies and fills that reach the device"},
    Count{"submits", Unit::count, "queue submissions with work in them"},
    // More of them is what one wants: graphs that were cut into more raise the submits as well.
    Count{"graph_launches", Unit::count, "graphs of CUDA or HIP launched", Better::higher},
    Count{"graph_instantiations", Unit::count, "graphs of CUDA or HIP made ready for launching"},
    Count{"programmatic_launches", Unit::count,
          "kernels of CUDA that may start before the one ahead of them ends", Better::higher},
    Count{"cublas_calls", Unit::count, "calls of cuBLAS and cuDNN that compute"},
    Count{"hipblas_calls", Unit::count, "calls of hipBLAS, hipBLASLt and rocBLAS that compute"},
    Count{"device_memory_bytes", Unit::bytes,
          "most memory that was taken of each device of CUDA or HIP at once, added up"},
    level("device_memory_peak_bytes", "most memory that was taken of devices at once"),
    level("device_memory_steady_bytes",
          "memory that was taken of devices when work was submitted last"),
    level("bound_buffer_peak_bytes", "most memory that Vulkan's buffers took up at once"),
    level("weights_bytes", "most that ggml's buffers of weights took up at once"),
    level("kv_cache_bytes", "most that ggml's buffers of caches took up at once"),
    level("compute_bytes", "most that ggml's buffers of intermediate results took up at once"),
    newer("small_read_backs", Unit::count,
          "copies of at most 64 bytes from a device to the program"),
    newer("rank_differences", Unit::count,
          "kernels, copies and waits by which processes of one role differ"),
    newer("allocations", Unit::count, "pieces of memory that devices were asked for"),
    newer("pipelines", Unit::count, "compute pipelines made"),
    newer("shader_modules", Unit::count, "shader modules made"),
    newer("uploaded_bytes", Unit::bytes, "bytes that ggml moved from the host to a device"),
    Count{"graphs", Unit::count, "ggml graphs computed"},
    Count{"splits", Unit::count, "parts of a ggml graph, each on one backend"},
    Count{"cpu_ops", Unit::count, "ops that the CPU computes"},
    Count{"tensor_copies", Unit::count, "ggml tensors copied between backends"},
    Count{"tensor_sets", Unit::count, "writes of ggml tensors"},
    Count{"copied_bytes", Unit::bytes, "bytes of ggml tensors copied between backends"},
    Count{"backend_syncs", Unit::count, "waits for a backend of ggml"},
    Count{"instructions", Unit::count, "instructions of the CPU"},
    newer("python_calls", Unit::count, "calls of Python's functions in the main thread"),
    newer("c_calls", Unit::count, "calls of functions in C by Python's main thread"),
    newer("python_lines", Unit::count, "lines of Python that the main thread ran"),
    newer("python_thread_calls", Unit::count, "calls in other threads of Python"),
    newer("import_calls", Unit::count, "calls while Python imports a module"),
    newer("host_calls", Unit::count,
          "calls in all threads and processes of Python, without imports"),
    Count{"unseen_threads", Unit::count, "threads that ran Python past the probe", Better::lower,
          true, true},
    newer("costly_calls", Unit::count,
          "calls from Python that wait, sleep, lock, log, copy deeply or read a value back"),
    newer("costly_thread_calls", Unit::count,
          "costly calls in other threads, but those that wait for a thread"),
    newer("system_calls", Unit::count,
          "system calls but those of memory, futexes and polls, which are counted apart"),
    newer("memory_calls", Unit::count, "system calls that map and unmap memory"),
    newer("futex_waits", Unit::count, "system calls by which a thread waits for another"),
    newer("futex_wakes", Unit::count, "system calls by which a thread lets others go on"),
    newer("poll_calls", Unit::count, "system calls that wait for a file or a while, or yield"),
    newer("opened_files", Unit::count, "files that the engine opened"),
    newer("read_bytes", Unit::bytes, "bytes that it read of files, pipes and sockets"),
    newer("mapped_file_bytes", Unit::bytes, "bytes of files that it mapped into its memory"),
    level("host_anonymous_peak_bytes", "most memory of its own that a process had in use at once"),
    level("host_file_peak_bytes", "most of mapped files that a process had in memory at once"),
    level("host_shared_peak_bytes", "most shared memory that a process had in use at once"),
    Count{"threads_peak", Unit::count, "most threads that an engine had at once", Better::lower,
          true, true},
    Count{"processes", Unit::count, "processes of one role that worked", Better::lower, true, true},
    Count{"allowed_cpus", Unit::count, "fewest CPUs that a thread was allowed to run on",
          Better::higher, true, true},
    // Costs of compiled kernels (unit/kernel_cost.hpp), over all waves that they run in.
    Count{"estimated_cycles", Unit::count, "cycles of kernels, as RADV estimates them: no time"},
    Count{"spilled_registers", Unit::count,
          "registers that kernels keep in memory, over all waves"},
    Count{"kernel_instructions", Unit::count,
          "instructions in the code of kernels, over all waves"},
};

// Metrics of single ops, kernels and buffers. Each is named by its prefix and the engine's name of
// the op, as in "kernel:mul_mat_vec".
struct WorkMetric {
  std::string prefix, label;
  Kind kind = Kind::count;
  Unit unit = Unit::count;
  Better better = Better::lower;
};
// Returns the metrics of single ops, kernels and buffers: prefix of the name, label, kind and unit.
const std::vector<WorkMetric>& work_metrics() {
  static const auto k_all = [] {
    std::vector<WorkMetric> all{{"op:", "time of ", Kind::time, Unit::seconds},
                                {"kernel:", "time of ", Kind::time, Unit::seconds},
                                {"op_calls:", "calls of "},
                                {"kernel_calls:", "calls of "},
                                {"buffer:", "time of buffers ", Kind::time, Unit::seconds},
                                {std::string(k_buffers), "buffers "}};
    for (const KernelCost& cost : kernel_costs()) {
      all.push_back({fmt::format("{}:", cost.name), fmt::format("{} of ", cost.label), Kind::count,
                     cost.name.ends_with("_bytes") ? Unit::bytes : Unit::count,
                     cost.more_is_better ? Better::higher : Better::lower});
    }
    return all;
  }();
  return k_all;
}
constexpr std::size_t k_longest_work = 100;
constexpr std::size_t k_longest_name = 128;  // a metric's name

constexpr auto k_units = names_in_order<Unit>("s", "B", "count", "tok/s", "requests/s", "ratio");
constexpr auto k_directions = names_in_order<Better>("higher", "lower");
constexpr auto k_kinds = names_in_order<Kind>("time", "memory", "quality", "usage", "count");

const WorkMetric* find_work(std::string_view name) {
  return find_first(work_metrics(),
                    [&](const WorkMetric& work) { return name.starts_with(work.prefix); });
}

// Returns the bytes of the character at `at` if it is UTF-8 that can be shown and is no blank;
// else 0.
std::size_t printable_bytes(std::string_view text, std::size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0x80) return text[at] > ' ' && text[at] != 0x7F;
  std::size_t end = at;
  const char32_t point = text::next_code_point(text, end);
  const std::string_view character = text.substr(at, end - at);
  const bool is_blank = point == 0xA0 || point == 0x1680 || point == 0x202F || point == 0x205F ||
                        point == 0x3000 || (point >= 0x2000 && point <= 0x200A);
  return !is_blank && text::printable(character) == character ? end - at : 0;
}

// Returns true if all characters can be shown and none is a blank.
bool is_printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = printable_bytes(text, at);
    if (bytes == 0) return false;
    at += bytes;
  }
  return true;
}

// Suffix of a metric's name for its scope, and the same in its label.
struct ScopeName {
  Scope scope;
  std::string_view suffix, label;
};
constexpr std::array k_scopes{
    ScopeName{Scope::per_token, "_per_token", "/token"},
    ScopeName{Scope::per_prefill, "_per_prefill", "/prefill"},
    ScopeName{Scope::fixed, "_fixed", " fixed"},
    ScopeName{Scope::per_request, "_per_request", "/request"},
    ScopeName{Scope::at_zero_context, "_at_zero_context", " at zero context"},
    ScopeName{Scope::per_context_token, "_per_context_token", "/context token"},
};

// Times per token that are fitted over depths.
constexpr std::array k_times_over_context{
    std::pair{"time_per_output_token_seconds", "token time"},
    std::pair{"time_per_prompt_token_seconds", "prompt time"},
};
constexpr std::array k_over_context{Scope::at_zero_context, Scope::per_context_token};

// Returns the role in "rank:syncs_per_token"; "" if there is none.
std::string_view role_of(std::string_view name) {
  const std::string_view role = name.substr(0, std::min(name.find(':'), name.size()));
  const bool is_role = role.size() < name.size() && !role.empty() &&
                       role.size() <= k_max_role_bytes && find_work(name) == nullptr &&
                       std::ranges::all_of(role, [](char c) { return c >= 'a' && c <= 'z'; });
  return is_role ? role : std::string_view();
}

// Returns the suffix and label of `scope`; both empty for scopes that have none.
ScopeName scope_name(Scope scope) {
  const auto* scope_row = std::ranges::find(k_scopes, scope, &ScopeName::scope);
  return scope_row == k_scopes.end() ? ScopeName{scope, "", ""} : *scope_row;
}

const Count* find_count(std::string_view base) {
  return find_first(k_counts, [&](const Count& count) { return base == count.base; });
}

// A metric with its texts. `label` and `about` are "" where they follow from base and scope.
struct MetricInfo {
  Metric metric;
  std::string label{}, about{};
};

// Returns all metrics with a fixed name. Those of single ops and `_at_LENGTH` are not in it.
const std::map<std::string, MetricInfo, std::less<>>& metric_table() {
  static const auto k_table = [] {
    std::map<std::string, MetricInfo, std::less<>> infos;
    for (const NamedMetric& metric : k_named_metrics) {
      infos[metric.name] = {custom_metric(metric.name, metric.kind, metric.unit, metric.better),
                            metric.label, metric.about};
    }
    for (const auto& [base, title] : k_latencies) {
      for (const std::string_view percentile : k_percentiles) {
        const bool is_median = percentile.empty();
        const std::string name =
            fmt::format("{}_{}{}seconds", base, percentile, is_median ? "" : "_");
        infos[name] = {custom_metric(name, Kind::time, Unit::seconds, Better::lower),
                       fmt::format("{}{}{}", title, is_median ? "" : " ", percentile),
                       fmt::format("{} of requests, {}", title, is_median ? "median" : percentile)};
      }
    }
    for (const auto& [base, title] : k_drifts) {
      const std::string name = fmt::format("{}_drift", base);
      infos[name] = {custom_metric(name, Kind::count, Unit::ratio, Better::lower),
                     fmt::format("{} drift", title),
                     fmt::format("by how much {} got worse over a run, beyond chance", title)};
    }
    for (const Count& count : k_counts) {
      if (count.level) {
        infos[count.base] = {count_metric(count.base, Scope::whole_run), "", count.about};
        continue;
      }
      for (const auto& [scope, suffix, label] : k_scopes) {
        const Metric metric = count_metric(count.base, scope);
        // Counts of instructions vary a little, so no line over depths is fitted to them.
        if (is_over_context(metric) && metric.base == "instructions") continue;
        infos[metric.name] = {metric, "", count.about};
      }
    }
    for (const auto& [base, head] : k_times_over_context) {
      for (const Scope scope : k_over_context) {
        const ScopeName scope_text = scope_name(scope);
        const std::string name = fmt::format("{}{}", base, scope_text.suffix);
        infos[name] = {{name, base, Kind::time, Unit::seconds, Better::lower, scope, {}},
                       fmt::format("{}{}", head, scope_text.label),
                       "time per token, fitted over the prompt's depths"};
      }
    }
    return infos;
  }();
  return k_table;
}

// Returns `value` with about three significant digits.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size >= 1e6 || (size > 0 && size < 0.001)) return fmt::format("{:.3g}", value);
  // Three digits of the rounded number: 99.97 is "100".
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

struct NamedScale {
  std::string_view name;
  Scale scale;
};
constexpr double k_kibi = 1024, k_mebi = k_kibi * k_kibi, k_gibi = k_mebi * k_kibi;
constexpr NamedScale k_scales[] = {{"s", {Unit::seconds, 1}},
                                   {"sec", {Unit::seconds, 1}},
                                   {"seconds", {Unit::seconds, 1}},
                                   {"ms", {Unit::seconds, 1e-3}},
                                   {"us", {Unit::seconds, 1e-6}},
                                   {"\xC2\xB5s", {Unit::seconds, 1e-6}},
                                   {"ns", {Unit::seconds, 1e-9}},
                                   {"min", {Unit::seconds, 60}},
                                   {"B", {Unit::bytes, 1}},
                                   {"bytes", {Unit::bytes, 1}},
                                   {"kB", {Unit::bytes, 1e3}},
                                   {"KB", {Unit::bytes, 1e3}},
                                   {"MB", {Unit::bytes, 1e6}},
                                   {"GB", {Unit::bytes, 1e9}},
                                   {"KiB", {Unit::bytes, k_kibi}},
                                   {"MiB", {Unit::bytes, k_mebi}},
                                   {"GiB", {Unit::bytes, k_gibi}},
                                   {"tok/s", {Unit::tokens_per_second, 1}},
                                   {"t/s", {Unit::tokens_per_second, 1}},
                                   {"tokens/s", {Unit::tokens_per_second, 1}},
                                   {"requests/s", {Unit::requests_per_second, 1}},
                                   {"count", {Unit::count, 1}},
                                   {"ratio", {Unit::ratio, 1}},
                                   {"%", {Unit::ratio, 0.01}},
                                   {"", {Unit::count, 1}}};

}  // namespace

std::string about(const Metric& metric) {
  if (const Count* count = find_count(metric.base)) return count->about;
  const MetricInfo* info = look_up(metric_table(), metric.name);
  return info == nullptr ? "" : info->about;
}

// Returns the metric of a count ("dispatches") in a scope, such as per token. `length` (tokens) is
// for Scope::at_length alone.
Metric count_metric(std::string_view base, Scope scope, std::optional<std::int64_t> length) {
  Metric metric;
  metric.base = base;
  metric.kind = Kind::count;
  metric.scope = scope;
  metric.length = length;
  if (const Count* count = find_count(base)) {
    metric.unit = count->unit;
    metric.better = count->better;
  }
  metric.name = metric.base;
  if (scope == Scope::at_length) {
    metric.name += fmt::format("_at_{}", length.value_or(0));
  } else {
    metric.name += scope_name(scope).suffix;
  }
  return metric;
}

bool is_level(std::string_view base) {
  const Count* count = find_count(base);
  return count != nullptr && count->level;
}

bool is_load_count(const Metric& metric) {
  return metric.name == k_failed_requests ||
         (metric.name.ends_with("_drift") && find_metric(metric.name));
}
bool may_be_missing(std::string_view base) {
  const Count* count = find_count(base);
  return count != nullptr && count->may_be_missing;
}

bool is_over_context(const Metric& metric) { return holds(k_over_context, metric.scope); }

// Returns the unit of bytes that a name ends in: "MB" of "heap_mb"; "" without one.
static std::string unit_in_name(std::string_view name) {
  for (const auto& [unit, scale] : k_scales) {
    const bool is_of_bytes = scale.unit == Unit::bytes && scale.factor != 1;
    if (is_of_bytes && name.ends_with("_" + text::lower(unit))) return std::string(unit);
  }
  return "";
}

Metric custom_metric(std::string_view name, Kind kind, Unit unit, Better better) {
  return {std::string(name),
          std::string(name),
          kind,
          unit,
          better,
          Scope::whole_run,
          {},
          unit == Unit::bytes ? unit_in_name(name) : ""};
}

bool is_op_or_kernel_metric(std::string_view text) { return find_work(text) != nullptr; }

std::optional<std::string_view> buffer_label(std::string_view name) {
  if (!name.starts_with(k_buffers)) return std::nullopt;
  return name.substr(k_buffers.size());
}

// Returns a metric's name, made of a prefix ("kernel_calls:") and any text: "_" for blanks, "%07"
// for other bytes, a hash if too long.
std::string work_name(std::string_view prefix, std::string_view name) {
  std::string printable;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t bytes = printable_bytes(name, at);
    if (bytes > 0) {
      printable += name.substr(at, bytes);
    } else if (name[at] == ' ') {
      printable += '_';
    } else {
      printable += fmt::format("%{:02X}", static_cast<unsigned char>(name[at]));
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  if (printable.size() > k_longest_work) {
    constexpr std::size_t k_digits = 12;
    std::size_t end = k_longest_work - k_digits - 1;
    while ((static_cast<unsigned char>(printable[end]) & 0xC0U) == 0x80U) --end;
    printable = printable.substr(0, end) + "~" + short_hash(name, k_digits);
  }
  return std::string(prefix) + printable;
}

std::string role_metric_name(std::string_view role, std::string_view name) {
  return fmt::format("{}:{}", role, name);
}

// Returns the metric of this name: one of the table, a role's ("rank:…"), a single op's or
// kernel's, or "COUNT_at_LENGTH". Nullopt if there is none. A role is a process of the engine.
std::optional<Metric> find_metric(std::string_view name) {
  if (const std::string_view role = role_of(name); !role.empty()) {
    const std::string_view rest = name.substr(role.size() + 1);
    auto metric = rest.find(':') == std::string_view::npos ? find_metric(rest) : std::nullopt;
    if (!metric || find_count(metric->base) == nullptr) return std::nullopt;
    metric->name = name;
    return metric;
  }
  if (const MetricInfo* info = look_up(metric_table(), name)) return info->metric;
  if (const WorkMetric* work = find_work(name)) {
    const std::string_view what = name.substr(work->prefix.size());
    const bool fits = !what.empty() && what.size() <= k_longest_work && is_printable(what);
    if (!fits) return std::nullopt;
    return custom_metric(name, work->kind, work->unit, work->better);
  }
  constexpr std::string_view k_at = "_at_";
  const std::size_t at = name.rfind(k_at);
  const Count* count = at == std::string_view::npos ? nullptr : find_count(name.substr(0, at));
  if (count == nullptr || count->level) return std::nullopt;
  const std::string_view digits = name.substr(at + k_at.size());
  const auto length = text::to_int(digits);
  if (!length || *length < 1 || *length > 1'000'000'000 || digits != std::to_string(*length)) {
    return std::nullopt;
  }
  return count_metric(name.substr(0, at), Scope::at_length, *length);
}

const std::vector<std::string>& metric_names() {
  static const auto k_names =
      collect<std::string>(metric_table(), [](const auto& entry) { return entry.first; });
  return k_names;
}

const std::vector<std::string>& count_bases() {
  static const auto k_bases = collect<std::string>(k_counts, &Count::base);
  return k_bases;
}

// Returns the metric's name for people: "dispatches/token", "dispatches at 8", "decode tok/s".
std::string display_name(const Metric& metric) {
  const MetricInfo* info = look_up(metric_table(), metric.name);
  if (info != nullptr && !info->label.empty()) return info->label;
  if (const WorkMetric* work = find_work(metric.name)) {
    return work->label + metric.name.substr(work->prefix.size());
  }
  // The metric's name is older than the counts of cuDNN.
  std::string base = metric.base == "cublas_calls" ? "library_calls" : metric.base;
  std::ranges::replace(base, '_', ' ');
  if (const std::string_view role = role_of(metric.name); !role.empty()) {
    base = fmt::format("{} {}", role, base);
  }
  if (metric.scope == Scope::at_length) {
    return fmt::format("{} at {}", base, metric.length.value_or(0));
  }
  return fmt::format("{}{}", base, scope_name(metric.scope).label);
}

// Returns a value as people read it: with a unit for seconds and bytes, and with few digits.
std::string show(const Metric& metric, double value) {
  const double magnitude = std::fabs(value);
  switch (metric.unit) {
    case Unit::count:
      // Nobody reads fractions of millions.
      return (value == std::floor(value) || magnitude >= 1e6) && magnitude < 1e15
                 ? fmt::format("{:.0f}", value)
                 : three_digits(value);
    case Unit::tokens_per_second:
      return three_digits(value);
    case Unit::requests_per_second:
    case Unit::ratio:
      return fmt::format("{:.5g}", value);
    case Unit::seconds:
      return show_seconds(value);
    case Unit::bytes: {
      const auto scale = parse_scale(metric.shown_in);
      if (metric.shown_in.empty() || !scale) return show_bytes(value);
      return fmt::format("{} {}", three_digits(value / scale->factor), metric.shown_in);
    }
  }
  return three_digits(value);
}

std::string show_seconds(double seconds) {
  // A number that rounds to 1000 is shown in the next unit.
  const double size = std::fabs(seconds);
  if (size >= 0.9995) return three_digits(seconds) + " s";
  if (size >= 0.9995e-3) return three_digits(seconds * 1e3) + " ms";
  // A token of context costs nanoseconds.
  if (size >= 0.9995e-6 || size == 0) return three_digits(seconds * 1e6) + " us";
  return three_digits(seconds * 1e9) + " ns";
}

std::string show_bytes(double bytes) {
  const double size = std::fabs(bytes);
  if (size >= k_gibi) return three_digits(bytes / k_gibi) + " GiB";
  if (size >= k_mebi) return three_digits(bytes / k_mebi) + " MiB";
  if (size >= k_kibi) return three_digits(bytes / k_kibi) + " KiB";
  return fmt::format("{:.0f} B", bytes);
}

std::string signed_percent_number(double ratio) {
  const char* sign = ratio < 0 ? "\u2212" : "+";
  if (std::isinf(ratio)) return fmt::format("{}\u221e", sign);
  const double size = std::fabs(ratio) * 100;
  const std::string number = fmt::format("{:.{}f}", size, size >= 99.95 ? 0 : 1);
  return number == "0.0" ? number : sign + number;
}

std::string signed_percent(double ratio) { return signed_percent_number(ratio) + " %"; }

std::string percent(double share, int decimals) {
  return fmt::format("{:.{}f} %", share * 100, decimals);
}

std::string_view to_string(Unit unit) { return name_of(k_units, unit); }
std::string_view to_string(Better better) { return name_of(k_directions, better); }
std::string_view to_string(Kind kind) { return name_of(k_kinds, kind); }
std::optional<Unit> parse_unit(std::string_view text) { return value_of(k_units, text); }
std::optional<Better> parse_better(std::string_view text) { return value_of(k_directions, text); }
std::optional<Kind> parse_kind(std::string_view text) { return value_of(k_kinds, text); }

static void fields(Fields& io, Metric& metric) {
  io("name", metric.name);
  io("kind", Named{metric.kind, k_kinds, "has no kind"});
  io("unit", Named{metric.unit, k_units, "has no unit"});
  io("better", Named{metric.better, k_directions, "has no direction"});
  io.optional("shown_in", metric.shown_in);
}

// Reads a metric from JSON: a name that weir knows, or an object with name, kind, unit and
// direction. Nullopt if it is neither. Names are 1 to 128 printable characters without spaces.
std::optional<Metric> metric_from_json(const Json& json) {
  if (json.is_string()) return find_metric(json.get<std::string>());
  const auto read = read_fields<Metric>(json, "metric");
  const bool fits = read && !read->name.empty() && read->name.size() <= k_longest_name &&
                    is_printable(read->name);
  if (!fits) return std::nullopt;
  Metric metric = custom_metric(read->name, read->kind, read->unit, read->better);
  const auto scale = parse_scale(read->shown_in);
  if (!read->shown_in.empty() && scale && scale->unit == metric.unit) {
    metric.shown_in = read->shown_in;
  }
  return metric;
}

void MetricField::put(Json& slot) const {
  slot = find_metric(value.name) == value ? Json(value.name) : write_fields(value);
}

void MetricField::take(const Json& json, Fields& io, const char*) const {
  const auto metric = metric_from_json(json);
  if (!metric) return io.complain(complaint);
  value = *metric;
}

std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
  text = text::trim(text);
  const bool is_number = !text.empty() && (text::is_digit(text.front()) || text.front() == '.');
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!is_number || error != std::errc()) return std::nullopt;
  return std::pair{value, text::trim({rest, text.data() + text.size()})};
}

std::optional<Scale> parse_scale(std::string_view text) {
  const auto* match = std::ranges::find(k_scales, text, &NamedScale::name);
  return match == std::end(k_scales) ? std::nullopt : std::optional(match->scale);
}

// Parses a duration as seconds: "500ms", "120s", "10m", "1 m 21 s". Fails for anything else.
Result<double> parse_duration_seconds(std::string_view text) {
  static const std::map<std::string, double, std::less<>> k_seconds{
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
  // A sum of parts, as show_duration() writes it: "1 m 21 s".
  double seconds = 0;
  std::string_view rest = text;
  do {
    const auto parts = split_number(rest);
    const std::string_view after = parts ? parts->second : "";
    const std::size_t unit_bytes = std::min(after.find_first_not_of("hmins"), after.size());
    const double* unit = look_up(k_seconds, after.substr(0, unit_bytes));
    if (unit == nullptr) {
      return fail(Code::config, "\"{}\" is not a duration (write 500ms, 120s, 10m, 1m30s or 2h)",
                  text);
    }
    seconds += parts->first * *unit;
    rest = text::trim(after.substr(unit_bytes));
  } while (!rest.empty());
  return seconds;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  if (const auto parts = split_number(text)) {
    const auto& [value, suffix] = *parts;
    const auto scale =
        suffix.empty() ? std::optional<Scale>({Unit::bytes, 1}) : parse_scale(suffix);
    if (scale && scale->unit == Unit::bytes && value * scale->factor < 9e18) {
      return static_cast<std::int64_t>(value * scale->factor);
    }
  }
  return fail(Code::config, "\"{}\" is not a size (write 4096, 64KiB, 16MiB or 1GB)", text);
}

std::string show_duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto rounded = static_cast<long long>(std::llround(seconds));
  if (rounded < 60) return fmt::format("{} s", rounded);
  if (rounded < 3600) return fmt::format("{} m {} s", rounded / 60, rounded % 60);
  return fmt::format("{} h {} m", rounded / 3600, rounded / 60 % 60);
}

}  // namespace weir::unit
