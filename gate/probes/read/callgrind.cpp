#include "gate/probes/read/callgrind.hpp"

#include <charconv>
#include <optional>
#include <unordered_map>

#include "gate/base/text.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_longest_callgrind_line = std::size_t{1} << 20;
constexpr std::size_t k_longest_function = 200;
constexpr std::size_t k_most_functions = 1'000'000;
constexpr std::size_t k_most_callgrind_columns =
    64;  // positions and events; valgrind has up to some twenty

std::string_view next_word(std::string_view& rest) {
  const std::size_t from = rest.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return rest = {};
  const std::size_t to = std::min(rest.find_first_of(" \t\r", from), rest.size());
  const std::string_view word = rest.substr(from, to - from);
  rest.remove_prefix(to);
  return word;
}

std::optional<std::uint64_t> number(std::string_view word) {
  int base = 10;
  if (word.starts_with("0x")) {
    word.remove_prefix(2);
    base = 16;
  }
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
  // What is cut off can not make a character that was whole wrong: printable() mends the end.
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
      if (auto read = take(line); !read) return tl::unexpected(std::move(read).error());
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
      if (!described) executed_.blind.insert(text::printable(object));
    }
    made.executed = std::move(executed_);
    return made;
  }

 private:
  tl::unexpected<Error> wrong(std::string_view what) const {
    return tl::unexpected<Error>(
        Error{Code::data, fmt::format("not what callgrind writes: line {}: {}", line_, what)});
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
    const auto known = names.find(*id);
    if (known == names.end()) return wrong("a name that was never given");
    return known->second;
  }

  Result<void> take_name(std::string_view key, std::string_view value) {
    if (key == "fn") {
      auto name = name_of(value, functions_);
      if (!name) return tl::unexpected(std::move(name).error());
      return enter(*name);
    }
    if (key == "ob") {
      auto name = name_of(value, objects_);
      if (!name) return tl::unexpected(std::move(name).error());
      object_ = *name;
      noted_ = false;
    } else if (key == "fl" || key == "fi" || key == "fe") {
      auto name = name_of(value, files_);
      if (!name) return tl::unexpected(std::move(name).error());
      file_ = *name;
      noted_ = false;
    } else if (key == "cfi" || key == "cfl") {
      auto name = name_of(value, files_);  // may give the name that a number means later
      if (!name) return tl::unexpected(std::move(name).error());
    } else if (key == "cfn") {
      auto name = name_of(value, functions_);
      if (!name) return tl::unexpected(std::move(name).error());
    } else if (key == "cob") {
      auto name = name_of(value, objects_);
      if (!name) return tl::unexpected(std::move(name).error());
    } else if (key == "calls") {
      after_calls_ = true;
    }
    return {};  // jumps do not matter here
  }

  Result<void> enter(std::string_view function) {
    std::string name;
    if (has_no_symbol(function)) {
      const std::size_t slash = object_.rfind('/');
      const std::string_view file =
          slash == std::string_view::npos ? object_ : object_.substr(slash + 1);
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

}  // namespace

Result<Callgrind> read_callgrind(std::string_view text) { return CallgrindReader(text).read(); }

}  // namespace weir::probes
