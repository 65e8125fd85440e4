// Values of descriptions, by the table of structs: finding, agreeing, writing into memory. Pure.
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

// A whole number that is not negative.
[[nodiscard]] std::optional<std::uint64_t> whole_number(const Json& value);

[[nodiscard]] std::span<const weir_struct> all_structs();
[[nodiscard]] std::span<const weir_field> fields_of(const weir_struct& one);
// By name or alias; nullptr for an unknown one.
[[nodiscard]] const weir_struct* find_struct(std::string_view name);
[[nodiscard]] const weir_field* find_field(const weir_struct& of, std::string_view name);
// The index into weir_enums by the enum's name ("VkFormat"); -1 for an unknown one.
[[nodiscard]] int find_enum(std::string_view name);
[[nodiscard]] std::span<const weir_value> values_of(int of_enum);  // none of -1
// A value by its name; nothing for an unknown one.
[[nodiscard]] std::optional<std::int64_t> value_named(int of_enum, std::string_view name);

// UUIDs and LUIDs: they are no property of a class of devices.
[[nodiscard]] bool is_identity_field(std::string_view name);

// Doubts, at most 100 of them.
class Warnings {
 public:
  explicit Warnings(std::vector<std::string>& out) : out_(out) {}
  void add(std::string what);

 private:
  std::vector<std::string>& out_;
};

// Fills structs that say the same from each other: those of a version of Vulkan and the single
// ones they took up, by the names of their fields. Where both say something, both keep it; a
// difference is a warning.
void agree(std::map<std::string, Json>& structs, Warnings& warnings);

// Writes the fields that `values` (an object) has; `out` has the struct's size. UUIDs and LUIDs
// stay 0: they are no property of a class of devices. `path` stands in warnings.
void fill_struct(const weir_struct& as, const Json& values, std::span<std::byte> out,
                 const std::string& path, Warnings& warnings);

}  // namespace weir::probes
