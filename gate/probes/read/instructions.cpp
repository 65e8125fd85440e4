#include "gate/probes/read/instructions.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <unordered_map>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/line_tables.hpp"
#include "gate/probes/read/read.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_longest_callgrind_line = std::size_t{1} << 20;
constexpr std::size_t k_longest_function = 200;
constexpr std::size_t k_most_functions = 1'000'000;
// Positions and events; valgrind has up to some twenty.
constexpr std::size_t k_most_callgrind_columns = 64;

std::string_view next_word(std::string_view& rest) {
  const std::size_t from = rest.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return rest = {};
  const std::size_t to = std::min(rest.find_first_of(" \t\r", from), rest.size());
  const std::string_view word = rest.substr(from, to - from);
  rest.remove_prefix(to);
  return word;
}

std::optional<std::uint64_t> number(std::string_view word) {
  const int base = word.starts_with("0x") ? 16 : 10;
  if (base == 16) word.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// "+3", "-2", "*", "17", "0x401000".
bool is_position(std::string_view word) {
  if (word == "*") return true;
  if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
  return number(word).has_value();
}

std::string cut_name(std::string_view name) {
  // What is cut off cannot make a character that was whole wrong: printable() repairs the end.
  return text::printable(name.substr(0, k_longest_function - 4));
}

bool has_no_symbol(std::string_view name) {
  return name == "???" || (name.starts_with("0x") && number(name).has_value());
}

class CallgrindReader {
 public:
  explicit CallgrindReader(std::string_view text) : text_(text) {}

  Result<Callgrind> read() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_;
      if (line.size() > k_longest_callgrind_line) return wrong("a line of more than 1 MiB");
      if (line.ends_with('\r')) line.remove_suffix(1);
      WEIR_CHECK(take(line));
    }
    if (!totals_)
      return wrong("ends before its totals: the process was killed, or the disk is full");
    if (*totals_ != sum_) {
      return wrong(fmt::format("its functions add up to {}, its totals to {}", sum_, *totals_));
    }
    Callgrind made;
    made.total = sum_;
    for (const auto& [name, cost] : self_) {
      if (cost > 0) made.self.emplace(name, cost);
    }
    for (const auto& [object, described] : described_) {
      auto& objects = described ? made.described : executed_.blind;
      objects.insert(text::printable(object));
    }
    made.executed = std::move(executed_);
    return made;
  }

 private:
  tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(Code::data, "not what callgrind writes: line {}: {}", line_, what);
  }

  Result<void> take(std::string_view line) {
    if (line.empty() || line.front() == '#') return {};
    const char first = line.front();
    if ((first >= '0' && first <= '9') || first == '+' || first == '-' || first == '*') {
      return take_cost(line);
    }
    const std::size_t end = line.find_first_of("=:");
    if (end == std::string_view::npos) return wrong("neither a cost nor a name");
    const std::string_view key = line.substr(0, end), value = line.substr(end + 1);
    return line[end] == '=' ? take_name(key, value) : take_heading(key, value);
  }

  Result<void> take_heading(std::string_view key, std::string_view value) {
    if (key == "positions") {
      positions_ = 0;
      while (!next_word(value).empty()) ++positions_;
      if (positions_ == 0 || positions_ > k_most_callgrind_columns) return wrong("no positions");
    } else if (key == "events") {
      instructions_.reset();
      std::size_t column = 0;
      for (auto word = next_word(value); !word.empty(); word = next_word(value)) {
        if (word == "Ir") instructions_ = column;
        if (++column > k_most_callgrind_columns) return wrong("too many events");
      }
      if (!instructions_) return wrong("instructions (Ir) are not among its events");
    } else if (key == "totals") {
      const auto cost = cost_in(value);
      if (!cost) return wrong("totals without a number of instructions");
      std::uint64_t all = totals_.value_or(0);
      if (__builtin_add_overflow(all, *cost, &all)) return wrong("too many instructions");
      totals_ = all;
    }
    return {};
  }

  // The number in the column of instructions; trailing ones that are 0 may be left out.
  [[nodiscard]] std::optional<std::uint64_t> cost_in(std::string_view columns) const {
    if (!instructions_) return std::nullopt;
    for (std::size_t column = 0;; ++column) {
      const std::string_view word = next_word(columns);
      if (word.empty()) return 0;
      const auto cost = number(word);
      if (!cost) return std::nullopt;
      if (column == *instructions_) return cost;
    }
  }

  Result<void> take_cost(std::string_view line) {
    for (std::size_t i = 0; i < positions_; ++i) {
      const std::string_view word = next_word(line);
      if (!is_position(word)) return wrong("no position");
    }
    const auto cost = cost_in(line);
    if (!cost) return wrong(instructions_ ? "no cost" : "a cost before its events are named");
    // The line after calls= holds what the call took, which its function has said itself.
    if (after_calls_) {
      after_calls_ = false;
      return {};
    }
    if (here_ == nullptr) return wrong("a cost of no function");
    if (__builtin_add_overflow(sum_, *cost, &sum_)) return wrong("too many instructions");
    *here_ += *cost;  // at most the sum
    if (!noted_ && *cost > 0) note_executed();
    return {};
  }

  // Once for each stretch of lines of one file in one function.
  void note_executed() {
    noted_ = true;
    const bool described = !file_.empty() && file_ != "???";
    if (!object_.empty() && object_ != "???" && described_.size() < k_most_functions) {
      described_[object_] |= described;
    }
    if (!described) return;
    profile::add_executed(executed_, text::printable(file_), here_name_);
  }

  using Names = std::unordered_map<std::uint64_t, std::string_view>;

  // "(12) name" gives a name, "(12)" means it, "name" is itself.
  Result<std::string_view> name_of(std::string_view value, Names& names) {
    if (!value.starts_with('(')) return value;
    const std::size_t close = value.find(')');
    const auto id =
        close == std::string_view::npos ? std::nullopt : number(value.substr(1, close - 1));
    if (!id) return value;  // "(below main)" is a name
    const std::string_view name = text::trim(value.substr(close + 1));
    if (!name.empty()) {
      names[*id] = name;
      return name;
    }
    const auto* known = look_up(names, *id);
    if (known == nullptr) return wrong("a name that was never given");
    return *known;
  }

  Result<void> take_name(std::string_view key, std::string_view value) {
    if (key == "calls") after_calls_ = true;
    // What is called is not entered, but may give the name that a number means later.
    const bool file = key == "fl" || key == "fi" || key == "fe" || key == "cfi" || key == "cfl";
    const bool object = key == "ob" || key == "cob";
    if (!file && !object && key != "fn" && key != "cfn") return {};  // jumps do not matter here
    WEIR_TRY(const std::string_view name, name_of(value, file     ? files_
                                                         : object ? objects_
                                                                  : functions_));
    if (key == "fn") return enter(name);
    if (key.starts_with('c')) return {};
    if (file) {
      file_ = name;
    } else {
      object_ = name;
    }
    noted_ = false;
    return {};
  }

  Result<void> enter(std::string_view function) {
    std::string name;
    if (has_no_symbol(function)) {
      const std::string file = sys::file_name_of(object_);
      name = "(no symbol) in " + (file.empty() || file == "???" ? "no library" : cut_name(file));
      if (name.size() > k_longest_function) name = cut_name(name);
    } else {
      name = cut_name(function);
    }
    if (self_.size() >= k_most_functions && !self_.contains(name)) {
      return wrong("more than 1000000 functions");
    }
    here_ = &self_[name];
    here_name_ = has_no_symbol(function) ? std::string() : std::move(name);
    noted_ = false;
    return {};
  }

  std::string_view text_;
  std::size_t line_ = 0;
  std::size_t positions_ = 1;
  std::optional<std::size_t> instructions_;  // column
  Names functions_, objects_, files_;
  std::string_view object_, file_;
  bool noted_ = false;  // what runs here is in executed_
  std::string here_name_;
  std::unordered_map<std::string_view, bool> described_;  // objects: has a line of a known file
  profile::Executed executed_;
  std::unordered_map<std::string, std::uint64_t> self_;
  std::uint64_t* here_ = nullptr;  // into self_, whose elements stay where they are
  bool after_calls_ = false;
  std::uint64_t sum_ = 0;
  std::optional<std::uint64_t> totals_;
};

