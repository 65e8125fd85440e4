// Descriptions of GPUs as people read them: the list of `weir device list`, the sheet of `weir
// device show`. Pure. Names and sources come from files: they are made inert here.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weir::report {

struct DeviceLine {
  std::string name, title, source;
  std::string error;                // why it could not be read; then title and source are empty
  std::vector<std::string> apis{};  // "vulkan", "cuda", "hip": what it is described for
};

// A table by name; what could not be read stands below it.
[[nodiscard]] std::string device_list_text(const std::vector<DeviceLine>& devices, int width);
[[nodiscard]] std::string device_list_json(const std::vector<DeviceLine>& devices);

struct DeviceSheet {
  std::string name, title, source;
  std::vector<std::string> assumed, warnings;
  // Subject and what is so; an empty subject goes on with the one before it.
  std::vector<std::pair<std::string, std::string>> facts;
};
[[nodiscard]] std::string device_text(const DeviceSheet& sheet, int width);

}  // namespace weir::report
