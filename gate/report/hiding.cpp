#include "gate/report/hiding.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

namespace {

constexpr std::size_t k_longest_word = 80;
constexpr std::string_view k_hidden = "***";

enum class Value { plain, prompt, secret };

bool has_part(std::string_view option, std::string_view part) {
  return option.find(part) != std::string_view::npos;
}

// Whether what has this name is a secret: a key, a token, a password. Numbers of tokens, and how
// long keys are, are none.
bool names_secret(std::string_view name, bool number) {
  const std::string lower = text::lower(name);
  for (const std::string_view part : {"key", "token", "secret", "pass", "credential", "auth"}) {
    if (!has_part(lower, part)) continue;
    // "--n-tokens 8", "--tokens 8" are numbers of tokens, "--passes 3" is how often.
    if (has_part(lower, "tokens") || has_part(lower, "passes")) continue;
    // "key_length", "ms_per_token_out", where a number stands behind them.
    const bool short_word = part == "key" || part == "token";
    if (number && short_word && !std::string_view(lower).ends_with(part)) continue;
    return true;
  }
  return false;
}

// What an option is given, by the option's name.
Value value_of(std::string_view option) {
  if (!option.starts_with('-')) return Value::plain;
  const std::string name = text::lower(option);
  if (names_secret(name, false)) return Value::secret;
  if (name == "-p" || name == "-sys" || has_part(name, "prompt")) return Value::prompt;
  return Value::plain;
}

bool ends_word(char c) {
  return std::string_view(" \t\n\r\"'=,()[]<>:;`").find(c) != std::string_view::npos;
}

bool is_slash(char c) { return c == '/' || c == '\\'; }

// "C:\a", "C:/a"
bool on_drive(std::string_view text) {
  return text.size() > 2 && text::is_letter(text[0]) && text[1] == ':' && is_slash(text[2]);
}

// "\\host\a"; the file "\a" of the drive too, as one of two backslashes may have been an escape.
bool on_host(std::string_view word) {
  return word.size() > 2 && word[0] == '\\' && word.find('\\', 2) != word.npos;
}

// Of "a/b/c" the last part; what has no part behind a slash ("/", "a/") keeps that before it.
std::string_view last_part(std::string_view path) {
  while (path.size() > 1 && is_slash(path.back())) path.remove_suffix(1);
  return path.substr(path.find_last_of("/\\") + 1);
}

// Of a word that begins with a slash: it is a file's place, and no name with slashes.
bool certain(std::string_view word) {
  for (const std::string_view top :
       {"~/",        "/home/",    "/Users/", "/root/", "/tmp/",   "/var/",  "/opt/",
        "/mnt/",     "/srv/",     "/usr/",   "/etc/",  "/media/", "/data/", "/workspace/",
        "/scratch/", "/private/", "/nfs/",   "/run/",  "/proc/",  "/dev/"}) {
    if (word.starts_with(top)) return true;
  }
  const std::string_view last = last_part(word);
  const std::size_t dot = last.rfind('.');
  return dot != last.npos && dot + 1 < last.size() && text::is_letter(last[dot + 1]);
}

std::string shown_value(std::string_view word, Value value, Private how) {
  if (value == Value::secret) return std::string(k_hidden);
  if (how == Private::shown) return text::shell_word(one_line(word));
  // "512", "512,1024", "16-64+16": how many tokens of a prompt, not a prompt.
  const bool number = !word.empty() && text::is_digit(word.front()) &&
                      word.find_first_not_of("0123456789.,+-*x") == word.npos;
  const bool long_text = word.size() > k_longest_word || word.find_first_of(" \t\n\r") != word.npos;
  // An address is no path: who it is goes, by the same rule as a path's folder.
  const std::string_view short_word = last_part(word);
  const bool hidden = (value == Value::prompt && !number) ||
                      (long_text && short_word.size() == word.size()) ||
                      short_word.size() > k_longest_word || short_word.find(' ') != short_word.npos;
  return hidden ? fmt::format("<{} bytes>", word.size()) : text::shell_word(one_line(short_word));
}

// Where what an address asks for begins ("https://host/path?api_key=…"), which may hold a key.
std::size_t query_of(std::string_view word) {
  const std::size_t mark = word.find('?');
  if (mark == word.npos || word.find('=', mark) == word.npos) return word.npos;
  return word.find_first_of(" \t\n\r") == word.npos ? mark : word.npos;
}

std::string shown_word(std::string_view word, Private how) {
  if (const std::size_t query = query_of(word); query != word.npos) {
    return fmt::format("{}?{}", shown_word(word.substr(0, query), how), k_hidden);
  }
  const std::size_t equals = word.find('=');
  const bool option = word.starts_with('-');
  // "NAME=/a/b" is a path behind a name.
  if (equals == word.npos || !(option || word.find_first_of("/ ") > equals)) {
    return shown_value(word, Value::plain, how);
  }
  const std::string name = (option ? "" : "-") + std::string(word.substr(0, equals));
  return fmt::format("{}={}", text::shell_word(one_line(word.substr(0, equals))),
                     shown_value(word.substr(equals + 1), value_of(name), how));
}

// Before anything else a backslash is a part of a path of Windows.
bool escaped_by_backslash(char c) {
  return std::string_view("\"'\\ \t\n\r").find(c) != std::string_view::npos;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;  // also of ""
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'' && i + 1 < line.size() && escaped_by_backslash(line[i + 1])) {
      word += line[++i];
      any = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (any) words.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

}  // namespace

std::string shown_command(const std::vector<std::string>& words, Private how) {
  std::string out;
  Value value = Value::plain;
  for (const std::string& word : words) {
    const bool is_value = value != Value::plain;
    out += out.empty() ? "" : " ";
    out += is_value ? shown_value(word, value, how) : shown_word(word, how);
    value = !is_value && word.find('=') == std::string::npos ? value_of(word) : Value::plain;
  }
  return out;
}

std::string shown_command_line(std::string_view line, Private how) {
  const std::vector<std::string> words = words_of(line);
  if (how == Private::shown) return shown_command(words, how);
  std::vector<std::string> joined;
  bool prompt = false;  // the last of them is what an option for prompts was given
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool option = words[i].starts_with('-');
    if (prompt && !option) {
      joined.back() += " " + words[i];
      continue;
    }
    joined.push_back(words[i]);
    const bool before = i > 0 && !option && words[i - 1].find('=') == std::string::npos &&
                        value_of(words[i - 1]) == Value::prompt;
    const std::size_t equals = words[i].find('=');
    const bool within = option && equals != std::string::npos &&
                        value_of(std::string_view(words[i]).substr(0, equals)) == Value::prompt;
    prompt = before || within;
  }
  return shown_command(joined, how);
}

