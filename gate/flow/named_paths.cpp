// Reads the words of a cell, and turns them into paths.
#include "gate/flow/named_paths.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/placeholders.hpp"
#include "gate/config/word_paths.hpp"

namespace weir::flow {
namespace {

constexpr char k_other_text = '\4';  // a text that is no path
constexpr std::string_view k_quotes = "\"'";
constexpr std::string_view k_before_folders[] = {"cd", "pushd", "-C", "--chdir", "--directory"};
// Characters that shells, options, lists and URLs put between names.
constexpr std::string_view k_separators = " \t\r\n\"'`;&|<>()[]{},:=@#";
// Characters that some programs put between a name and what they add to it ("w.txt?mode=ro",
// "a.gguf+b.gguf", "w.txt*0.5"), and that names and patterns may hold as well.
constexpr std::string_view k_possible_separators = "+^%!", k_glob_separators = "?*";

// A text of a variable with an operator that is not computed: any text. A word that is nothing else
// may be any file.
constexpr std::string_view k_any_word = "\3\3";

// How a variable with an operator is filled in ("${IN%.txt}").
enum class Operators {
  any_text,
  value,  // as a shell computes it
};

// Returns the parts that remain of a value if a shell removes what matches a pattern of its end or
// its beginning; nothing if they cannot be told.
std::optional<std::string> cut_value(const std::string& value, char side, bool is_longest,
                                     const std::string& pattern) {
  constexpr std::size_t k_most = 4096;
  if (value.size() > k_most || pattern.find_first_of("?[]\\(|") != pattern.npos)
    return std::nullopt;
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const std::size_t size = is_longest ? value.size() - i : i;
    const bool is_end = side == '%';
    const std::string part = is_end ? value.substr(value.size() - size) : value.substr(0, size);
    if (text::glob_match(pattern, part))
      return is_end ? value.substr(0, value.size() - size) : value.substr(size);
  }
  return value;
}

// Returns what a shell makes of a variable's value by an operator ("%.txt", ":0:4", "/a/b");
// nothing if that is not told from the text alone.
std::optional<std::string> apply_operator(const std::string& value, std::string_view text) {
  std::string plain(text);
  std::erase_if(plain, [](char c) { return holds(k_quotes, c); });
  if (plain.find_first_of("$`\\") != plain.npos || plain.empty()) return std::nullopt;
  const char first = plain[0];
  const bool is_double = plain.size() > 1 && plain[1] == first;
  if (first == '%' || first == '#')
    return cut_value(value, first, is_double, plain.substr(is_double ? 2 : 1));
  if (first == ',' || first == '^') {
    if (!is_double || plain.size() != 2) return std::nullopt;
    std::string changed = text::lower(value);
    const auto to_upper = [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    };
    if (first == '^') std::ranges::transform(value, changed.begin(), to_upper);
    return changed;
  }
  if (first == '/') {
    const std::size_t begin = is_double ? 2 : 1;
    const std::size_t slash = std::min(plain.find('/', begin), plain.size());
    const std::string from = plain.substr(begin, slash - begin);
    const std::string to = slash < plain.size() ? plain.substr(slash + 1) : "";
    if (from.empty() || from.find_first_of("*?[]#%&") != from.npos || to.find('&') != to.npos)
      return std::nullopt;
    std::string changed;
    std::size_t at = 0;
    for (std::size_t next = value.find(from); next != value.npos; next = value.find(from, at)) {
      changed += value.substr(at, next - at) + to;
      at = next + from.size();
      if (!is_double) break;
    }
    return changed + value.substr(at);
  }
  const std::string_view rest = std::string_view(plain).substr(1);
  const bool is_default =
      std::string_view(":-=+?").find(first) != std::string_view::npos &&
      (first != ':' || (!rest.empty() && holds(std::string_view("-=+?"), rest[0])));
  if (is_default) {
    const char kind = first == ':' ? rest[0] : first;
    const std::string other(rest.substr(first == ':' ? 1 : 0));
    if (kind == '+') return first == ':' && value.empty() ? std::string() : other;
    return first == ':' && value.empty() ? other : value;
  }
  if (first != ':') return std::nullopt;
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const auto from = text::to_int(text::trim(rest.substr(0, colon)));
  const auto length = colon < rest.size() ? text::to_int(text::trim(rest.substr(colon + 1)))
                                          : std::optional<long long>(std::ssize(value));
  if (!from || !length || *length < 0) return std::nullopt;
  const long long begin = *from < 0 ? std::ssize(value) + *from : *from;
  if (begin < 0 || begin > std::ssize(value)) return std::string();
  return value.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(*length));
}

