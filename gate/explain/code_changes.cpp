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
constexpr std::size_t k_most_shown = 6, k_most_in_headline = 3, k_most_pairs = 32;

// One side: its options by what they are, and what its SPIR-V says under them.
struct CodeSide {
  std::map<std::uint32_t, std::string> set{};   // constants
  std::map<std::string, std::string> others{};  // options that are no constants
  std::optional<SpirvFacts> facts{};
  std::string unread{};  // why there are none, though there is code

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
    if (!read) unread = read.error().message;
    if (read) facts = std::move(*read);
  }

  [[nodiscard]] const SpirvConstant* constant(std::uint32_t id) const {
    return facts ? look_up(facts->constants, id) : nullptr;
  }
  // As shown; a float as one.
  [[nodiscard]] std::optional<std::string> value(std::uint32_t id) const {
    const SpirvConstant* known = constant(id);
    if (const std::string* given = look_up(set, id)) {
      const auto bits = text::to_int(*given);
      const bool is_float = bits && known != nullptr && known->is_float;
      return is_float ? number_words(static_cast<std::uint64_t>(*bits), 32) : *given;
    }
    if (known == nullptr) return std::nullopt;
    return known->fallback;
  }
};

std::string went(const std::string& what, const auto& before, const auto& now) {
  return fmt::format("{} {} \u2192 {}", what, before, now);
}

class CodeComparison {
 public:
  CodeComparison(CodeSide before, CodeSide now)
      : before_(std::move(before)), now_(std::move(now)) {}

  // Work that is done in another way altogether: no such instruction on one side.
  void ways() {
    if (!before_.facts || !now_.facts) return;
    for (const Changed& one : changed(before_.facts->kinds, now_.facts->kinds, "")) {
      if (one.whole) say(one.words);
    }
    told_of_ways_ = found_.size();
  }

  void options() {
    std::set<std::uint32_t> ids;
    for (const CodeSide* side : {&before_, &now_}) {
      for (const auto& [id, value] : side->set) ids.insert(id);
      // What one side has by default, and the other is not known to have, is no difference.
      if (!before_.facts || !now_.facts) continue;
      for (const auto& [id, one] : side->facts->constants) ids.insert(id);
    }
    for (const std::uint32_t id : ids) constant(id);
    std::set<std::string> names;
    for (const CodeSide* side : {&before_, &now_}) {
      for (const auto& [name, value] : side->others) names.insert(name);
    }
    for (const std::string& name : names) {
      const std::string was = look_up(before_.others, name, "not set");
      const std::string is = look_up(now_.others, name, "not set");
      if (was != is)
        say(went(text::printable(name) + ":", text::printable(was), text::printable(is)));
    }
    told_of_options_ = found_.size();
  }

  void code() {
    for (const CodeSide* side : {&before_, &now_}) {
      if (!side->unread.empty()) say("the code could not be read: " + side->unread);
    }
    if (!before_.facts || !now_.facts) return;
    const SpirvFacts &was = *before_.facts, &is = *now_.facts;
    for (const Changed& one : changed(was.kinds, is.kinds, "")) {
      if (!one.whole) say(one.words);
    }
    together(was.loops, is.loops, "");
    if (was.shared_bytes && is.shared_bytes && was.shared_bytes != is.shared_bytes) {
      say(went("bytes of shared memory", *was.shared_bytes, *is.shared_bytes));
      together(was.shared, is.shared, "bytes of ");
    }
    if (was.local_size != is.local_size) {
      say(went("local size", was.local_size.empty() ? "not known" : was.local_size,
               is.local_size.empty() ? "not known" : is.local_size));
    }
    sets("capabilities", was.capabilities, is.capabilities);
    sets("execution modes", was.modes, is.modes);
    sets("bindings", was.bindings, is.bindings);
    together(was.instructions, is.instructions, "");
    if (was.all != is.all) say(went("instructions", was.all, is.all));
    sets("literals", was.literals, is.literals);
    together(was.decorations, is.decorations, "");
  }

  void say(std::string line) { found_.push_back(std::move(line)); }
  [[nodiscard]] bool told_of_code() const {
    return told_of_ways_ > 0 || found_.size() > told_of_options_;
  }

  CodeChanges changes() && {
    CodeChanges out;
    if (found_.empty()) return out;
    const std::size_t first = std::clamp<std::size_t>(
        told_of_ways_ > 0 ? told_of_ways_ : told_of_options_, 1, k_most_in_headline);
    const auto rest = found_.begin() + static_cast<std::ptrdiff_t>(first);
    out.headline = text::join(std::vector<std::string>(found_.begin(), rest));
    out.lines.assign(rest, found_.end());
    return out;
  }

