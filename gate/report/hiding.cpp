// Hides paths, prompts and secrets in command lines and in what engines and profilers wrote.
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

enum class WordKind { plain, prompt, secret };

bool has_part(std::string_view option, std::string_view part) {
  return option.find(part) != std::string_view::npos;
}

// Returns true if an option or fact of this name holds a secret: a key, a token, a password.
// `is_number`: its value is a number, as with lengths of keys and counts of tokens, which are no
// secrets.
bool names_secret(std::string_view name, bool is_number) {
  const std::string lower = text::lower(name);
  for (const std::string_view part : {"key", "token", "secret", "pass", "credential", "auth"}) {
    if (!has_part(lower, part)) continue;
    // "--n-tokens 8", "--tokens 8" and "--passes 3" are counts.
    if (has_part(lower, "tokens") || has_part(lower, "passes")) continue;
    // "key_length" and "ms_per_token_out" are measures if their value is a number.
    const bool is_ambiguous = part == "key" || part == "token";
    if (is_number && is_ambiguous && !std::string_view(lower).ends_with(part)) continue;
    return true;
  }
  return false;
}

// Returns the kind of value that an option takes, by the option's name.
WordKind option_value(std::string_view option) {
  if (!option.starts_with('-')) return WordKind::plain;
  const std::string name = text::lower(option);
  if (names_secret(name, false)) return WordKind::secret;
  if (name == "-p" || name == "-sys" || has_part(name, "prompt")) return WordKind::prompt;
  return WordKind::plain;
}

bool ends_word(char c) {
  return std::string_view(" \t\n\r\"'=,()[]<>:;`").find(c) != std::string_view::npos;
}

bool is_slash(char c) { return c == '/' || c == '\\'; }

// Returns true for "C:\a", "C:/a".
bool starts_with_drive(std::string_view text) {
  return text.size() > 2 && text::is_letter(text[0]) && text[1] == ':' && is_slash(text[2]);
}

// Returns true for "\\host\a", and for "\host\a", as one of two backslashes may have been an
// escape.
bool is_host_path(std::string_view word) {
  return word.size() > 2 && word[0] == '\\' && word.find('\\', 2) != word.npos;
}

// Returns the last part of a path: "c" of "a/b/c" and of "a/b/c/".
std::string_view last_path_part(std::string_view path) {
  while (path.size() > 1 && is_slash(path.back())) path.remove_suffix(1);
  return path.substr(path.find_last_of("/\\") + 1);
}

// Returns true if a word that begins with a slash is surely a path, and no name with slashes: it is
// in a folder that systems have, or its last part has a suffix.
bool is_certain_path(std::string_view word) {
  for (const std::string_view top :
       {"~/",        "/home/",    "/Users/", "/root/", "/tmp/",   "/var/",  "/opt/",
        "/mnt/",     "/srv/",     "/usr/",   "/etc/",  "/media/", "/data/", "/workspace/",
        "/scratch/", "/private/", "/nfs/",   "/run/",  "/proc/",  "/dev/"}) {
    if (word.starts_with(top)) return true;
  }
  const std::string_view last = last_path_part(word);
  const std::size_t dot = last.rfind('.');
  return dot != last.npos && dot + 1 < last.size() && text::is_letter(last[dot + 1]);
}

// Returns a word as it may be shown: "***" for a secret, "<N bytes>" for a prompt or a long text,
// the last part of a path.
std::string show_value(std::string_view word, WordKind value, PrivateWords private_words) {
  if (value == WordKind::secret) return std::string(k_hidden);
  if (private_words == PrivateWords::shown) return text::shell_word(printable_line(word));
  // "512", "512,1024" and "16-64+16" are lengths of prompts, not prompts.
  const bool is_number = !word.empty() && text::is_digit(word.front()) &&
                         word.find_first_not_of("0123456789.,+-*x") == word.npos;
  const bool is_prompt = value == WordKind::prompt && !is_number;
  // The host of an address goes as well, by the same rule as the folder of a path.
  const std::string_view last_part = last_path_part(word);
  const bool is_path = last_part.size() < word.size();
  const bool is_long = word.size() > k_longest_word || word.find_first_of(" \t\n\r") != word.npos;
  const bool ends_long = last_part.size() > k_longest_word || last_part.find(' ') != last_part.npos;
  if (is_prompt || (is_long && !is_path) || ends_long)
    return fmt::format("<{} bytes>", word.size());
  return text::shell_word(printable_line(last_part));
}

