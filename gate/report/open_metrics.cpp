// Writes a gate's verdict as OpenMetrics text.
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
    "0 pass, improved or waived; 1 broke a limit; 2 could not be measured; 3 inconclusive; "
    "4 new; 5 skipped";

std::string quoted(std::string_view text, std::size_t max_columns) {
  static constexpr Replacement k_in_quotes[] = {{'"', "\\\""}, {'\\', "\\\\"}};
  return replace_each(printable_line(text, max_columns), k_in_quotes);
}

std::string label(std::string_view name, std::string_view value) {
  std::string safe(value);
  std::ranges::replace(safe, '#', '_');
  return fmt::format("{}=\"{}\"", name, quoted(safe, 400));
}

// The samples of one metric name; the first value of each label is taken.
struct Family {
  std::string name, help;
  std::set<std::string> labels;
  std::string samples;

  void add(const std::string& label, double value) {
    if (labels.insert(label).second) samples += fmt::format("{}{{{}}} {}\n", name, label, value);
  }
};

// The name of a family.
struct FamilyName {
  std::string text;
  bool is_exact = true;  // false if other metrics could have the same name
};

// Returns "weir_dispatches_per_token" for weir's own metrics. A metric of the configuration, whose
// name may be any text, becomes "weir_custom_" and the name with other characters replaced by "_".
FamilyName family_name(const unit::Metric& metric) {
  if (unit::find_metric(metric.name) && !unit::is_op_or_kernel_metric(metric.name)) {
    return {"weir_" + metric.name};
  }
  std::string name = metric.name.substr(0, 64);
  for (char& c : name) c = text::is_alphanumeric(c) ? c : '_';
  const bool is_exact = name == metric.name;
  // OpenMetrics gives these suffixes a meaning that a plain number doesn't have.
  for (const std::string_view end :
       {"_total", "_created", "_count", "_sum", "_bucket", "_gcount", "_gsum", "_info"}) {
    if (name.ends_with(end)) name += "_value";
  }
  return {"weir_custom_" + name, is_exact};
}

// Collects families in the order in which they are first added.
class Families {
 public:
  // Returns the family of this name; makes it if it isn't there.
  Family& family(const std::string& name, const std::string& help) {
    Family& family = families_.find_or_add(name, name);
    if (family.name.empty()) family = {name, help, {}, {}};
    return family;
  }

  [[nodiscard]] std::string str() const {
    std::string out;
    for (const auto& [name, family] : families_.all) {
      out += fmt::format("# HELP {} {}\n# TYPE {} gauge\n{}", family.name,
                         quoted(family.help, 1000), family.name, family.samples);
    }
    return out + "# EOF\n";
  }

 private:
  Grouped<std::string, Family> families_;
};

}  // namespace

// Writes the verdict as metrics in OpenMetrics' text form.
std::string open_metrics(const Document& document) {
  std::string out =
      fmt::format("# HELP weir_exit_code {}\n# TYPE weir_exit_code gauge\nweir_exit_code {}\n",
                  quoted(document.first_line(), 2000), static_cast<int>(document.gate.exit_code));
  Families families;
  for (const CellDocument& cell : document.cells) {
    families.family("weir_cell_verdict", std::string(k_codes))
        .add(label("cell", cell.cell_verdict->cell.str()),
             outcome_look(cell.cell_verdict->verdict).code);
  }
  for (const CellDocument& cell : document.cells) {
    for (const auto& [judgement, number, follows] : cell.rows) {
      if (!judgement->current || !std::isfinite(*judgement->current)) continue;
      const unit::Metric& metric = judgement->metric;
      const FamilyName name = family_name(metric);
      std::string labels = label("cell", cell.cell_verdict->cell.str());
      if (!name.is_exact) labels += "," + label("metric", metric.name);
      const std::string about = unit::about(metric);
      const std::string help =
          fmt::format("{}{} ({}), {} is better", number.label, text::prefix_if_any(": ", about),
                      unit::to_string(metric.unit), unit::to_string(metric.better));
      families.family(name.text, help).add(labels, *judgement->current);
    }
  }
  return out + families.str();
}

}  // namespace weir::report
