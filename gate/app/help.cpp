// Formats --help.
#include "gate/app/help.hpp"

#include <algorithm>
#include <sstream>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::app {
namespace {

constexpr std::size_t k_column = 29, k_width = 80;

std::string wrapped(const std::string& text, std::size_t width = k_width - k_column) {
  return text::join(report::wrap(text, width, "", 0), "\n");
}

// Returns the values that a check lists: "text,json"; "" without such a check.
std::string list_choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  if (begin == std::string::npos) return "";
  return type.substr(begin + 2, type.find('}') - begin - 2);
}

bool is_long(const std::string& choices) { return choices.size() > 24; }

// Returns the type of an option's value as --help shows it: N for "INT:INT in [1 - 9]", text|json
// for "TEXT:{text,json}". A long list of choices is NAME; a text argument has none.
std::string shown_type(const CLI::Option& option) {
  std::string type = option.get_type_name();
  std::string choices = list_choices(option);
  if (!choices.empty()) {
    std::ranges::replace(choices, ',', '|');
    return is_long(choices) ? "NAME" : choices;
  }
  for (const char* check : {":INT in [", ":UINT in [", ":FLOAT in [", ":POSITIVE"}) {
    type = type.substr(0, type.find(check));
  }
  if (type == "TEXT" && option.get_positional()) return "";
  return type == "INT" || type == "UINT" || type == "FLOAT" ? "N" : type;
}

// Formats options and subcommands in two columns, wrapped.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(k_column); }

  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), k_width) + "\n\n";
  }

  // A positional in the line "Usage:".
  std::string make_option_usage(const CLI::Option* option) const override {
    const bool takes_many = option->get_expected_max() > 1;
    const std::string name = make_option_name(option, true) + (takes_many ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_size() == 0 ? "" : shown_type(*option);
    const bool takes_many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    std::string text;
    if (!type.empty()) text += " " + type;
    if (takes_many) text += " ...";
    return text;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string default_value = option->get_type_size() == 0 ? "" : option->get_default_str();
    std::string description = option->get_description();
    if (const std::string choices = list_choices(*option); is_long(choices)) {
      description += ": " + text::join(text::split(choices, ','), ", ");
    }
    if (!default_value.empty() && default_value != "-") {
      description += " (default: " + default_value + ")";
    }
    return wrapped(description);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(), wrapped(command->get_description()),
                             k_column);
    return out.str();
  }
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace weir::app