 private:
  void constant(std::uint32_t id) {
    const auto was = before_.value(id), is = now_.value(id);
    if (was == is) return;
    std::string what = fmt::format("{}{}", k_constant, id);
    for (const CodeSide* side : {&now_, &before_}) {
      const SpirvConstant* known = side->constant(id);
      if (known == nullptr || known->name.empty()) continue;
      what += " (" + text::shortened(known->name, 64) + ")";
      break;
    }
    const bool unused = now_.facts && now_.constant(id) == nullptr;
    say(went(what + ":", text::printable(was.value_or("not set")),
             text::printable(is.value_or("not set"))) +
        (unused ? " (the code does not have it)" : ""));
  }

  using Counts = SpirvFacts::Counts;
  struct Changed {
    std::string words;
    std::int64_t size;
    bool whole;  // came or went altogether
  };
  // The largest first.
  static std::vector<Changed> changed(const Counts& was, const Counts& is,
                                      const std::string& what) {
    Counts all = was;
    all.insert(is.begin(), is.end());
    std::vector<Changed> out;
    for (const auto& [name, count] : all) {
      const std::int64_t a = look_up(was, name, 0), b = look_up(is, name, 0);
      if (a == b) continue;
      out.push_back({went(what + name, a, b), std::abs(b - a), a == 0 || b == 0});
    }
    std::ranges::stable_sort(out, std::greater(), &Changed::size);
    return out;
  }
  void together(const Counts& was, const Counts& is, const std::string& what) {
    const auto words = collect<std::string>(changed(was, is, what), &Changed::words);
    if (!words.empty()) say(verdict::some_of(words, k_most_shown));
  }
  void sets(const std::string& what, const std::set<std::string>& was,
            const std::set<std::string>& is) {
    std::vector<std::string> gone, come, parts;
    std::ranges::set_difference(was, is, std::back_inserter(gone));
    std::ranges::set_difference(is, was, std::back_inserter(come));
    if (!gone.empty()) parts.push_back("gone: " + verdict::some_of(gone, k_most_shown));
    if (!come.empty()) parts.push_back("new: " + verdict::some_of(come, k_most_shown));
    if (!parts.empty()) say(what + " " + text::join(parts, "; "));
  }

  CodeSide before_, now_;
  std::vector<std::string> found_;
  std::size_t told_of_ways_ = 0, told_of_options_ = 0;
};

bool same_code(const KernelCode& a, const KernelCode& b) {
  if (!a.hash.empty() && !b.hash.empty()) return a.hash == b.hash;
  const bool sources = !a.source.empty() && !b.source.empty();
  return a.options == b.options &&
         (sources ? a.source == b.source : std::ranges::equal(a.words, b.words));
}

}  // namespace

CodeChanges code_changes(const KernelCode& before, const KernelCode& now) {
  const bool same_source = !before.source.empty() && before.source == now.source;
  const auto words_of = [&](const KernelCode& one, const KernelCode& other) {
    return one.words.empty() && same_source ? other.words : one.words;
  };
  const auto was = words_of(before, now), is = words_of(now, before);
  CodeComparison comparison(CodeSide(before, was), CodeSide(now, is));
  comparison.ways();
  comparison.options();
  comparison.code();
  const bool both = !was.empty() && !is.empty();
  const bool other = both ? !std::ranges::equal(was, is)
                          : !before.source.empty() && !now.source.empty() && !same_source;
  if (other && !comparison.told_of_code()) {
    comparison.say(both ? "the same instructions, with other operands or in another order"
                        : "other SPIR-V");
  }
  CodeChanges changes = std::move(comparison).changes();
  changes.before = before.hash;
  changes.now = now.hash;
  return changes;
}

std::vector<CodeChanges> code_changes(std::vector<KernelCode> before, std::vector<KernelCode> now) {
  // What is on both sides is no change.
  std::erase_if(before, [&](const KernelCode& one) {
    const auto found = std::ranges::find_if(now, std::bind_front(same_code, std::cref(one)));
    if (found == now.end()) return false;
    now.erase(found);
    return true;
  });
  std::vector<CodeChanges> all;
  for (; !before.empty() && !now.empty() && all.size() < k_most_pairs; before.pop_back()) {
    // The one that differs least.
    std::vector<CodeChanges> ways;
    for (const KernelCode& one : now) ways.push_back(code_changes(before.back(), one));
    const auto least = std::ranges::min_element(ways, {}, [](const CodeChanges& one) {
      return one.lines.size() + one.headline.size() / 32;
    });
    now.erase(now.begin() + (least - ways.begin()));
    all.push_back(std::move(*least));
  }
  return all;
}

}  // namespace weir::explain
