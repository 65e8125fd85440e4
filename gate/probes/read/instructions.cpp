#include "gate/probes/read/instructions.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/probes/read/callgrind.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::string_view k_callgrind_prefix = "callgrind.", k_log_prefix = "valgrind.";
constexpr std::uint64_t k_largest_callgrind = std::uint64_t{256} << 20;
constexpr std::size_t k_most_processes = 1024;
constexpr std::size_t k_most_kept = 300;
constexpr std::uint64_t k_least_share = 50'000;
constexpr const char* k_other_functions = "(other)";

// Valgrind puts its own words in place of %p and the like.
std::string without_percent(const std::string& path) {
  std::string out;
  for (const char c : path) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

Result<std::vector<std::string>> written(const sys::Files& files, const std::string& folder,
                                         std::string_view prefix) {
  WEIR_TRY(const std::vector<std::string> names, files.list(folder));
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (name.starts_with(prefix)) paths.push_back(sys::join_path(folder, name));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::vector<std::string>> outputs(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(std::vector<std::string> paths, written(files, folder, k_callgrind_prefix));
  if (paths.empty()) return fail(Code::data, "valgrind wrote nothing");
  if (paths.size() > k_most_processes) {
    return fail(Code::data, "the engine started more than {} processes", k_most_processes);
  }
  return paths;
}

Result<Callgrind> read_one(const sys::Files& files, const std::string& path) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_callgrind));
  return read_callgrind(text).map_error(
      [&](Error error) { return with_context(sys::file_name_of(path), std::move(error)); });
}

void keep_the_largest(const std::map<std::string, std::uint64_t>& self, std::uint64_t total,
                      std::map<std::string, std::int64_t>& kept) {
  std::vector<std::pair<std::uint64_t, std::string_view>> sizes;
  for (const auto& [name, cost] : self) {
    if (cost >= total / k_least_share && name != k_other_functions) sizes.emplace_back(cost, name);
  }
  std::sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (sizes.size() > k_most_kept) sizes.resize(k_most_kept);
  std::uint64_t rest = total;
  for (const auto& [cost, name] : sizes) {
    kept[std::string(name)] = static_cast<std::int64_t>(cost);
    rest -= cost;
  }
  if (rest > 0) kept[k_other_functions] = static_cast<std::int64_t>(rest);
}

}  // namespace

std::vector<std::string> under_valgrind(const std::string& valgrind, const std::string& folder,
                                        const std::vector<std::string>& argv) {
  const std::string place = without_percent(folder);
  std::vector<std::string> made = {
      valgrind,
      "--command-line-only=yes",
      "--tool=callgrind",
      "--trace-children=yes",
      "--vgdb=no",
      "--child-silent-after-fork=yes",
      fmt::format("--callgrind-out-file={}/{}%p", place, k_callgrind_prefix),
      fmt::format("--log-file={}/{}%p", place, k_log_prefix)};
  made.insert(made.end(), argv.begin(), argv.end());
  return made;
}

Result<profile::ProbeCounts> collect_valgrind(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(const std::vector<std::string> paths, outputs(files, folder));
  std::uint64_t total = 0;
  std::map<std::string, std::uint64_t> self;
  std::size_t forked = 0;
  for (const std::string& path : paths) {
    WEIR_TRY(const Callgrind one, read_one(files, path));
    if (__builtin_add_overflow(total, one.total, &total) || total > INT64_MAX) {
      return fail(Code::data, "more instructions than can be counted");
    }
    for (const auto& [name, cost] : one.self) self[name] += cost;
    const std::string pid = sys::file_name_of(path).substr(k_callgrind_prefix.size());
    if (!files.exists(sys::join_path(folder, std::string(k_log_prefix) + pid))) ++forked;
  }
  if (total == 0) return fail(Code::data, "valgrind counted no instruction");
  profile::ProbeCounts counts;
  counts.probe = k_by_valgrind;
  counts.counts["instructions"] = static_cast<std::int64_t>(total);
  keep_the_largest(self, total, counts.functions);
  // Valgrind begins a log for each program it starts; a fork of one is told to be silent.
  if (forked > 0) {
    counts.warnings.push_back(fmt::format(
        "the engine forked itself ({} x): callgrind counts what came before a fork on both sides",
        forked));
  }
  return counts;
}

Result<profile::Executed> collect_executed(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(const std::vector<std::string> paths, outputs(files, folder));
  profile::Executed all;
  for (const std::string& path : paths) {
    WEIR_TRY(const Callgrind one, read_one(files, path));
    profile::merge_executed(all, one.executed);
  }
  return all;
}

std::string valgrind_log(const sys::Files& files, const std::string& folder) {
  constexpr std::uint64_t k_enough = 16384;
  const auto paths = written(files, folder, k_log_prefix);
  std::string all;
  for (const std::string& path : paths.value_or(std::vector<std::string>())) {
    all += files.read_prefix(path, k_enough).value_or("");
    if (all.size() > k_enough) break;
  }
  return all;
}

Result<profile::ProbeCounts> counted_by_perf(const sys::PerfCount& count) {
  if (count.held_ns < count.wanted_ns) {
    return fail(Code::data,
                "others use the processor's counters too: this one ran {:.0f} % of the time",
                100 * static_cast<double>(count.held_ns) / static_cast<double>(count.wanted_ns));
  }
  if (count.value == 0 || count.value > INT64_MAX) {
    return fail(Code::data, "the counter of instructions shows {}", count.value);
  }
  profile::ProbeCounts counts;
  counts.probe = k_by_perf;
  counts.counts["instructions"] = static_cast<std::int64_t>(count.value);
  return counts;
}

}  // namespace weir::probes
