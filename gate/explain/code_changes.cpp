// Describes how two pieces of code of one kernel differ: options, constants, and the SPIR-V itself.
#include "gate/explain/code_changes.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/spirv.hpp"
#include "gate/explain/spirv_values.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::explain {
namespace {

constexpr std::string_view k_constant = "constant ";
constexpr std::size_t k_max_changes_shown = 6, k_max_changes_in_headline = 3, k_max_pairs = 32;

// One side's code: its options, and the facts that its SPIR-V states under them.
struct CodeSide {
  std::map<std::uint32_t, std::string> set{};   // values of constants, by id
  std::map<std::string, std::string> others{};  // options that are no constants
  std::optional<SpirvFacts> facts{};
  std::string read_error{};  // why there are none, though there is code

  // Sorts the options into constants and others, and reads the SPIR-V in `words` if there is any.
  CodeSide(const KernelCode& code, std::span<const std::uint32_t> words) {
    for (const auto& [option, value] : code.options) {
      if (const auto id = spirv_constant_id(option)) {
        set[*id] = value;
      } else {
        others[option] = value;
      }
    }
    if (words.empty()) return;
    auto read = read_spirv(words, spirv_constants(code.options));
    if (!read) read_error = read.error().message;
    if (read) facts = std::move(*read);
  }

  [[nodiscard]] const SpirvConstant* constant(std::uint32_t id) const {
    return facts ? look_up(facts->constants, id) : nullptr;
  }
  // Returns a constant's value as shown; that of a float constant as a float.
  [[nodiscard]] std::optional<std::string> value(std::uint32_t id) const {
    const SpirvConstant* spec = constant(id);
    if (const std::string* setting = look_up(set, id)) {
      const auto bits = text::to_int(*setting);
      const bool is_float = bits && spec != nullptr && spec->is_float;
      return is_float ? number_text(static_cast<std::uint64_t>(*bits), 32) : *setting;
    }
    if (spec == nullptr) return std::nullopt;
    return spec->fallback;
  }
};

std::string change_text(const std::string& label, const auto& before, const auto& after) {
  return fmt::format("{} {} \u2192 {}", label, before, after);
}

class CodeComparison {
 public:
  CodeComparison(CodeSide before, CodeSide after)
      : before_(std::move(before)), after_(std::move(after)) {}

  // Adds kinds of instructions that only one side has: the work is done in another way altogether.
  void add_kinds() {
    if (!before_.facts || !after_.facts) return;
    for (const CountChange& change :
         changed_counts(before_.facts->kinds, after_.facts->kinds, "")) {
      if (change.is_on_one_side) add_line(change.text);
    }
    lines_of_kinds_ = lines_.size();
  }

  // Adds constants and options whose values differ.
  void add_options() {
    std::set<std::uint32_t> ids;
    for (const CodeSide* side : {&before_, &after_}) {
      for (const auto& [id, value] : side->set) ids.insert(id);
      // A default that the other side is not known to have is no difference.
      if (!before_.facts || !after_.facts) continue;
      for (const auto& [id, entry] : side->facts->constants) ids.insert(id);
    }
    for (const std::uint32_t id : ids) add_constant(id);
    std::set<std::string> names;
    for (const CodeSide* side : {&before_, &after_}) {
      for (const auto& [name, value] : side->others) names.insert(name);
    }
    for (const std::string& name : names) {
      const std::string value_before = look_up(before_.others, name, "not set");
      const std::string value_after = look_up(after_.others, name, "not set");
      if (value_before != value_after) {
        add_line(change_text(text::printable(name) + ":", text::printable(value_before),
                             text::printable(value_after)));
      }
    }
    lines_before_code_ = lines_.size();
  }

