#include "gate/report/device_text.hpp"

#include <algorithm>

#include "gate/base/json.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

// "from public data" or "recorded": how the source begins.
std::string origin_of(const std::string& source) {
  const std::string words = one_line(source);
  return words.substr(0, words.find(':'));
}

std::size_t columns_of(int width) { return static_cast<std::size_t>(std::max(width, 40)); }

}  // namespace

std::string device_list_text(const std::vector<DeviceLine>& devices, int width) {
  if (devices.empty()) {
    return "No description of a device is here. weir device record writes one of this machine's.\n";
  }
  TextTable table;
  table.head = {"NAME", "DEVICE", "VALUES"};
  table.right = {false, false, false};
  std::string broken;
  for (const DeviceLine& one : devices) {
    if (!one.error.empty()) {
      say(broken, one_line(one.name) + " can not be read: " + one_line(one.error),
          columns_of(width));
      continue;
    }
    const std::string origin = origin_of(one.source);
    table.rows.push_back(
        {one_line(one.name), one_line(one.title, 60), origin.empty() ? "not said" : origin});
  }
  std::string out = table.rows.empty() ? std::string() : table.str(0, columns_of(width));
  return out + broken;
}

std::string device_list_json(const std::vector<DeviceLine>& devices) {
  Json list = Json::array();
  for (const DeviceLine& one : devices) {
    Json entry = {{"name", one.name}, {"title", one.title}, {"source", one.source}};
    if (!one.error.empty()) entry["error"] = one.error;
    list.push_back(std::move(entry));
  }
  return dump_json({{"schema", "weir.device-list/1"}, {"devices", std::move(list)}}, 2) + "\n";
}

std::string device_text(const DeviceSheet& sheet, int width) {
  const std::size_t columns = columns_of(width);
  std::string out;
  say(out, one_line(sheet.name) + ": " + one_line(sheet.title), columns);
  if (!sheet.source.empty()) say(out, "Values " + one_line(sheet.source), columns, 2);
  for (const std::string& guess : sheet.assumed)
    say(out, "Assumed: " + one_line(guess), columns, 2);
  out += '\n';
  std::size_t widest = 0;
  for (const auto& [subject, what] : sheet.facts) widest = std::max(widest, subject.size());
  for (const auto& [subject, what] : sheet.facts) {
    const std::string first = "  " + pad_right(subject, widest) + "  ";
    for (const std::string& line : wrap(one_line(what), columns, first, first.size()))
      out += line + '\n';
  }
  if (!sheet.warnings.empty()) out += '\n';
  for (const std::string& doubt : sheet.warnings) say(out, "Doubt: " + one_line(doubt), columns, 2);
  return out;
}

}  // namespace weir::report
