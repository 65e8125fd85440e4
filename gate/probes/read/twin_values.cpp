// Looks up, completes and encodes the values of a GPU's description.
#include "gate/probes/read/twin_values.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_max_warnings = 100;

// Fields whose names in a version's struct differ from those in the single struct (Vulkan
// specification, VkPhysicalDeviceVulkan11Properties).
constexpr std::string_view k_renamed_struct = "VkPhysicalDeviceSubgroupProperties";
constexpr std::pair<std::string_view, std::string_view> k_renamed[] = {
    {"subgroupSupportedStages", "supportedStages"},
    {"subgroupSupportedOperations", "supportedOperations"},
    {"subgroupQuadOperationsInAllStages", "quadOperationsInAllStages"},
};

// True for a struct that holds all values of a version: VkPhysicalDeviceVulkan12Features, ….
bool is_version_struct(const weir_struct& entry) {
  return std::string_view(entry.name).starts_with("VkPhysicalDeviceVulkan1");
}

// A field of a version's struct, and the field of a single struct that holds the same value.
struct Peers {
  const weir_struct* version;
  const weir_field* version_field;
  const weir_struct* single;
  const weir_field* single_field;
};

// The field of `single` that holds the same value as `field` of a version's struct; nullptr where
// it has none.
const weir_field* find_single_field(const weir_field& field, const weir_struct& single) {
  for (const auto& [version_name, single_name] : k_renamed) {
    if (version_name == field.name && k_renamed_struct == single.name) {
      return find_field(single, single_name);
    }
  }
  return find_field(single, field.name);
}

// Returns all pairs of fields in Vulkan's structs that hold the same value.
std::vector<Peers> find_peers() {
  std::vector<Peers> out;
  for (const weir_struct& version : all_structs()) {
    if (version.chain == WEIR_CHAIN_NONE || !is_version_struct(version)) continue;
    for (const weir_field& field : struct_fields(version)) {
      for (const weir_struct& single : all_structs()) {
        const bool can_hold =
            single.core != 0 && single.chain == version.chain && !is_version_struct(single);
        if (!can_hold) continue;
        if (const weir_field* single_field = find_single_field(field, single)) {
          out.push_back({&version, &field, &single, single_field});
        }
      }
    }
  }
  return out;
}

}  // namespace

std::optional<std::uint64_t> whole_number(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  const std::int64_t number = value.get<std::int64_t>();
  return number < 0 ? std::nullopt : std::optional<std::uint64_t>(number);
}

std::span<const weir_struct> all_structs() { return {weir_structs, weir_struct_count}; }

std::span<const weir_field> struct_fields(const weir_struct& entry) {
  return {entry.fields, entry.field_count};
}

const weir_struct* find_struct(std::string_view name) {
  static const auto k_index = [] {
    std::unordered_map<std::string_view, const weir_struct*> index;
    for (const weir_struct& entry : all_structs()) index.emplace(entry.name, &entry);
    for (const weir_alias& alias : std::span(weir_aliases, weir_alias_count))
      index.emplace(alias.name, &weir_structs[alias.of]);
    return index;
  }();
  return look_up(k_index, name, nullptr);
}

const weir_field* find_field(const weir_struct& owner, std::string_view name) {
  const auto fields = struct_fields(owner);
  return find_named(fields, name);
}

int find_enum(std::string_view name) {
  const std::span all(weir_enums, weir_enum_count);
  const auto* entry = find_named(all, name);
  return entry == nullptr ? -1 : static_cast<int>(entry - weir_enums);
}

std::span<const weir_value> enum_values(int enum_index) {
  if (enum_index < 0 || static_cast<std::uint32_t>(enum_index) >= weir_enum_count) return {};
  return {weir_enums[enum_index].values, weir_enums[enum_index].count};
}

std::optional<std::int64_t> find_enum_value(int enum_index, std::string_view name) {
  const auto values = enum_values(enum_index);
  const auto* entry = find_named(values, name);
  return entry == nullptr ? std::nullopt : std::optional(entry->value);
}

bool is_identity_field(std::string_view name) {
  return name.ends_with("UUID") || name.ends_with("LUID") || name.ends_with("LUIDValid");
}

