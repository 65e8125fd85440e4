#include "gate/report/open_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {

namespace {

constexpr std::string_view k_codes =
    "0 pass, improved or accepted; 1 broke a limit; 2 could not be measured; 3 inconclusive; "
    "4 new; 5 skipped";

std::string quoted(std::string_view text, std::size_t most) {
  static constexpr Replacement k_in_quotes[] = {{'"', "\\\""}, {'\\', "\\\\"}};
  return replace_each(one_line(text, most), k_in_quotes);
}

std::string label(std::string_view name, std::string_view value) {
  std::string safe(value);
  std::ranges::replace(safe, '#', '_');
  return fmt::format("{}=\"{}\"", name, quoted(safe, 400));
}

struct Family {
  std::string name, help;
  std::set<std::string> labels;
  std::string samples;

  void add(const std::string& of, double value) {
    if (labels.insert(of).second) samples += fmt::format("{}{{{}}} {}\n", name, of, value);
  }
};

// "weir_dispatches_per_token"; names of the configuration's own may be anything.
std::string family_name(const unit::Metric& metric, bool& exactly) {
  exactly = true;
  if (unit::find_metric(metric.name) && !unit::names_work(metric.name)) {
    return "weir_" + metric.name;
  }
  std::string name = metric.name.substr(0, 64);
  for (char& c : name) c = text::is_alphanumeric(c) ? c : '_';
  exactly = name == metric.name;
  // These ends mean something else than a plain number.
  for (const std::string_view end :
       {"_total", "_created", "_count", "_sum", "_bucket", "_gcount", "_gsum", "_info"}) {
    if (name.ends_with(end)) name += "_value";
  }
  return "weir_custom_" + name;
}

class Families {
 public:
  Family& of(const std::string& name, const std::string& help) {
    Family* known = find_named(all_, name);
    return known != nullptr ? *known : all_.emplace_back(Family{name, help, {}, {}});
  }

  [[nodiscard]] std::string str() const {
    std::string out;
    for (const Family& one : all_) {
      out += fmt::format("# HELP {} {}\n# TYPE {} gauge\n{}", one.name, quoted(one.help, 1000),
                         one.name, one.samples);
    }
    return out + "# EOF\n";
  }

 private:
  std::vector<Family> all_;  // in order of first sight: counts before times
};

}  // namespace

std::string open_metrics(const Document& document) {
  std::string out =
      fmt::format("# HELP weir_exit_code {}\n# TYPE weir_exit_code gauge\nweir_exit_code {}\n",
                  quoted(document.first_line(), 2000), static_cast<int>(document.gate.exit_code));
  Families families;
  for (const CellDocument& cell : document.cells) {
    families.of("weir_cell_verdict", std::string(k_codes))
        .add(label("cell", cell.of->cell.str()), look_of(cell.of->verdict).code);
  }
  for (const CellDocument& cell : document.cells) {
    for (const auto& [metric, words, follows] : cell.rows) {
      if (!metric->current || !std::isfinite(*metric->current)) continue;
      bool exactly = true;
      const std::string name = family_name(metric->metric, exactly);
      std::string labels = label("cell", cell.of->cell.str());
      if (!exactly) labels += "," + label("metric", metric->metric.name);
      const std::string about = unit::about(metric->metric);
      const std::string help =
          fmt::format("{}{}{} ({}), {} is better", words.label, about.empty() ? "" : ": ", about,
                      unit::to_string(metric->metric.unit), unit::to_string(metric->metric.better));
      families.of(name, help).add(labels, *metric->current);
    }
  }
  return out + families.str();
}

}  // namespace weir::report