  // Adds everything that differs in the SPIR-V itself.
  void add_code() {
    for (const CodeSide* side : {&before_, &after_}) {
      if (!side->read_error.empty()) add_line("the code could not be read: " + side->read_error);
    }
    if (!before_.facts || !after_.facts) return;
    const SpirvFacts &facts_before = *before_.facts, &facts_after = *after_.facts;
    for (const CountChange& change : changed_counts(facts_before.kinds, facts_after.kinds, "")) {
      if (!change.is_on_one_side) add_line(change.text);
    }
    add_counts(facts_before.loops, facts_after.loops, "");
    if (facts_before.shared_bytes && facts_after.shared_bytes &&
        facts_before.shared_bytes != facts_after.shared_bytes) {
      add_line(change_text("bytes of shared memory", *facts_before.shared_bytes,
                           *facts_after.shared_bytes));
      add_counts(facts_before.shared, facts_after.shared, "bytes of ");
    }
    if (facts_before.local_size != facts_after.local_size) {
      const auto size_text = [](const std::string& size) {
        return size.empty() ? "not known" : size;
      };
      add_line(change_text("local size", size_text(facts_before.local_size),
                           size_text(facts_after.local_size)));
    }
    add_sets("capabilities", facts_before.capabilities, facts_after.capabilities);
    add_sets("execution modes", facts_before.modes, facts_after.modes);
    add_sets("bindings", facts_before.bindings, facts_after.bindings);
    add_counts(facts_before.instructions, facts_after.instructions, "");
    if (facts_before.all != facts_after.all) {
      add_line(change_text("instructions", facts_before.all, facts_after.all));
    }
    add_sets("literals", facts_before.literals, facts_after.literals);
    add_counts(facts_before.decorations, facts_after.decorations, "");
  }

  void add_line(std::string line) { lines_.push_back(std::move(line)); }
  [[nodiscard]] bool reported_code() const {
    return lines_of_kinds_ > 0 || lines_.size() > lines_before_code_;
  }

  // Returns the changes that were added: the most telling ones make the headline.
  CodeChanges changes() && {
    CodeChanges result;
    if (lines_.empty()) return result;
    const std::size_t first = std::clamp<std::size_t>(
        lines_of_kinds_ > 0 ? lines_of_kinds_ : lines_before_code_, 1, k_max_changes_in_headline);
    const auto rest = lines_.begin() + static_cast<std::ptrdiff_t>(first);
    result.headline = text::join(std::vector<std::string>(lines_.begin(), rest));
    result.lines.assign(rest, lines_.end());
    return result;
  }

 private:
  // Adds a constant whose value differs, with its name if the code has one.
  void add_constant(std::uint32_t id) {
    const auto value_before = before_.value(id), value_after = after_.value(id);
    if (value_before == value_after) return;
    std::string label = fmt::format("{}{}", k_constant, id);
    for (const CodeSide* side : {&after_, &before_}) {
      const SpirvConstant* spec = side->constant(id);
      if (spec == nullptr || spec->name.empty()) continue;
      label += " (" + text::shortened(spec->name, 64) + ")";
      break;
    }
    const bool is_unused = after_.facts && after_.constant(id) == nullptr;
    add_line(change_text(label + ":", text::printable(value_before.value_or("not set")),
                         text::printable(value_after.value_or("not set"))) +
             (is_unused ? " (the code does not have it)" : ""));
  }