// Replaces what a shell fills in by wildcards, and variables that the cell sets by their values.
class ShellText {
 public:
  ShellText(std::string_view text, const config::Environment& environment,
            Operators operators = Operators::any_text)
      : text_(text), environment_(environment), operators_(operators) {}

  std::string filled() {
    while (at_ < text_.size()) take_next();
    return std::move(filled_);
  }

 private:
  void take_next() {
    const char c = text_[at_++];
    if (c == '$') {
      take_variable();
    } else if (c == '*' && text_.substr(at_, 1) == "*") {
      filled_ += k_anything;
    } else if (c == '*' || c == '?') {
      filled_ += k_name_part;
    } else if (c == '[' || c == '{') {
      take_choice(c == '[' ? ']' : '}');
    } else if (c == ')' || c == '`') {
      // The output of a command may stand before the rest.
      filled_ += c;
      if (at_ < text_.size() && text_[at_] == '/') filled_ += k_anything;
    } else {
      filled_ += c;
    }
  }
  void take_variable() {
    const bool is_braced = text_.substr(at_, 1) == "{";
    const std::size_t begin = at_ + (is_braced ? 1 : 0);
    std::size_t end = begin;
    while (end < text_.size() && (text::is_alphanumeric(text_[end]) || text_[end] == '_')) ++end;
    const std::string name(text_.substr(begin, end - begin));
    at_ = end;
    std::string_view rest;
    if (is_braced) {
      const std::size_t close = find_close(end);
      rest = text_.substr(end, close - end);
      at_ = std::min(close + 1, text_.size());
    }
    const std::string* value = look_up(environment_, name);
    if (value == nullptr && name.empty() && is_braced) {
      fill_named_otherwise(rest);
    } else if (value == nullptr) {
      filled_ += k_anything;
    } else if (rest.empty()) {
      filled_ += *value;
    } else {
      fill_by_operator(*value, rest);
    }
  }
  // Returns the place of the brace that closes an expansion; braces may be nested.
  [[nodiscard]] std::size_t find_close(std::size_t at) const {
    int depth = 1;
    for (; at < text_.size(); ++at) {
      if (text_[at] == '{' && text_[at - 1] == '$') ++depth;
      if (text_[at] == '}' && --depth == 0) break;
    }
    return at;
  }
  // Fills in "${!IN}" and "${#IN}".
  void fill_named_otherwise(std::string_view rest) {
    const bool is_of_cell = !rest.empty() && look_up(environment_, std::string(rest.substr(1)));
    if (rest.starts_with('#')) {
      filled_ += k_digits;
    } else if (is_of_cell && operators_ == Operators::value) {
      const std::string* other =
          look_up(environment_, *look_up(environment_, std::string(rest.substr(1))));
      filled_ += other != nullptr ? std::string_view(*other) : k_any_word;
    } else {
      filled_ += k_anything;
    }
  }
  void fill_by_operator(const std::string& value, std::string_view rest) {
    if (operators_ == Operators::any_text) {
      filled_ += k_anything;
    } else if (const auto computed = apply_operator(value, rest)) {
      filled_ += *computed;
    } else {
      filled_ += k_any_word;
    }
  }
  // "[0-9]" or "{a,b}" of a file name; else, as in JSON, the bracket is itself.
  void take_choice(char closing) {
    const std::size_t end = text_.find_first_of(std::string(" \t\n\"'/") + closing, at_);
    const bool is_choice = end != std::string_view::npos && text_[end] == closing;
    filled_ += is_choice ? k_name_part : ' ';
    if (is_choice) at_ = end + 1;
  }

