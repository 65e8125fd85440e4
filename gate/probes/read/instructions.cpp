// Reads callgrind's files, and turns counts of valgrind and perf events into ProbeCounts.
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
constexpr std::size_t k_max_functions = 1'000'000;
// Columns of positions and of events; valgrind has up to some twenty.
constexpr std::size_t k_max_callgrind_columns = 64;

// Removes the first word from `rest` and returns it; "" when there is none.
std::string_view next_word(std::string_view& rest) {
  const std::size_t from = rest.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) {
    rest = {};
    return {};
  }
  const std::size_t to = std::min(rest.find_first_of(" \t\r", from), rest.size());
  const std::string_view word = rest.substr(from, to - from);
  rest.remove_prefix(to);
  return word;
}

// A decimal number, or a hexadecimal one after "0x".
std::optional<std::uint64_t> number(std::string_view word) {
  const int base = word.starts_with("0x") ? 16 : 10;
  if (base == 16) word.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// True for "+3", "-2", "*", "17", "0x401000".
bool is_position(std::string_view word) {
  if (word == "*") return true;
  if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
  return number(word).has_value();
}

std::string cut_name(std::string_view name) {
  // The cut may split a character; printable() repairs it.
  return text::printable(name.substr(0, k_longest_function - 4));
}

bool has_no_symbol(std::string_view name) {
  return name == "???" || (name.starts_with("0x") && number(name).has_value());
}

// Reads a callgrind file line by line. Names are defined once ("fn=(12) name") and referred to by
// number ("fn=(12)"); positions are relative to the line before.
class CallgrindReader {
 public:
  explicit CallgrindReader(std::string_view text) : text_(text) {}

  // Reads the whole file; see read_callgrind().
  Result<Callgrind> read() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_;
      if (line.size() > k_longest_callgrind_line) return invalid_line("a line of more than 1 MiB");
      if (line.ends_with('\r')) line.remove_suffix(1);
      WEIR_CHECK(read_line(line));
    }
    if (!totals_)
      return invalid_line("ends before its totals: the process was killed, or the disk is full");
    if (*totals_ != sum_) {
      return invalid_line(
          fmt::format("its functions add up to {}, its totals to {}", sum_, *totals_));
    }
    Callgrind out;
    out.total = sum_;
    for (const auto& [name, cost] : self_) {
      if (cost > 0) out.self.emplace(name, cost);
    }
    for (const auto& [object, has_source] : objects_with_source_) {
      auto& objects = has_source ? out.described : executed_.without_debug_info;
      objects.insert(text::printable(object));
    }
    out.executed = std::move(executed_);
    return out;
  }

 private:
  tl::unexpected<Error> invalid_line(std::string_view what) const {
    return fail(Code::data, "not what callgrind writes: line {}: {}", line_, what);
  }

  // Reads a cost, a name or a heading; comments are skipped.
  Result<void> read_line(std::string_view line) {
    if (line.empty() || line.front() == '#') return {};
    const char first = line.front();
    if ((first >= '0' && first <= '9') || first == '+' || first == '-' || first == '*') {
      return read_cost(line);
    }
    const std::size_t end = line.find_first_of("=:");
    if (end == std::string_view::npos) return invalid_line("neither a cost nor a name");
    const std::string_view key = line.substr(0, end), value = line.substr(end + 1);
    return line[end] == '=' ? read_name(key, value) : read_heading(key, value);
  }

  // Reads which columns lines have, and the totals; other headings are ignored.
  Result<void> read_heading(std::string_view key, std::string_view value) {
    if (key == "positions") {
      positions_ = 0;
      while (!next_word(value).empty()) ++positions_;
      if (positions_ == 0 || positions_ > k_max_callgrind_columns)
        return invalid_line("no positions");
    } else if (key == "events") {
      instructions_.reset();
      std::size_t column = 0;
      for (auto word = next_word(value); !word.empty(); word = next_word(value)) {
        if (word == "Ir") instructions_ = column;
        ++column;
        if (column > k_max_callgrind_columns) return invalid_line("too many events");
      }
      if (!instructions_) return invalid_line("instructions (Ir) are not among its events");
    } else if (key == "totals") {
      const auto cost = find_cost(value);
      if (!cost) return invalid_line("totals without a number of instructions");
      std::uint64_t sum = totals_.value_or(0);
      if (__builtin_add_overflow(sum, *cost, &sum)) return invalid_line("too many instructions");
      totals_ = sum;
    }
    return {};
  }

  // The number in the column of instructions; nothing where it is none. Trailing columns that are 0
  // may be missing.
  [[nodiscard]] std::optional<std::uint64_t> find_cost(std::string_view columns) const {
    if (!instructions_) return std::nullopt;
    for (std::size_t column = 0;; ++column) {
      const std::string_view word = next_word(columns);
      if (word.empty()) return 0;
      const auto cost = number(word);
      if (!cost) return std::nullopt;
      if (column == *instructions_) return cost;
    }
  }

  // Adds a line's instructions to the current function and to the sum.
  Result<void> read_cost(std::string_view line) {
    for (std::size_t i = 0; i < positions_; ++i) {
      const std::string_view word = next_word(line);
      if (!is_position(word)) return invalid_line("no position");
    }
    const auto cost = find_cost(line);
    if (!cost)
      return invalid_line(instructions_ ? "no cost" : "a cost before its events are named");
    // The line after calls= holds the callee's cost, which counts in the callee's own lines.
    if (after_calls_) {
      after_calls_ = false;
      return {};
    }
    if (function_cost_ == nullptr) return invalid_line("a cost of no function");
    if (__builtin_add_overflow(sum_, *cost, &sum_)) return invalid_line("too many instructions");
    *function_cost_ += *cost;  // at most the sum
    if (!is_recorded_ && *cost > 0) record_executed();
    return {};
  }

  // Records that the current function ran, in its source file if that is known.
  void record_executed() {
    is_recorded_ = true;
    const bool has_source = !file_.empty() && file_ != "???";
    if (!object_.empty() && object_ != "???" && objects_with_source_.size() < k_max_functions) {
      objects_with_source_[object_] |= has_source;
    }
    if (!has_source) return;
    profile::add_executed(executed_, text::printable(file_), function_name_);
  }

  using Names = std::unordered_map<std::uint64_t, std::string_view>;

  // Returns the name that `value` stands for. "(12) name" defines number 12, "(12)" refers to it,
  // "name" has no number.
  Result<std::string_view> resolve_name(std::string_view value, Names& names) {
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
    const auto* defined = look_up(names, *id);
    if (defined == nullptr) return invalid_line("a name that was never given");
    return *defined;
  }

  // Sets the current file, object or function. Lines about a callee only define numbers of names.
  Result<void> read_name(std::string_view key, std::string_view value) {
    if (key == "calls") after_calls_ = true;
    const bool is_file = key == "fl" || key == "fi" || key == "fe" || key == "cfi" || key == "cfl";
    const bool is_object = key == "ob" || key == "cob";
    const bool is_function = key == "fn" || key == "cfn";
    if (!is_file && !is_object && !is_function) return {};  // jumps do not matter here
    Names* names = &functions_;
    if (is_file) names = &files_;
    if (is_object) names = &objects_;
    WEIR_TRY(const std::string_view name, resolve_name(value, *names));
    if (key == "fn") return enter_function(name);
    if (key.starts_with('c')) return {};
    if (is_file) {
      file_ = name;
    } else {
      object_ = name;
    }
    is_recorded_ = false;
    return {};
  }

  // Makes `function` the current one. Functions without a symbol share an entry for each library.
  Result<void> enter_function(std::string_view function) {
    std::string name;
    if (has_no_symbol(function)) {
      const std::string file = sys::file_name_of(object_);
      name = "(no symbol) in " + (file.empty() || file == "???" ? "no library" : cut_name(file));
      if (name.size() > k_longest_function) name = cut_name(name);
    } else {
      name = cut_name(function);
    }
    if (self_.size() >= k_max_functions && !self_.contains(name)) {
      return invalid_line("more than 1000000 functions");
    }
    function_cost_ = &self_[name];
    function_name_ = has_no_symbol(function) ? std::string() : std::move(name);
    is_recorded_ = false;
    return {};
  }

  std::string_view text_;
  std::size_t line_ = 0;
  std::size_t positions_ = 1;                // columns before the events
  std::optional<std::size_t> instructions_;  // column among the events
  Names functions_, objects_, files_;
  std::string_view object_, file_;          // file and object of the current function
  std::string function_name_;               // "" without a symbol
  std::uint64_t* function_cost_ = nullptr;  // into self_, whose elements do not move
  bool is_recorded_ = false;                // the current function and file are in executed_
  std::unordered_map<std::string_view, bool> objects_with_source_;  // by name: has a source file
  profile::Executed executed_;
  std::unordered_map<std::string, std::uint64_t> self_;
  bool after_calls_ = false;
  std::uint64_t sum_ = 0;
  std::optional<std::uint64_t> totals_;
};

