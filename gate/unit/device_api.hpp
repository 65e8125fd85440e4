// The device APIs that weir supports, one entry each: names, how a program loads the probe, and
// what a machine needs for them. All facts about an API are in this table. Pure.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::unit {

struct DeviceApi {
  // How an engine is made to load the probe.
  enum class Load { vulkan_layer, opencl_layer, preload };
  // Kinds of twins, which answer for a device that is not here: a driver of weir's own, or
  // libraries in place of the API's runtime.
  enum class Twin { none, driver, runtime };

  // A device in weir.yaml, the probe that sees it and the beginning of its device classes. Each
  // such probe counts dispatches, barriers, syncs, copies and submits: 0 is then a fact.
  const char* name;
  const char* title;  // for people
  Load load = Load::preload;
  Twin twin = Twin::none;
  std::string_view library;                 // the probe's file, or its layer's manifest
  std::array<std::string_view, 3> needs{};  // beginnings of libraries by which a program uses it
  std::string_view how{};                   // the probe comes to see it
  std::string_view package{};  // Debian's with a software device; "": weir-devices does not ask
  std::array<std::string_view, 2> shaders{};  // endings of source files that are compiled for it
  bool on_macos = false;                      // there alone; else on Linux alone
  // A second probe that counts the same by other means, if weir was built with it. Its counts are
  // only compared with the first probe's. Its name, its file, and the variable that loads it.
  std::string_view check{}, check_library{}, check_variable{};
  // Beginning of the names of those ggml backends whose work the probe times.
  std::string_view timed_backend{};
  std::array<std::string_view, 2> ggml_backends{};  // beginnings of their names
};

// The device without an API. Its classes are "cpu-" and the ISA level or the engine's CPU variant.
inline constexpr std::string_view k_cpu = "cpu";
[[nodiscard]] std::span<const DeviceApi> device_apis();
// Null for "cpu" and other names.
[[nodiscard]] const DeviceApi* find_device_api(std::string_view name);
// The names of APIs for whose devices there are twins of this kind.
[[nodiscard]] std::vector<std::string> devices_with(DeviceApi::Twin kind);
// The API that a backend of ggml computes on, by the backend's name; "" if that is not known.
[[nodiscard]] std::string_view find_api_of_ggml_backend(std::string_view backend);
// Every name that `device` may have, sorted: "cpu" and the APIs.
[[nodiscard]] const std::vector<std::string>& device_names();
// The part of a device class that stays the same in every version of the device: API, vendor and
// device ("vulkan-10005-0" of "vulkan-10005-0-d-1-0a1b2c3d"), "cpu" for every CPU. "" for a class
// without versions, such as a twin's.
[[nodiscard]] std::string device_without_version(std::string_view device_class);

}  // namespace weir::unit