  std::string_view text_;
  const config::Environment& environment_;
  Operators operators_;
  std::size_t at_ = 0;
  std::string filled_;
};

// Returns `path` from the top, "." and ".." taken out. ".." stays at the top.
std::string from_top(const std::string& path) { return sys::absolute("/" + path).substr(1); }

// Returns true for variables in whose folders loaders and interpreters look for programs.
bool names_code(const std::string& variable) {
  constexpr std::string_view k_patterns[] = {
      "PATH",        "*PYTHON*", "LD_*",      "DYLD_*",    "*LIBRARY_PATH",  "NODE_PATH",
      "PERL5LIB",    "RUBYLIB",  "CLASSPATH", "JAVA_HOME", "CUDA_HOME",      "LUA_*PATH",
      "VIRTUAL_ENV", "CMAKE_*",  "GOPATH",    "JULIA_*",   "PKG_CONFIG_PATH"};
  return std::ranges::any_of(
      k_patterns, [&](std::string_view pattern) { return text::glob_match(pattern, variable); });
}

// Lists the words of one cell.
class WordList {
 public:
  explicit WordList(const config::Cell& cell) : cell_(cell) {}

  std::vector<NamedWord> read() {
    for (const auto& file :
         {std::optional(cell_.model_path), cell_.prompt_file, cell_.workload, twin_file()}) {
      if (file) words_.push_back({.text = *file, .is_in_command = true, .is_whole_input = true});
    }
    const bool has_container = cell_.engine != nullptr && cell_.engine->container.has_value();
    if (has_container) {
      for (const std::string& word : cell_.engine->container->args) add_word(word, false, false);
    }
    for (std::size_t i = 0; i < cell_.command.size(); ++i)
      add_word(cell_.command[i], i == 0, !has_container);
    for (const std::string& word : cell_.counted_run_args) add_word(word, false, false);
    for (const config::Environment* environment : {&cell_.env, &cell_.counted_run_env}) {
      for (const auto& [name, value] : *environment) {
        const NamedWord like{.text = fill(value), .holds_code = names_code(name)};
        words_.push_back(like);
        add_parts(like.text, like);
        add_parts(ShellText(like.text, *environment).filled(), like);
        add_parts(ShellText(like.text, *environment, Operators::value).filled(), like);
      }
    }
    return std::move(words_);
  }

 private:
  // A description in the repository precedes the one that weir brings.
  [[nodiscard]] std::optional<std::string> twin_file() const {
    if (!cell_.twin) return std::nullopt;
    return "configs/devices/" + *cell_.twin + ".json";
  }

  // Adds what a word means whose name has the prompt in it: "in/{prompt}.json".
  void add_prompt_name(const std::string& written) {
    const bool is_name = cell_.text && cell_.text->find_first_of(" \t\r\n") == std::string::npos;
    if (is_name) add_parts(fill(written, *cell_.text), {.is_in_command = true});
  }

  // Fills in the files of the cell, and marks the other placeholders, but for the prompt if its
  // text is given.
  [[nodiscard]] std::string fill(const std::string& word,
                                 const std::optional<std::string>& prompt = std::nullopt) const {
    return config::substitute(word, [&](std::string_view name) -> std::string {
      if (name == "prompt" && prompt) return *prompt;
      if (name == "model") return cell_.model_path;
      if (name == "prompt_file") return cell_.prompt_file.value_or("");
      const bool is_text =
          name == "prompt" || name == "out" || name == "probe_dir" || name == "args";
      return {is_text ? k_other_text : k_digits};
    });
  }