void Warnings::add(std::string text) {
  if (out_.size() < k_max_warnings) {
    out_.push_back(std::move(text));
  } else if (out_.size() == k_max_warnings) {
    out_.emplace_back("and more of the kind");
  }
}

// Copies values that only one of two peers (fields of the same value) has to the other. A
// difference becomes a warning.
void agree(std::map<std::string, Json>& structs, Warnings& warnings) {
  static const std::vector<Peers> k_peers = find_peers();
  const auto find_value = [&](const weir_struct& owner, const weir_field& field) -> const Json* {
    const Json* values = look_up(structs, owner.name);
    if (values == nullptr || !values->is_object()) return nullptr;
    const auto value = values->find(field.name);  // null is a value, too
    return value == values->end() ? nullptr : &*value;
  };
  const auto set = [&](const weir_struct& owner, const weir_field& field, const Json& from) {
    Json copy = from;  // a new struct may move `from`
    Json& values = structs[owner.name];
    if (!values.is_object()) values = Json::object();
    values[field.name] = std::move(copy);
  };
  for (const Peers& peers : k_peers) {
    const Json* version = find_value(*peers.version, *peers.version_field);
    const Json* single = find_value(*peers.single, *peers.single_field);
    if (version != nullptr && single == nullptr) {
      set(*peers.single, *peers.single_field, *version);
    } else if (version == nullptr && single != nullptr) {
      set(*peers.version, *peers.version_field, *single);
    } else if (version != nullptr && *version != *single) {
      warnings.add(fmt::format("{}.{} and {}.{} differ", peers.version->name,
                               peers.version_field->name, peers.single->name,
                               peers.single_field->name));
    }
  }
}

namespace {

// Reads a decimal number, or a hexadecimal one after "0x".
std::optional<std::uint64_t> number_from_text(std::string_view text) {
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const std::string_view digits = hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value, hex ? 16 : 10);
  if (digits.size() > 20 || error != std::errc() || rest != end) return std::nullopt;
  return value;
}

// Reads an unsigned integer of at most `max_value`: a number without a fraction, or a text.
// Nothing for all else.
std::optional<std::uint64_t> to_unsigned(const Json& value, std::uint64_t max_value) {
  std::optional<std::uint64_t> out;
  if (value.is_number_integer()) {
    out = whole_number(value);
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number >= 0 && number < 18446744073709551616.0 && std::floor(number) == number)
      out = static_cast<std::uint64_t>(number);
  } else if (value.is_string()) {
    out = number_from_text(value.get_ref<const std::string&>());
  }
  if (out && *out > max_value) return std::nullopt;
  return out;
}

std::optional<std::int32_t> to_signed(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= -2147483648.0 && number <= 2147483647.0) || std::floor(number) != number)
    return std::nullopt;
  return static_cast<std::int32_t>(number);
}

std::optional<std::uint32_t> to_bool(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_integer()) return value.get<std::int64_t>() != 0 ? 1 : 0;
  if (value == "VK_TRUE" || value == "true") return 1;
  if (value == "VK_FALSE" || value == "false") return 0;
  return std::nullopt;
}

std::optional<float> to_float(const Json& value) {
  return value.is_number() ? std::optional(value.get<float>()) : std::nullopt;
}

std::optional<std::int32_t> to_enum(const weir_field& field, const Json& value) {
  if (!value.is_string()) return to_signed(value);
  const auto number = find_enum_value(field.of, value.get_ref<const std::string&>());
  return number ? std::optional(static_cast<std::int32_t>(*number)) : std::nullopt;
}

