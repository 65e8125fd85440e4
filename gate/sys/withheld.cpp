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

constexpr std::string_view k_quotes_and_blanks = " \t\r\n\"'";

bool is_name_character(char c) {
  return text::is_alphanumeric(c) || c == '_' || c == '-' || c == '.';
}

// Returns true if the text has a user with a password before a host: "me:secret@host".
bool has_login(std::string_view text) {
  constexpr std::string_view k_digest = "sha256:";  // "image:tag@sha256:…"
  for (std::size_t at_sign = text.find('@'); at_sign != std::string_view::npos;
       at_sign = text.find('@', at_sign + 1)) {
    const std::string_view host = text.substr(at_sign + 1);
    if (host.empty() || !text::is_alphanumeric(host[0]) || host.starts_with(k_digest)) continue;
    const std::size_t separator = text.substr(0, at_sign).find_last_of(" \t\r\n\"'/@,;");
    const std::size_t begin = separator == std::string_view::npos ? 0 : separator + 1;
    const std::string_view login = text.substr(begin, at_sign - begin);
    const std::size_t colon = login.find(':');
    if (colon == 0 || colon == std::string_view::npos || colon + 1 == login.size()) continue;
    return true;
  }
  return false;
}

// Returns true if the text sets something whose name is a secret's: "password=x", "sig=x",
// "\"apiKey\": \"x\"", "Authorization: x". A ':' after a bare name separates folders (PATH).
bool has_secret_setting(std::string_view text) {
  // Without '-', '_' and '.'. Names that end in "tokens" or "key" may be an engine's.
  constexpr std::string_view k_names[] = {
      "pass",        "pwd",          "sig",           "auth",          "token",      "*password",
      "*passwd",     "*passphrase",  "*secret",       "*secretkey",    "*accesskey", "*accountkey",
      "*apikey",     "*privatekey",  "*signingkey",   "*accesstoken",  "*authtoken", "*sastoken",
      "*oauthtoken", "*bearertoken", "*refreshtoken", "authorization", "*cookie"};
  for (std::size_t sign_at = text.find_first_of("=:"); sign_at != std::string_view::npos;
       sign_at = text.find_first_of("=:", sign_at + 1)) {
    const std::string_view before = text.substr(0, sign_at), after = text.substr(sign_at + 1);
    const bool is_quoted = before.ends_with('"') || before.ends_with('\'');
    if (text[sign_at] == ':' && !is_quoted && !after.starts_with(' ')) continue;
    const std::size_t value_at = after.find_first_not_of(k_quotes_and_blanks);
    if (value_at == std::string_view::npos || after[value_at] == ';' || after[value_at] == '&')
      continue;
    const std::string_view unquoted = before.substr(0, before.size() - (is_quoted ? 1 : 0));
    std::size_t begin = unquoted.size();
    while (begin > 0 && is_name_character(unquoted[begin - 1])) --begin;
    std::string name = text::lower(unquoted.substr(begin));
    std::erase_if(name, [](char c) { return !text::is_alphanumeric(c); });
    if (std::ranges::any_of(k_names, [&](auto pattern) { return text::glob_match(pattern, name); }))
      return true;
  }
  return false;
}

// Returns true if a word of the text begins as tokens of known services do, or if the text
// contains a private key.
bool has_token(std::string_view text) {
  constexpr std::string_view k_token_prefixes[] = {"ghp_", "gho_",        "ghu_",   "ghs_",
                                                   "ghr_", "github_pat_", "glpat-", "hf_",
                                                   "sk-",  "xoxb-",       "xoxp-",  "eyJhbGci"};
  constexpr std::size_t k_min_rest = 16;
  for (const std::string_view prefix : k_token_prefixes) {
    for (std::size_t at = text.find(prefix); at != std::string_view::npos;
         at = text.find(prefix, at + 1)) {
      const bool is_begin = at == 0 || !is_name_character(text[at - 1]);
      const std::string_view rest = text.substr(at + prefix.size());
      const auto end = std::ranges::find_if_not(rest, is_name_character);
      if (is_begin && end - rest.begin() >= std::ptrdiff_t{k_min_rest}) return true;
    }
  }
  return text.find("PRIVATE KEY-----") != std::string_view::npos;
}

bool holds_secret(std::string_view text) {
  return has_address_with_user(text) || has_login(text) || has_secret_setting(text) ||
         has_token(text);
}

// Returns true if a process with these `passed` patterns does not inherit the variable. Pure.
bool is_withheld(std::string_view name, std::string_view value,
                 const std::vector<std::string>& passed) {
  const std::string lower = text::lower(name);
  const auto matches = [&](std::string_view pattern) {
    return text::glob_match(text::lower(pattern), lower);
  };
  return (holds_secret(value) || std::ranges::any_of(k_withheld, matches)) &&
         std::ranges::none_of(passed, matches);
}

}  // namespace

// Returns the environment for an engine, without variables that may hold secrets unless they are
// in `passed`. Of git's settings, only safe.directory stays.
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
