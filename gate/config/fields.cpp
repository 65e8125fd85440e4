// Reads values out of YAML nodes with their types, and collects problems.

#include "gate/config/parse.hpp"
#include "gate/config/pattern.hpp"
#include "gate/config/placeholders.hpp"

namespace weir::config {
namespace {

constexpr std::size_t k_max_names = 30;  // of a list of choices

constexpr std::size_t k_shown_problems = 8;
constexpr std::size_t k_longest_text = 60;
constexpr double k_below = 0.5;  // a share is

// Returns `text` on one line, printable and cut.
std::string shorten(std::string_view text) {
  std::string result = text::printable(text.substr(0, k_longest_text));
  std::ranges::replace_if(
      result, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text.size() > k_longest_text ? result + "…" : result;
}

// Complains about placeholders in `text` that weir does not have.
void check_placeholders(std::string_view text, TextPosition at, Problems& problems) {
  const auto& names = placeholder_names();
  for (const std::string& word : placeholders_in(text)) {
    if (!holds(names, word)) {
      problems.add(at, "unknown placeholder \"{{{}}}\"{}: write {{{{{}}}}} for the text itself{}",
                   shorten(word), text::did_you_mean(word, names), shorten(word),
                   choices_text(names));
    }
  }
}

}  // namespace

bool is_variable_name(std::string_view name) {
  const auto fits = [](char c) { return text::is_alphanumeric(c) || c == '_'; };
  return !name.empty() && !text::is_digit(name[0]) && std::ranges::all_of(name, fits);
}

std::nullopt_t Problems::add(TextPosition at, std::string message) {
  if (is_full()) {
    ++more_;
  } else {
    entries_.emplace_back(at, std::move(message));
  }
  return std::nullopt;
}

std::nullopt_t Problems::report_expected(const Node& node, std::string_view what,
                                         std::string_view wanted) {
  return add(node.position, fmt::format("{} must be {}, not {}", what, wanted, describe(node)));
}

void Problems::report_unknown(TextPosition at, std::string_view what, std::string_view word,
                              std::span<const std::string> names) {
  if (is_full()) return void(add(at, std::string()));  // a suggestion takes time by all names
  const std::string suggestion = text::did_you_mean(word, names);
  // A list that is cut off adds nothing to a suggestion.
  const bool has_list = suggestion.empty() || names.size() <= k_max_names;
  add(at, fmt::format("unknown {} \"{}\"{}{}", what, text::printable(word), suggestion,
                      has_list ? choices_text(names) : ""));
}

void Problems::check_expression(TextPosition at, std::string_view expression) {
  constexpr std::size_t k_max_expressions = 500;
  ++expressions_;
  if (expressions_ == k_max_expressions + 1) {
    add(at, "more than {} regular expressions", k_max_expressions);
  }
  if (expressions_ > k_max_expressions) return;
  if (const auto pattern = Pattern::compile(expression); !pattern) {
    add(at, pattern.error().message);
  }
}

std::string Problems::source(TextPosition at) const {
  // Typed settings have no lines.
  return file_ == k_command_line ? file_ : fmt::format("{}:{}:{}", file_, at.line, at.column);
}

// Returns all problems as one error, a line each: mistyped keys, which cause others, such as a key
// that is missing; then the rest, in the order of the file. Those after the first few are only
// counted.
Error Problems::error() const {
  auto sorted = entries_;
  std::ranges::stable_sort(sorted, {}, [](const auto& entry) {
    const auto& [at, message] = entry;
    const bool is_mistyped_key =
        message.starts_with("unknown key") && message.find("did you mean") != std::string::npos;
    return std::pair(!is_mistyped_key, at);
  });
  std::vector<std::string> lines;
  for (const auto& [at, message] :
       std::span(sorted).first(std::min(sorted.size(), k_shown_problems))) {
    lines.push_back(source(at) + ": " + message);
  }
  const std::size_t more = sorted.size() + more_ - lines.size();
  if (more > 0) {
    lines.push_back(fmt::format("… and {} more", more));
  }
  return {Code::config, text::join(lines, "\n")};
}

// Describes a node for a message: "a list", "a mapping", "nothing" or "\"text\"".
std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::scalar:
      return fmt::format("\"{}\"", shorten(node.text));
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "a mapping";
    case Node::Kind::null:
      break;
  }
  return "nothing";
}

std::string choices_text(std::span<const std::string> names) {
  if (names.empty()) return "\n  known here: nothing";
  const std::string more = names.size() > k_max_names ? ", …" : "";
  return "\n  known here: " + text::join(names.first(std::min(names.size(), k_max_names))) + more;
}