// The value as JSON text, cut to 60 bytes.
std::string value_text(const Json& value) {
  std::string text = text::printable(dump_json(value));
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// Writes described values into the memory of a struct; those that do not fit become warnings.
class Filler {
 public:
  explicit Filler(Warnings& warnings) : warnings_(warnings) {}

  // Writes all fields of a described struct to `out`, but UUIDs and LUIDs.
  void fill(const weir_struct& type, const Json& values, std::span<std::byte> out,
            const std::string& path) {
    if (!values.is_object()) {
      warnings_.add(fmt::format("{}: no object: {}", path, value_text(values)));
      return;
    }
    for (const auto& [key, value] : values.items()) {
      if (key == "sType" || key == "pNext") continue;
      const weir_field* field = find_field(type, key);
      const std::string field_path = path + "." + text::printable(key);
      if (field == nullptr) {
        warnings_.add(field_path + ": unknown");
      } else if (!is_identity_field(key)) {
        fill_field(*field, value, out, field_path);
      }
    }
  }

 private:
  // Writes one field of the struct at `out`: a text, a value or an array of values.
  void fill_field(const weir_field& field, const Json& value, std::span<std::byte> out,
                  const std::string& path) {
    if (field.kind == WEIR_FIELD_TEXT) return write_text(field, value, out, path);
    if (!field.array) return write_value(field, value, out.subspan(field.offset), path);
    if (!value.is_array()) return warn_unreadable(path, value);
    if (value.size() > field.count)
      warnings_.add(fmt::format("{}: {} values where {} fit", path, value.size(), field.count));
    for (std::size_t i = 0; i < value.size() && i < field.count; ++i) {
      write_value(field, value[i], out.subspan(field.offset + i * field.element_size),
                  fmt::format("{}[{}]", path, i));
    }
  }

  void write_text(const weir_field& field, const Json& value, std::span<std::byte> out,
                  const std::string& path) {
    if (!value.is_string()) return warn_unreadable(path, value);
    const std::string& text = value.get_ref<const std::string&>();
    if (text.size() >= field.count || text.find('\0') != std::string::npos)
      return warn_unreadable(path, value);
    std::memcpy(out.data() + field.offset, text.data(), text.size());
  }

  // Writes one value to the start of `out`, as the field's kind of value.
  void write_value(const weir_field& field, const Json& value, std::span<std::byte> out,
                   const std::string& path) {
    const auto store = [&](const auto& number) {
      if (!number) return warn_unreadable(path, value);
      std::memcpy(out.data(), &*number, field.element_size);  // little-endian: the lower bytes
    };
    switch (field.kind) {
      case WEIR_FIELD_STRUCT:
        return fill(weir_structs[field.of], value, out.first(field.element_size), path);
      case WEIR_FIELD_BOOL:
        return store(to_bool(value));
      case WEIR_FIELD_SIGNED:
        return store(to_signed(value));
      case WEIR_FIELD_FLOAT:
        return store(to_float(value));
      case WEIR_FIELD_ENUM:
        return store(to_enum(field, value));
      case WEIR_FIELD_FLAGS:
        return store(std::optional(read_flags(field, value, path)));
      default:
        return store(to_unsigned(value, largest_value(field)));
    }
  }

  // Combines a flag, or a list of them; each is a name or a number.
  std::uint64_t read_flags(const weir_field& field, const Json& value, const std::string& path) {
    const std::uint64_t max_value = largest_value(field);
    std::uint64_t bits = 0;
    const auto add = [&](const Json& flag) {
      auto number = to_unsigned(flag, max_value);
      if (flag.is_string()) {
        const auto named = find_enum_value(field.of, flag.get_ref<const std::string&>());
        if (named) number = static_cast<std::uint64_t>(*named) & max_value;
      }
      if (!number) warn_unreadable(path, flag);
      bits |= number.value_or(0);
    };
    if (value.is_array()) {
      for (const Json& flag : value) add(flag);
    } else {
      add(value);
    }
    return bits;
  }

  void warn_unreadable(const std::string& path, const Json& value) {
    warnings_.add(fmt::format("{}: left out, since weir cannot read {}", path, value_text(value)));
  }

  // The largest value of a field of 1, 4 or 8 bytes.
  static std::uint64_t largest_value(const weir_field& field) {
    return ~std::uint64_t{0} >> (64 - 8 * field.element_size);
  }

  Warnings& warnings_;
};

}  // namespace

void fill_struct(const weir_struct& type, const Json& values, std::span<std::byte> out,
                 const std::string& path, Warnings& warnings) {
  Filler(warnings).fill(type, values, out, path);
}

}  // namespace weir::probes