  // Adds a word of the command. Programs that a build makes are in no commit, so a token that is
  // written like a path may be one.
  void add_word(const std::string& written, bool is_first, bool guesses) {
    const std::string word = fill(written);
    const bool is_program = is_first && word.find('/') != std::string::npos;
    if (is_first && !is_program) return;  // it is looked up in PATH
    words_.push_back({.text = word,
                      .is_program = is_program,
                      .may_be_built = is_program,
                      .is_in_command = true});
    if (is_program) return;
    if (written != "{prompt}" && written.find("{prompt}") != std::string::npos)
      add_prompt_name(written);
    const std::string filled = ShellText(word, cell_.env).filled();
    for (const std::string& token : config::split_at_any(filled, " \t\r\n")) {
      const bool is_path = token.find('/') != std::string::npos && !token.starts_with('-') &&
                           token.find_first_of("=:") == std::string::npos;
      const bool is_folder = holds(k_before_folders, previous_token_);
      const NamedWord like{.may_be_built = guesses && is_path && !is_folder, .is_in_command = true};
      add_parts(token, like);
      std::string unquoted = token;  // "da'ta'.bin"
      std::erase_if(unquoted, [](char c) { return c == '\\' || holds(k_quotes, c); });
      if (unquoted != token) add_parts(unquoted, like);
      previous_token_ = token;
    }
    // "${IN%.txt}", which alone says nothing as any text.
    const std::string computed = ShellText(word, cell_.env, Operators::value).filled();
    if (computed != filled) {
      std::string unquoted = computed;
      std::erase_if(unquoted, [](char c) { return holds(k_quotes, c); });
      for (const std::string& token : config::split_at_any(unquoted, " \t\r\n"))
        add_parts(token, {.is_in_command = true});
    }
    add_possible_parts(word);
    for (const std::string& quoted : config::split_at_any(filled, k_quotes)) {
      if (quoted.find(' ') != std::string::npos)
        words_.push_back({.text = quoted, .is_in_command = true});
    }
  }

  // Adds what stands between characters that may be a part of a name or separate it. Of a pattern,
  // only what has a name with a suffix: "in/*.txt" does not name the folder.
  void add_possible_parts(const std::string& word) {
    const std::string separators = std::string(k_separators) + std::string(k_possible_separators);
    const bool is_pattern = word.find_first_of(k_glob_separators) != std::string::npos;
    if (word.find_first_of(k_possible_separators) == std::string::npos && !is_pattern) return;
    const std::string all = separators + std::string(k_glob_separators);
    for (const std::string& part : config::split_at_any(word, is_pattern ? all : separators)) {
      const std::size_t name = part.rfind('/') + 1;
      const std::size_t dot = part.find('.', name);
      const bool is_file_name = dot != std::string::npos && dot > name;
      if (is_file_name || !is_pattern) words_.push_back({.text = part, .is_in_command = true});
    }
  }

  void add_parts(const std::string& token, NamedWord like) {
    for (const std::string& part : config::split_at_any(token, k_separators)) {
      like.text = part;
      words_.push_back(like);
      // "-Ifolder": an option of one letter with its value.
      const bool has_value = part.size() > 2 && part[0] == '-' && text::is_letter(part[1]);
      if (!has_value) continue;
      like.text = part.substr(2);
      words_.push_back(like);
    }
  }

  const config::Cell& cell_;
  std::string previous_token_;
  std::vector<NamedWord> words_;
};

}  // namespace

bool has_wildcard(std::string_view pattern) {
  return pattern.find_first_of(k_wildcards) != std::string_view::npos;
}

// Returns true if the pattern matches the whole path. Follows all possible matches at once, so that
// hostile patterns stay cheap.
bool matches_pattern(std::string_view pattern, std::string_view path) {
  const std::size_t first = std::min(pattern.find_first_of(k_wildcards), pattern.size());
  if (!path.starts_with(pattern.substr(0, first))) return false;
  pattern.remove_prefix(first);
  path.remove_prefix(first);
  // The lengths of `path` that the pattern so far takes.
  std::vector<bool> taken(path.size() + 1);
  taken[0] = true;
  for (const char c : pattern) {
    std::vector<bool> next(path.size() + 1);
    if (c == k_anything || c == k_name_part) next[0] = taken[0];
    for (std::size_t i = 0; i < path.size(); ++i) {
      const char next_char = path[i];
      if (c == k_anything || c == k_name_part) {
        next[i + 1] = taken[i + 1] || (next[i] && (c == k_anything || next_char != '/'));
      } else if (c == k_digits) {
        next[i + 1] = (taken[i] || next[i]) && next_char >= '0' && next_char <= '9';
      } else {
        next[i + 1] = taken[i] && next_char == c;
      }
    }
    taken = std::move(next);
  }
  return taken.back();
}