std::string without_places(std::string_view text, Paths which) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    // A drive's colon ends no word.
    const bool drive = on_drive(text.substr(i));
    std::size_t end = drive ? i + 2 : i;
    while (end < text.size() && !ends_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    const bool rooted = (word.starts_with('/') || word.starts_with("~/")) && word.size() > 1;
    const bool path = drive || on_host(word) || (rooted && (which == Paths::all || certain(word)));
    out += path ? last_part(word) : word;
    if (end < text.size()) out += text[end++];
    i = end;
  }
  return out;
}

namespace {

bool part_of_word(char c) { return text::is_alphanumeric(c) || c == '_'; }

void replace_place(std::string& text, std::string_view place, std::string_view instead) {
  const bool path = place.find_first_of("/\\") != place.npos;
  for (std::size_t at = 0; (at = text.find(place, at)) != text.npos;) {
    const std::size_t end = at + place.size();
    // "gpu" may be a host, and is no part of "gpu_memcpy".
    const bool inner =
        (at > 0 && part_of_word(text[at - 1])) || (end < text.size() && part_of_word(text[end]));
    const bool skip = !path && inner;
    if (!skip) text.replace(at, place.size(), instead);
    at += skip ? 1 : instead.size();
  }
}

// "python run.py --api-key k", "TOKEN=k python run.py".
bool like_command(std::string_view text) {
  const std::size_t name = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if (name != text.npos && name > 0 && text[name] == '=') return true;
  for (std::size_t at = 0; (at = text.find(" -", at)) != text.npos; ++at) {
    const std::string_view rest = text.substr(at + 2);
    if (!rest.empty() && rest.front() != ' ' && rest.front() != '>') return true;
  }
  return false;
}

void hide(std::optional<std::string>& text, const Hiding& hiding) {
  if (text) text = hiding.words(*text);
}

void hide(std::vector<std::string>& texts, const Hiding& hiding) {
  for (std::string& text : texts) text = hiding.words(text);
}

void hide(std::map<std::string, std::string>& facts, const Hiding& hiding) {
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : facts) {
    if (!hiding.fact_is_private(name, value)) kept.emplace(hiding.words(name), hiding.words(value));
  }
  facts = std::move(kept);
}