std::optional<std::string> read_text(const Node& node, std::string_view what, Problems& problems) {
  if (node.kind == Node::Kind::scalar && !node.text.empty()) return node.text;
  return problems.report_expected(node, what, "a text");
}

std::optional<std::int64_t> WholeNumber::parse(const Node& node, std::string_view what,
                                               Problems& problems) const {
  if (node.kind == Node::Kind::scalar) {
    const auto value = text::to_int(node.text);
    if (value && *value >= low && *value <= high) return *value;
  }
  return problems.report_expected(node, what,
                                  fmt::format("a whole number from {} to {}", low, high));
}

Form WholeNumber::form() const {
  return {"integer", fmt::format(R"("type": "integer", "minimum": {}, "maximum": {})", low, high)};
}

std::optional<double> Share::parse(const Node& node, std::string_view what,
                                   Problems& problems) const {
  if (node.kind == Node::Kind::scalar) {
    const auto value = text::to_double(node.text);
    if (value && *value > 0 && *value < k_below) return *value;
  }
  return problems.report_expected(node, what, fmt::format("a number between 0 and {}", k_below));
}

Form Share::form() const {
  return {
      "number",
      fmt::format(R"("type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": {})", k_below)};
}

std::optional<bool> read_boolean(const Node& node, std::string_view what, Problems& problems) {
  if (node.kind == Node::Kind::scalar && !node.quoted) {
    if (node.text == "true") return true;
    if (node.text == "false") return false;
  }
  return problems.report_expected(node, what, "true or false");
}

std::vector<std::string> read_texts(const Node& node, std::string_view what, Problems& problems) {
  std::vector<std::string> texts;
  const bool is_list = node.kind == Node::Kind::list;
  for (const Node& item : is_list ? std::span(node.items) : std::span(&node, 1)) {
    if (auto text = read_text(item, what, problems)) texts.push_back(std::move(*text));
  }
  return texts;
}

std::vector<std::string> read_names(const Node& node, std::string_view what, Problems& problems) {
  std::vector<std::string> names = read_texts(node, what, problems);
  for (const std::string& name : names) {
    if (profile::valid_name(name)) continue;
    problems.add(node.position, "{}: \"{}\" is no name: {}", what,
                 text::printable(text::first_line(std::string_view(name).substr(0, 80))),
                 k_name_rule);
  }
  return names;
}

// Reads a list of arguments, and checks the placeholders in them. A single text is refused, as no
// shell splits it.
Arguments read_arguments(const Node& node, std::string_view what, Problems& problems) {
  Arguments arguments;
  if (node.kind != Node::Kind::list) {
    problems.report_expected(node, what, "a list with one argument an entry (no shell splits it)");
    return arguments;
  }
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::scalar) {  // an empty text is a fine argument
      problems.report_expected(item, "an argument", "a text");
      continue;
    }
    check_placeholders(item.text, item.position, problems);
    if (item.text != "{args}" && holds(placeholders_in(item.text), "args")) {
      problems.add(item.position, "{args} stands for several arguments: it must be one by itself");
    }
    arguments.push_back(item.text);
  }
  return arguments;
}

namespace {

// Reads a mapping of names to texts, whose placeholders are checked. `what` names the mapping in
// messages, `place` the values: "in the environment".
std::map<std::string, std::string> read_values(const Node& node, std::string_view what,
                                               std::string_view place, Problems& problems) {
  std::map<std::string, std::string> values;
  if (node.kind != Node::Kind::map) {
    problems.report_expected(node, what, "a mapping of names to values");
    return values;
  }
  for (const Entry& entry : node.entries) {
    if (entry.value.kind != Node::Kind::scalar) {
      problems.report_expected(entry.value, entry.key, "a text");
      continue;
    }
    check_placeholders(entry.value.text, entry.value.position, problems);
    if (holds(placeholders_in(entry.value.text), "args")) {
      problems.add(entry.value.position, "{{args}} stands for arguments, and cannot be {}", place);
    }
    values[entry.key] = entry.value.text;
  }
  return values;
}

}  // namespace

Environment read_environment(const Node& node, std::string_view what, Problems& problems) {
  for (const Entry& entry : node.entries) {
    if (!is_variable_name(entry.key)) {
      problems.add(entry.key_position, "\"{}\" is no name of an environment variable",
                   shorten(entry.key));
    }
  }
  return read_values(node, what, "in the environment", problems);
}