constexpr std::string_view k_callgrind_prefix = "callgrind.", k_log_prefix = "valgrind.";
constexpr std::uint64_t k_largest_program = std::uint64_t{1} << 30;
constexpr std::uint64_t k_largest_callgrind = std::uint64_t{256} << 20;
constexpr std::size_t k_most_processes = 1024;
constexpr std::size_t k_most_kept = 300;
constexpr std::uint64_t k_least_share = 50'000;
constexpr const char* k_other_functions = "(other)";

// Valgrind puts its own words in place of %p and the like.
std::string without_percent(const std::string& path) {
  return text::join(text::split(path, '%'), "%%");
}

Result<std::vector<std::string>> outputs(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(std::vector<std::string> paths, files_named(files, folder, k_callgrind_prefix, ""));
  if (paths.empty()) return fail(Code::data, "valgrind wrote nothing");
  if (paths.size() > k_most_processes) {
    return fail(Code::data, "the engine started more than {} processes", k_most_processes);
  }
  return paths;
}

Result<Callgrind> read_one(const sys::Files& files, const std::string& path) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_callgrind));
  return read_callgrind(text).map_error(in_context(sys::file_name_of(path)));
}

void keep_the_largest(const std::map<std::string, std::uint64_t>& self, std::uint64_t total,
                      std::map<std::string, std::int64_t>& kept) {
  std::vector<std::pair<std::uint64_t, std::string_view>> sizes;
  for (const auto& [name, cost] : self) {
    if (cost >= total / k_least_share && name != k_other_functions) sizes.emplace_back(cost, name);
  }
  std::ranges::stable_sort(sizes, std::greater(), [](const auto& one) { return one.first; });
  if (sizes.size() > k_most_kept) sizes.resize(k_most_kept);
  std::uint64_t rest = total;
  for (const auto& [cost, name] : sizes) {
    kept[std::string(name)] = static_cast<std::int64_t>(cost);
    rest -= cost;
  }
  if (rest > 0) kept[k_other_functions] = static_cast<std::int64_t>(rest);
}

}  // namespace

Result<Callgrind> read_callgrind(std::string_view text) { return CallgrindReader(text).read(); }

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
  std::set<std::string> objects;
  for (const std::string& path : paths) {
    WEIR_TRY(const Callgrind one, read_one(files, path));
    profile::merge_executed(all, one.executed);
    objects.insert(one.described.begin(), one.described.end());
  }
  for (const std::string& object : objects) {
    if (profile::of_the_system(object)) continue;
    const auto bytes = files.read(object, k_largest_program);
    profile::merge_executed(all, {{}, {}, bytes ? maybe_inlined(*bytes) : std::nullopt});
  }
  return all;
}

std::string valgrind_log(const sys::Files& files, const std::string& folder) {
  constexpr std::uint64_t k_enough = 16384;
  const auto paths = files_named(files, folder, k_log_prefix, "");
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
