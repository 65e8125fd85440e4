// Writes descriptions of GPUs as text and JSON.
#include "gate/report/device_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

// Lists descriptions of devices in a table, and below it those that could not be read.
std::string device_list_text(const std::vector<DeviceLine>& devices, int width) {
  if (devices.empty()) {
    return "No device descriptions. weir device record writes one of a GPU of this machine.\n";
  }
  TextTable table{.headings = {"NAME", "API", "DEVICE", "VALUES"}};
  Page broken(columns_of(width));
  for (const DeviceLine& device : devices) {
    if (!device.error.empty()) {
      broken.add_text(printable_line(device.name) +
                      " cannot be read: " + printable_line(device.error));
      continue;
    }
    const std::string source = printable_line(device.source);
    // One word of the text before the colon ("from public data", "recorded") fits into 80 columns.
    std::string origin = source.substr(0, source.find(':'));
    if (origin == "from public data") origin = "public";
    table.rows.push_back({printable_line(device.name), text::join(device.apis, " "),
                          printable_line(device.title, 60), origin.empty() ? "not said" : origin});
  }
  std::string out = table.rows.empty() ? std::string() : table.str(0, columns_of(width));
  return out + broken.finish();
}

// Returns the list of device descriptions as a weir.device-list/1 document.
std::string device_list_json(const std::vector<DeviceLine>& devices) {
  Json list = Json::array();
  for (const DeviceLine& device : devices) {
    Json entry = {{"name", device.name},
                  {"title", device.title},
                  {"source", device.source},
                  {"apis", device.apis}};
    if (!device.error.empty()) entry["error"] = device.error;
    list.push_back(std::move(entry));
  }
  return dump_json({{"schema", "weir.device-list/1"}, {"devices", std::move(list)}}, 2) + "\n";
}

// Writes what a description says of its device: title, source, assumed values, and facts in two
// columns.
std::string device_text(const DeviceSheet& sheet, int width) {
  Page page(columns_of(width));
  page.add_text(printable_line(sheet.name) + ": " + printable_line(sheet.title));
  if (!sheet.source.empty()) page.add_indented(2, "Values " + printable_line(sheet.source));
  for (const std::string& guess : sheet.assumed)
    page.add_indented(2, "Assumed: " + printable_line(guess));
  page.add_blank_line();
  std::size_t widest = 0;
  for (const auto& [subject, what] : sheet.facts) widest = std::max(widest, subject.size());
  for (const auto& [subject, what] : sheet.facts) {
    const std::string first = "  " + pad_right(subject, widest) + "  ";
    page.add_paragraph(first, printable_line(what), first.size());
  }
  if (!sheet.warnings.empty()) page.add_blank_line();
  for (const std::string& warning : sheet.warnings)
    page.add_indented(2, "Warning: " + printable_line(warning));
  return page.finish();
}

}  // namespace weir::report