std::map<std::string, std::string> read_replaced(const Node& node, std::string_view what,
                                                 Problems& problems) {
  for (const Entry& entry : node.entries) {
    if (!entry.key.starts_with('-')) {
      problems.add(entry.key_position, "\"{}\" is no flag: one starts with -", shorten(entry.key));
    }
  }
  return read_values(node, what, "a flag's value", problems);
}

std::optional<std::string> read_choice(const Node& node, std::string_view what,
                                       std::span<const std::string> names, Problems& problems) {
  if (node.kind != Node::Kind::scalar) {
    return problems.report_expected(node, what, "one of " + text::join(names));
  }
  if (holds(names, node.text)) return node.text;
  return problems.add(node.position, "unknown {} {}{}{}", what, describe(node),
                      text::did_you_mean(node.text, names), choices_text(names));
}

// Reads an amount of at least 0: "5", with a unit as in "100MB", or a share such as "5%". Nothing,
// with a problem, for anything else.
std::optional<verdict::Amount> AmountType::parse(const Node& node, std::string_view what,
                                                 Problems& problems) const {
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  const auto number = unit::split_number(*text);
  const std::string_view suffix = number ? number->second : "";
  const bool is_relative = suffix == "%";
  const auto scale = is_relative ? unit::Scale{unit::Unit::count, 0.01} : unit::parse_scale(suffix);
  if (!number || !scale || (is_relative && !may_be_relative)) {
    return problems.report_expected(
        node, what,
        may_be_relative ? "a number of at least 0, with a unit as in 100MB, or a share such as 5%"
                        : "a number of at least 0, with a unit as in 100MB");
  }
  return verdict::Amount{number->first * scale->factor, is_relative,
                         suffix.empty() || is_relative ? std::nullopt : std::optional(scale->unit)};
}

Form AmountType::form() const {
  return Form{"number", R"("type": "number", "minimum": 0)"} |
         Form{"text", R"("type": "string", "pattern": "^[0-9.eE+-]+ *[A-Za-z/%µ]*$")"};
}

std::optional<double> Duration::parse(const Node& node, std::string_view what,
                                      Problems& problems) const {
  const auto text = read_text(node, what, problems);
  if (!text) return std::nullopt;
  const auto seconds = unit::parse_duration_seconds(*text);
  if (!seconds) return problems.add(node.position, "{}: {}", what, seconds.error().message);
  if (*seconds > 0 && *seconds <= max_seconds) return *seconds;
  return problems.add(node.position, "{} must be more than nothing{}", what,
                      text::prefix_if_any(" and at most ", max_seconds_text));
}

Form Duration::form() const {
  return {"duration", R"("type": "string", "pattern": "^([0-9.]+ *(ms|s|m|min|h) *)+$")"};
}

Fields::Fields(const Node& node, std::string what, Problems& problems)
    : node_(&node), what_(std::move(what)), problems_(&problems) {
  is_map_ = node.kind == Node::Kind::map;
  if (!is_map_) problems.report_expected(node, what_, "a mapping");
}

// Returns the value under a key of this mapping, or null. If keys are listed for the
// documentation, adds this one with its meaning and example instead.
const Node* Fields::find(const Key& key, const Form& form, const std::string& shown_default,
                         bool is_needed) {
  known_.emplace_back(key.name);
  if (KeyList* keys = problems_->lists()) {
    const bool has_default_text = *key.shown_default != '\0';
    return keys->add({node_->text, key.name, form, key.meaning, key.example,
                      has_default_text ? key.shown_default : shown_default,
                      !has_default_text && !shown_default.empty(), is_needed});
  }
  const Node* node = is_map_ ? node_->find(key.name) : nullptr;
  if (node == nullptr || node->kind == Node::Kind::null) return nullptr;
  if (refusal_.empty()) return node;
  problems_->add(node->position, fmt::format("\"{}\" {}", key.name, refusal_));
  return nullptr;
}

const Node* Fields::require(const Key& key, const Form& form) {
  const Node* node = find(key, form, "", /*needed=*/true);
  if (node == nullptr) lacks(key.name);
  return node;
}

void Fields::lacks(const char* key) {
  if (is_map_) problems_->add(node_->position, fmt::format("{} needs \"{}\"", what_, key));
}

void Fields::finish() {
  if (!is_map_) return;
  is_map_ = false;  // a second call reports nothing
  for (const Entry& entry : node_->entries) {
    if (holds(known_, entry.key)) continue;
    problems_->add(entry.key_position,
                   fmt::format("unknown key \"{}\" in {}{}{}", shorten(entry.key), what_,
                               text::did_you_mean(entry.key, known_), choices_text(known_)));
  }
}

}  // namespace weir::config