std::vector<NamedWord> named_parts(const config::Cell& cell) { return WordList(cell).read(); }

// Returns the words of a cell's command and the values of its environment, one a line, without
// quotes.
std::string named_text(const config::Cell& cell) {
  std::string text;
  const auto add = [&](const std::string& word) { text += word + '\n'; };
  std::ranges::for_each(cell.command, add);
  std::ranges::for_each(cell.counted_run_args, add);
  for (const config::Environment* environment : {&cell.env, &cell.counted_run_env}) {
    for (const auto& [name, value] : *environment) add(value);
  }
  std::erase_if(text, [](char c) { return c == '\\' || holds(k_quotes, c); });
  // The default of a variable begins after its operator: "${FILE-in/w.json}".
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 1)) {
    const auto is_of_name = [](char c) { return text::is_alphanumeric(c) || c == '_' || c == '{'; };
    std::size_t end = at + 1;
    while (end < text.size() && is_of_name(text[end])) ++end;
    for (; end < text.size() && holds(std::string_view(":-=+?"), text[end]); ++end) text[end] = ' ';
  }
  return text;
}

void NamedPlaces::add_start(const std::string& folder) {
  constexpr std::size_t k_max_starts = 32;
  if (starts_.size() < k_max_starts && !holds(starts_, folder)) starts_.push_back(folder);
}

std::vector<std::string> NamedPlaces::paths_of(const NamedWord& word) const {
  constexpr std::size_t k_max_path_length = 1024;
  constexpr std::string_view k_any_folder = "\3/";
  std::string text = word.text;
  const bool has_name = std::ranges::any_of(
      text, [](char c) { return text::is_alphanumeric(c) || c == k_digits || c == '.'; });
  const bool is_any = text == k_any_word;
  if ((!has_name && !is_any) || text.starts_with('-') || text.size() > k_max_path_length ||
      text.find(k_other_text) != std::string::npos)
    return {};
  std::vector<std::string> paths;
  const auto add = [&](std::string path) {
    if (!holds(paths, path)) paths.push_back(std::move(path));
  };
  if (text.starts_with('~')) text.replace(0, std::min(text.find('/'), text.size()), 1, k_anything);
  if (text.starts_with(k_any_folder)) {
    const std::string rest = from_top(text.substr(k_any_folder.size()));
    if (rest.empty()) return {};
    add(std::string(k_any_folder) + rest);
    add(rest);
    return paths;
  }
  if (text.starts_with('/')) {
    const std::string path = sys::absolute(text);
    for (const std::string& root : roots_) {
      if (auto inner = sys::relative_path(path, root)) return {*std::move(inner)};
    }
    if (word.is_program || word.is_whole_input) return {};
    // A container, or a URL, may have the top or the configuration's folder in another place.
    for (std::size_t at = 0; at != std::string::npos; at = path.find('/', at + 1)) {
      add(path.substr(at + 1));
      add(from_top(place_ + path.substr(at)));
    }
    return paths;
  }
  for (const std::string& start : starts_) add(from_top(sys::join_path(start, text)));
  if (!text.starts_with("../")) return paths;
  // A folder that no commit has, such as a build's, may be where it counts from.
  std::string rest = text;
  while (rest.starts_with("../")) rest.erase(0, 3);
  std::string folder = place_;
  while (!folder.empty()) {
    add(from_top(sys::join_path(folder, rest)));
    const std::size_t slash = folder.rfind('/');
    folder = slash == std::string::npos ? "" : folder.substr(0, slash);
  }
  add(from_top(rest));
  return paths;
}

}  // namespace weir::flow