// Returns the place of the "?" before an address's query ("https://host/path?api_key=…"), which may
// hold a key; npos without a query.
std::size_t find_query_mark(std::string_view word) {
  const std::size_t mark = word.find('?');
  if (mark == word.npos || word.find('=', mark) == word.npos) return word.npos;
  return word.find_first_of(" \t\n\r") == word.npos ? mark : word.npos;
}

// Returns a word of a command line as it may be shown. The query of an address is hidden. In
// "--option=value" and "NAME=value" the name decides how the value is hidden.
std::string show_word(std::string_view word, PrivateWords private_words) {
  if (const std::size_t query = find_query_mark(word); query != word.npos) {
    return fmt::format("{}?{}", show_word(word.substr(0, query), private_words), k_hidden);
  }
  const std::size_t equals = word.find('=');
  const bool is_option = word.starts_with('-');
  // "NAME=/a/b" is a path after a name, "/a/b=c" is a path.
  const bool is_assignment = equals != word.npos && word.find_first_of("/ ") > equals;
  if (equals == word.npos || (!is_option && !is_assignment)) {
    return show_value(word, WordKind::plain, private_words);
  }
  // option_value() knows options, which begin with "-".
  const std::string name = (is_option ? "" : "-") + std::string(word.substr(0, equals));
  return fmt::format("{}={}", text::shell_word(printable_line(word.substr(0, equals))),
                     show_value(word.substr(equals + 1), option_value(name), private_words));
}

// Returns true if a backslash before `c` is an escape; before others it is part of a Windows path.
bool is_escapable(char c) {
  return std::string_view("\"'\\ \t\n\r").find(c) != std::string_view::npos;
}

// Splits a command line into words as a shell does: quotes and backslashes hold words together.
std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;  // true also within the empty word ""
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'' && i + 1 < line.size() && is_escapable(line[i + 1])) {
      ++i;
      word += line[i];
      in_word = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(word);
  return words;
}

}  // namespace

std::string shown_command(const std::vector<std::string>& words, PrivateWords private_words) {
  std::string out;
  WordKind value = WordKind::plain;
  for (const std::string& word : words) {
    const bool is_value = value != WordKind::plain;
    out += out.empty() ? "" : " ";
    out += is_value ? show_value(word, value, private_words) : show_word(word, private_words);
    value = !is_value && word.find('=') == std::string::npos ? option_value(word) : WordKind::plain;
  }
  return out;
}

// Returns a recorded command line as it may be shown. A prompt of several words, up to the next
// option, is hidden as one.
std::string shown_command_line(std::string_view line, PrivateWords private_words) {
  const std::vector<std::string> words = split_words(line);
  if (private_words == PrivateWords::shown) return shown_command(words, private_words);
  std::vector<std::string> joined;
  bool in_prompt = false;  // the last word of `joined` is a prompt
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_option = words[i].starts_with('-');
    if (in_prompt && !is_option) {
      joined.back() += " " + words[i];
      continue;
    }
    joined.push_back(words[i]);
    // A prompt follows its option, or stands in the same word: "--prompt=text".
    const bool follows_option = i > 0 && !is_option &&
                                words[i - 1].find('=') == std::string::npos &&
                                option_value(words[i - 1]) == WordKind::prompt;
    const std::size_t equals = words[i].find('=');
    const bool follows_equals =
        is_option && equals != std::string::npos &&
        option_value(std::string_view(words[i]).substr(0, equals)) == WordKind::prompt;
    in_prompt = follows_option || follows_equals;
  }
  return shown_command(joined, private_words);
}

// Cuts absolute paths in a text to their last part: "/a/b/c", "~/b/c", "C:\a\b". `which` says if
// paths that may be something else are cut too.
std::string without_places(std::string_view text, Paths which) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    // The colon of a drive doesn't end the word.
    const bool has_drive = starts_with_drive(text.substr(i));
    std::size_t end = has_drive ? i + 2 : i;
    while (end < text.size() && !ends_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    const bool is_rooted = (word.starts_with('/') || word.starts_with("~/")) && word.size() > 1;
    const bool is_path = has_drive || is_host_path(word) ||
                         (is_rooted && (which == Paths::all || is_certain_path(word)));
    out += is_path ? last_path_part(word) : word;
    if (end < text.size()) {
      out += text[end];
      ++end;
    }
    i = end;
  }
  return out;
}