constexpr std::string_view k_callgrind_prefix = "callgrind.", k_log_prefix = "valgrind.";
constexpr std::uint64_t k_largest_program = std::uint64_t{1} << 30;
constexpr std::uint64_t k_largest_callgrind = std::uint64_t{256} << 20;
constexpr std::size_t k_max_processes = 1024;
constexpr std::size_t k_max_named_functions = 300;
constexpr std::uint64_t k_min_share = 50'000;  // one in so many instructions
constexpr const char* k_other_functions = "(other)";

// Doubles each '%', which valgrind would replace in file names.
std::string escape_percent(const std::string& path) {
  return text::join(text::split(path, '%'), "%%");
}

// The paths of callgrind's files; fails where there are none or too many.
Result<std::vector<std::string>> list_outputs(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(std::vector<std::string> paths, list_files(files, folder, k_callgrind_prefix, ""));
  if (paths.empty()) return fail(Code::data, "valgrind wrote nothing");
  if (paths.size() > k_max_processes) {
    return fail(Code::data, "the engine started more than {} processes", k_max_processes);
  }
  return paths;
}

Result<Callgrind> read_output(const sys::Files& files, const std::string& path) {
  WEIR_TRY(const std::string text, files.read(path, k_largest_callgrind));
  return read_callgrind(text).map_error(with_prefix(sys::file_name_of(path)));
}

