// Chooses which variables a process does not inherit.
#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {
namespace {

// Returns true if an address in the text names a user: "https://me:secret@host".
bool has_address_with_user(std::string_view text) {
  constexpr std::string_view k_scheme_end = "://";
  for (std::size_t at = text.find(k_scheme_end); at != std::string_view::npos;
       at = text.find(k_scheme_end)) {
    text.remove_prefix(at + k_scheme_end.size());
    const std::size_t end = text.find_first_of("@/?# \t\r\n");
    if (end != std::string_view::npos && text[end] == '@') return true;
  }
  return false;
}

// Returns true if a process with these `passed` patterns does not inherit the variable. Pure.
bool is_withheld(std::string_view name, std::string_view value,
                 const std::vector<std::string>& passed) {
  const std::string lower = text::lower(name);
  const auto matches = [&](std::string_view pattern) {
    return text::glob_match(text::lower(pattern), lower);
  };
  return (has_address_with_user(value) || std::ranges::any_of(k_withheld, matches)) &&
         std::ranges::none_of(passed, matches);
}

}  // namespace

// Returns the environment without withheld variables. Of git's settings, only safe.directory stays.
EnvironmentList inherited(const EnvironmentList& own, const std::vector<std::string>& passed) {
  EnvironmentList list;
  std::ranges::copy_if(own, std::back_inserter(list), [&](const auto& entry) {
    return !is_withheld(entry.first, entry.second, passed);
  });
  constexpr std::string_view k_key = "GIT_CONFIG_KEY_", k_value = "GIT_CONFIG_VALUE_";
  if (!is_withheld("GIT_CONFIG_COUNT", "", passed)) return list;
  int count = 0;
  for (const auto& [name, key] : own) {
    if (!name.starts_with(k_key) || text::lower(key) != "safe.directory") continue;
    const std::string value_name = fmt::format("{}{}", k_value, name.substr(k_key.size()));
    const auto value = std::ranges::find(own, value_name, &EnvironmentList::value_type::first);
    if (value == own.end()) continue;
    list.emplace_back(fmt::format("{}{}", k_key, count), key);
    list.emplace_back(fmt::format("{}{}", k_value, count), value->second);
    ++count;
  }
  if (count > 0) list.emplace_back("GIT_CONFIG_COUNT", std::to_string(count));
  return list;
}

std::string withheld_names(const std::vector<std::string>& passed) {
  std::vector<std::string> names;
  for (const auto& [name, value] : own_environment()) {
    if (is_withheld(name, value, passed)) names.push_back(text::printable(name));
  }
  std::ranges::sort(names);
  return text::join(names);
}

}  // namespace weir::sys