namespace {

// Replaces each `place` in the text. A place that is no path is replaced only as a word: the host
// "gpu", but not a part of "gpu_memcpy".
void replace_place(std::string& text, std::string_view place, std::string_view replacement) {
  const bool is_path = place.find_first_of("/\\") != place.npos;
  std::size_t at = text.find(place);
  while (at != text.npos) {
    const std::size_t end = at + place.size();
    const bool is_part_of_word =
        (at > 0 && is_word_char(text[at - 1])) || (end < text.size() && is_word_char(text[end]));
    if (!is_path && is_part_of_word) {
      ++at;
    } else {
      text.replace(at, place.size(), replacement);
      at += replacement.size();
    }
    at = text.find(place, at);
  }
}

// Returns true for a text with an option or a variable: "python run.py --api-key k", "TOKEN=k
// python run.py".
bool looks_like_command(std::string_view text) {
  const std::size_t name = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if (name != text.npos && name > 0 && text[name] == '=') return true;
  for (std::size_t at = text.find(" -"); at != text.npos; at = text.find(" -", at + 1)) {
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
  std::map<std::string, std::string> shown_facts;
  for (const auto& [name, value] : facts) {
    if (!hiding.fact_is_private(name, value))
      shown_facts.emplace(hiding.words(name), hiding.words(value));
  }
  facts = std::move(shown_facts);
}

// Hides places in names of metrics that are not weir's own.
template <class Measured>
void hide_metrics(std::vector<Measured>& all, const Hiding& hiding) {
  for (Measured& measured : all) {
    if (!unit::find_metric(measured.metric.name))
      measured.metric.name = hiding.name(measured.metric.name);
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

// Hides private words in all rows: ops, calls, steps, buffers and splits.
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

Hiding::Hiding(std::vector<std::string> places, PrivateWords privacy) : privacy_(privacy) {
  std::ranges::sort(
      places, [](const auto& a, const auto& b) { return a.size() > b.size(); });  // longest first
  for (std::string& place : places) {
    while (place.size() > 1 && place.ends_with('/')) place.pop_back();
    const std::size_t slash = place.find_last_of("/\\");
    const std::string last = place.substr(slash + 1);
    // The bare file name of a model may be shown: the profile is of this model.
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
  if (privacy_ == PrivateWords::shown) return out;
  for (const auto& [place, replacement] : places_) replace_place(out, place, replacement);
  return without_places(out, which);
}

std::string Hiding::process(std::string_view text) const {
  return looks_like_command(text) ? command(text) : words(text);
}

std::string Hiding::command(std::string_view line) const {
  return words(shown_command_line(line, privacy_));
}

bool Hiding::fact_is_private(std::string_view fact, std::string_view value) const {
  const bool number = text::to_double(value).has_value();
  if (names_secret(fact, number)) return true;
  if (privacy_ == PrivateWords::shown || number) return false;
  const std::string name = text::lower(fact);
  constexpr const char* k_private[] = {"prompt", "content",  "user", "host", "token", "message",
                                       "input",  "question", "cwd",  "home", "mail"};
  return std::ranges::any_of(k_private, [&](auto part) { return has_part(name, part); });
}

// Returns the measurement without private words and places. If those may be shown, hides secrets
// alone.
observed::Observed without_private(observed::Observed observed, PrivateWords privacy) {
  auto& context = observed.context;
  const Hiding hiding(context.places, privacy);
  if (privacy == PrivateWords::hidden) context.places.clear();
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
  for (auto& test : observed.cases) {
    test.name = hiding.words(test.name);
    hide(test.facts, hiding);
    hide_metrics(test.timings, hiding);
    hide_metrics(test.latencies, hiding);
    hide(test.error, hiding);
  }
  hide(observed.errors, hiding);
  hide(observed.warnings, hiding);
  return observed;
}

}  // namespace weir::report