  using Counts = SpirvFacts::Counts;
  struct CountChange {
    std::string text;
    std::int64_t size;
    bool is_on_one_side;
  };
  // Returns the counts that differ, the largest change first.
  static std::vector<CountChange> changed_counts(const Counts& counts_before,
                                                 const Counts& counts_after,
                                                 const std::string& prefix) {
    Counts all = counts_before;
    all.insert(counts_after.begin(), counts_after.end());
    std::vector<CountChange> result;
    for (const auto& [name, count] : all) {
      const std::int64_t a = look_up(counts_before, name, 0), b = look_up(counts_after, name, 0);
      if (a == b) continue;
      result.push_back({change_text(prefix + name, a, b), std::abs(b - a), a == 0 || b == 0});
    }
    std::ranges::stable_sort(result, std::greater(), &CountChange::size);
    return result;
  }
  // Adds the counts that differ as one line.
  void add_counts(const Counts& counts_before, const Counts& counts_after,
                  const std::string& prefix) {
    const auto texts = collect<std::string>(changed_counts(counts_before, counts_after, prefix),
                                            &CountChange::text);
    if (!texts.empty()) add_line(verdict::list_some(texts, k_max_changes_shown));
  }
  // Adds the texts that only one side has, as one line.
  void add_sets(const std::string& label, const std::set<std::string>& values_before,
                const std::set<std::string>& values_after) {
    std::vector<std::string> removed, added, parts;
    std::ranges::set_difference(values_before, values_after, std::back_inserter(removed));
    std::ranges::set_difference(values_after, values_before, std::back_inserter(added));
    if (!removed.empty())
      parts.push_back("gone: " + verdict::list_some(removed, k_max_changes_shown));
    if (!added.empty()) parts.push_back("new: " + verdict::list_some(added, k_max_changes_shown));
    if (!parts.empty()) add_line(label + " " + text::join(parts, "; "));
  }

  CodeSide before_, after_;
  std::vector<std::string> lines_;
  std::size_t lines_of_kinds_ = 0, lines_before_code_ = 0;
};

// Compares by hash if both are known; else options, and sources or words.
bool same_code(const KernelCode& a, const KernelCode& b) {
  if (!a.hash.empty() && !b.hash.empty()) return a.hash == b.hash;
  const bool sources = !a.source.empty() && !b.source.empty();
  return a.options == b.options &&
         (sources ? a.source == b.source : std::ranges::equal(a.words, b.words));
}

}  // namespace

// Returns how two versions of a kernel's code differ: options, constants and SPIR-V. If both have
// one source, SPIR-V that was recorded on one side stands for both.
CodeChanges code_changes(const KernelCode& before, const KernelCode& after) {
  const bool is_same_source = !before.source.empty() && before.source == after.source;
  const auto recorded_or_other = [&](const KernelCode& code, const KernelCode& other_side) {
    return code.words.empty() && is_same_source ? other_side.words : code.words;
  };
  const auto spirv_before = recorded_or_other(before, after),
             spirv_after = recorded_or_other(after, before);
  CodeComparison comparison(CodeSide(before, spirv_before), CodeSide(after, spirv_after));
  comparison.add_kinds();
  comparison.add_options();
  comparison.add_code();
  const bool has_both = !spirv_before.empty() && !spirv_after.empty();
  const bool is_different =
      has_both ? !std::ranges::equal(spirv_before, spirv_after)
               : !before.source.empty() && !after.source.empty() && !is_same_source;
  if (is_different && !comparison.reported_code()) {
    comparison.add_line(has_both ? "the same instructions, with other operands or in another order"
                                 : "other SPIR-V");
  }
  CodeChanges changes = std::move(comparison).changes();
  changes.before = before.hash;
  changes.now = after.hash;
  return changes;
}

// Drops code that both sides have, pairs the rest by the smallest difference, and returns how each
// pair differs; at most k_max_pairs.
std::vector<CodeChanges> code_changes(std::vector<KernelCode> before,
                                      std::vector<KernelCode> after) {
  std::erase_if(before, [&](const KernelCode& code) {
    const auto match = std::ranges::find_if(after, std::bind_front(same_code, std::cref(code)));
    if (match == after.end()) return false;
    after.erase(match);
    return true;
  });
  std::vector<CodeChanges> changes_of_pairs;
  for (; !before.empty() && !after.empty() && changes_of_pairs.size() < k_max_pairs;
       before.pop_back()) {
    std::vector<CodeChanges> candidates;
    for (const KernelCode& partner : after) {
      candidates.push_back(code_changes(before.back(), partner));
    }
    const auto smallest = std::ranges::min_element(candidates, {}, [](const CodeChanges& changes) {
      return changes.lines.size() + changes.headline.size() / 32;
    });
    after.erase(after.begin() + (smallest - candidates.begin()));
    changes_of_pairs.push_back(std::move(*smallest));
  }
  return changes_of_pairs;
}

}  // namespace weir::explain
