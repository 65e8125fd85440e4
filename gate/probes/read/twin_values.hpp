// Values of GPU descriptions, by the table of Vulkan's structs: looks them up, makes them agree and
// writes them into memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/probes/twin/structs.h"

namespace weir::probes {

// The value as an unsigned integer; nothing where it is none.
[[nodiscard]] std::optional<std::uint64_t> whole_number(const Json& value);

[[nodiscard]] std::span<const weir_struct> all_structs();
[[nodiscard]] std::span<const weir_field> struct_fields(const weir_struct& entry);
// A struct by name or alias; nullptr for an unknown one.
[[nodiscard]] const weir_struct* find_struct(std::string_view name);
[[nodiscard]] const weir_field* find_field(const weir_struct& owner, std::string_view name);
// The index into weir_enums by the enum's name ("VkFormat"); -1 for an unknown one.
[[nodiscard]] int find_enum(std::string_view name);
[[nodiscard]] std::span<const weir_value> enum_values(int enum_index);  // empty for -1
// An enum's value by its name; nothing for an unknown one.
[[nodiscard]] std::optional<std::int64_t> find_enum_value(int enum_index, std::string_view name);

// True for UUIDs and LUIDs, which differ between devices of one class.
[[nodiscard]] bool is_identity_field(std::string_view name);

// Adds warnings to a list, up to 100 and a last line if there were more.
class Warnings {
 public:
  explicit Warnings(std::vector<std::string>& out) : out_(out) {}
  void add(std::string text);

 private:
  std::vector<std::string>& out_;
};

// Copies missing values between structs that hold the same ones: structs of a version of Vulkan,
// and the single structs that they absorbed, by field names. If both have a value, both keep it; a
// difference is a warning.
void agree(std::map<std::string, Json>& structs, Warnings& warnings);

// Writes the fields that `values` (an object) has; `out` has the struct's size. UUIDs and LUIDs
// stay 0. `path` names the struct in warnings.
void fill_struct(const weir_struct& type, const Json& values, std::span<std::byte> out,
                 const std::string& path, Warnings& warnings);

}  // namespace weir::probes