// Names that weir does not know itself.
template <class Measured>
void hide_metrics(std::vector<Measured>& all, const Hiding& hiding) {
  for (Measured& one : all) {
    if (!unit::find_metric(one.metric.name)) one.metric.name = hiding.name(one.metric.name);
  }
}

void hide_ops(std::vector<observed::ObservedOp>& ops, const Hiding& hiding) {
  for (auto& op : ops) {
    for (std::string* text : {&op.op, &op.kernel, &op.type, &op.shape, &op.node}) {
      *text = hiding.name(*text, op.category);
    }
    op.category = hiding.name(op.category);
    op.backend = hiding.words(op.backend);
  }
}

void hide_rows(observed::Observed& observed, const Hiding& hiding) {
  hide_ops(observed.ops, hiding);
  hide_ops(observed.cpu_calls, hiding);
  for (auto& step : observed.steps) step.label = hiding.words(step.label);
  for (auto& buffer : observed.buffers) buffer.label = hiding.words(buffer.label);
  for (auto& split : observed.splits) {
    split.backend = hiding.words(split.backend);
    for (auto& input : split.inputs) input.name = hiding.name(input.name);
  }
  for (auto& counter : observed.counters) {
    counter.name = hiding.words(counter.name);
    counter.track = hiding.process(counter.track);
  }
  for (auto& track : observed.tracks) {
    track.process = hiding.process(track.process);
    track.name = hiding.words(track.name);
  }
}

}  // namespace

Hiding::Hiding(std::vector<std::string> places, Private privacy) : privacy_(privacy) {
  std::ranges::sort(
      places, [](const auto& a, const auto& b) { return a.size() > b.size(); });  // the whole first
  for (std::string& place : places) {
    while (place.size() > 1 && place.ends_with('/')) place.pop_back();
    const std::size_t slash = place.find_last_of("/\\");
    const std::string last = place.substr(slash + 1);
    // A model's file name is no place by itself: it is what the profile is of.
    const bool model = last.ends_with(".gguf") || last.ends_with(".safetensors");
    if (place.empty() || (slash == place.npos && model)) continue;
    places_.emplace_back(place, slash != place.npos ? last : "(hidden)");
  }
}

std::string Hiding::name(std::string_view text, std::string_view category) const {
  return words(text, category == "python_function" ? Paths::all : Paths::certain);
}

std::string Hiding::words(std::string_view text, Paths which) const {
  std::string out(text);
  if (privacy_ == Private::shown) return out;
  for (const auto& [place, instead] : places_) replace_place(out, place, instead);
  return without_places(out, which);
}

std::string Hiding::process(std::string_view text) const {
  return like_command(text) ? command(text) : words(text);
}

std::string Hiding::command(std::string_view line) const {
  return words(shown_command_line(line, privacy_));
}

bool Hiding::fact_is_private(std::string_view fact, std::string_view value) const {
  const bool number = text::to_double(value).has_value();
  if (names_secret(fact, number)) return true;
  if (privacy_ == Private::shown || number) return false;  // how many tokens: nobody's secret
  const std::string name = text::lower(fact);
  constexpr const char* k_private[] = {"prompt", "content",  "user", "host", "token", "message",
                                       "input",  "question", "cwd",  "home", "mail"};
  return std::ranges::any_of(k_private, [&](auto part) { return has_part(name, part); });
}

observed::Observed without_private(observed::Observed observed, Private privacy) {
  auto& context = observed.context;
  const Hiding hiding(context.places, privacy);
  if (privacy == Private::hidden) context.places.clear();
  for (auto* text : {&context.engine, &context.engine_build, &context.model, &context.backend,
                     &context.device}) {
    hide(*text, hiding);
  }
  if (context.command) context.command = hiding.command(*context.command);
  hide(context.facts, hiding);
  hide_rows(observed, hiding);
  hide_metrics(observed.timings, hiding);
  hide_metrics(observed.counts, hiding);
  hide_metrics(observed.latencies, hiding);
  for (auto& one : observed.cases) {
    one.name = hiding.words(one.name);
    hide(one.facts, hiding);
    hide_metrics(one.timings, hiding);
    hide(one.error, hiding);
  }
  hide(observed.errors, hiding);
  hide(observed.warnings, hiding);
  return observed;
}

}  // namespace weir::report