// Copies the counts of the functions with most instructions to `functions`; all others become
// "(other)".
void add_largest_functions(const std::map<std::string, std::uint64_t>& self, std::uint64_t total,
                           std::map<std::string, std::int64_t>& functions) {
  std::vector<std::pair<std::uint64_t, std::string_view>> sizes;
  for (const auto& [name, cost] : self) {
    if (cost >= total / k_min_share && name != k_other_functions) sizes.emplace_back(cost, name);
  }
  std::ranges::stable_sort(sizes, std::greater(), [](const auto& size) { return size.first; });
  if (sizes.size() > k_max_named_functions) sizes.resize(k_max_named_functions);
  std::uint64_t rest = total;
  for (const auto& [cost, name] : sizes) {
    functions[std::string(name)] = static_cast<std::int64_t>(cost);
    rest -= cost;
  }
  if (rest > 0) functions[k_other_functions] = static_cast<std::int64_t>(rest);
}

}  // namespace

Result<Callgrind> read_callgrind(std::string_view text) { return CallgrindReader(text).read(); }

// Returns the command line that runs `argv` under valgrind's tool callgrind, which counts
// instructions. Its files go to `folder`.
std::vector<std::string> under_valgrind(const std::string& valgrind, const std::string& folder,
                                        const std::vector<std::string>& argv) {
  const std::string escaped = escape_percent(folder);
  std::vector<std::string> command = {
      valgrind,
      "--command-line-only=yes",
      "--tool=callgrind",
      "--trace-children=yes",
      "--vgdb=no",
      "--child-silent-after-fork=yes",
      fmt::format("--callgrind-out-file={}/{}%p", escaped, k_callgrind_prefix),
      fmt::format("--log-file={}/{}%p", escaped, k_log_prefix)};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

// Sums the instructions that valgrind counted in all processes, in total and by function.
Result<profile::ProbeCounts> collect_valgrind(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(const std::vector<std::string> paths, list_outputs(files, folder));
  std::uint64_t total = 0;
  std::map<std::string, std::uint64_t> self;
  std::size_t forks = 0;
  for (const std::string& path : paths) {
    WEIR_TRY(const Callgrind process, read_output(files, path));
    if (__builtin_add_overflow(total, process.total, &total) || total > INT64_MAX) {
      return fail(Code::data, "more instructions than can be counted");
    }
    for (const auto& [name, cost] : process.self) self[name] += cost;
    // Valgrind starts a log for each program; --child-silent-after-fork leaves a fork without.
    const std::string pid = sys::file_name_of(path).substr(k_callgrind_prefix.size());
    if (!files.exists(sys::join_path(folder, std::string(k_log_prefix) + pid))) ++forks;
  }
  if (total == 0) return fail(Code::data, "valgrind counted no instruction");
  profile::ProbeCounts counts;
  counts.probe = k_by_valgrind;
  counts.counts["instructions"] = static_cast<std::int64_t>(total);
  add_largest_functions(self, total, counts.functions);
  if (forks > 0) {
    counts.warnings.push_back(fmt::format(
        "the engine forked itself ({} x): callgrind counts what came before a fork on both sides",
        forks));
  }
  return counts;
}

// Lists the source files that ran in any process, and those that may have run unseen because they
// are inlined.
Result<profile::Executed> collect_executed(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(const std::vector<std::string> paths, list_outputs(files, folder));
  profile::Executed executed;
  std::set<std::string> objects;
  for (const std::string& path : paths) {
    WEIR_TRY(const Callgrind process, read_output(files, path));
    profile::merge_executed(executed, process.executed);
    objects.insert(process.described.begin(), process.described.end());
  }
  for (const std::string& object : objects) {
    if (profile::is_system_object(object)) continue;
    const auto bytes = files.read(object, k_largest_program);
    profile::merge_executed(executed, {{}, {}, bytes ? find_maybe_inlined(*bytes) : std::nullopt});
  }
  return executed;
}

std::string valgrind_log(const sys::Files& files, const std::string& folder) {
  constexpr std::uint64_t k_enough = 16384;
  const auto paths = list_files(files, folder, k_log_prefix, "");
  std::string log;
  for (const std::string& path : paths.value_or(std::vector<std::string>())) {
    log += files.read_prefix(path, k_enough).value_or("");
    if (log.size() > k_enough) break;
  }
  return log;
}

// Returns the processor's count of instructions. Fails if other programs shared the counter, or if
// it overflowed.
Result<profile::ProbeCounts> perf_counts(const sys::PerfCount& count) {
  if (count.running_ns < count.enabled_ns) {
    return fail(
        Code::data, "others use the processor's counters too: this one ran {:.0f} % of the time",
        100 * static_cast<double>(count.running_ns) / static_cast<double>(count.enabled_ns));
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
