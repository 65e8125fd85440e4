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

// The values that there are, where a check lists them.
std::string choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  if (begin == std::string::npos) return "";
  return type.substr(begin + 2, type.find('}') - begin - 2);
}

bool is_long(const std::string& choices) { return choices.size() > 24; }

// "INT:INT in [1 - 9]" is N, "TEXT:{text,json}" is text|json.
std::string type_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  std::string choices = choices_of(option);
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

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(k_column); }

  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), k_width) + "\n\n";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_size() == 0 ? "" : type_of(*option);
    const bool many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    return (type.empty() ? "" : " " + type) + (many ? " ..." : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string usual = option->get_type_size() == 0 ? "" : option->get_default_str();
    std::string what = option->get_description();
    if (const std::string choices = choices_of(*option); is_long(choices)) {
      what += ": " + text::join(text::split(choices, ','), ", ");
    }
    if (!usual.empty() && usual != "-") what += " (default: " + usual + ")";
    return wrapped(what);
  }

  std::string make_subcommand(const CLI::App* below) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, below->get_name(), wrapped(below->get_description()), k_column);
    return out.str();
  }
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace weir::app
