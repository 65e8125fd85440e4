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

constexpr std::size_t k_most_warnings = 100;

// Those that are part of a version under another name than by themselves (Vulkan specification,
// VkPhysicalDeviceVulkan11Properties).
constexpr std::string_view k_renamed_part = "VkPhysicalDeviceSubgroupProperties";
constexpr std::pair<std::string_view, std::string_view> k_renamed[] = {
    {"subgroupSupportedStages", "supportedStages"},
    {"subgroupSupportedOperations", "supportedOperations"},
    {"subgroupQuadOperationsInAllStages", "quadOperationsInAllStages"},
};

bool is_whole(const weir_struct& one) {
  return std::string_view(one.name).starts_with("VkPhysicalDeviceVulkan1");
}

// Two fields that say the same thing.
struct Peers {
  const weir_struct* whole;
  const weir_field* whole_field;
  const weir_struct* part;
  const weir_field* part_field;
};

const weir_field* part_field_for(const weir_field& field, const weir_struct& part) {
  for (const auto& [in_whole, in_part] : k_renamed) {
    if (in_whole == field.name && k_renamed_part == part.name) return find_field(part, in_part);
  }
  return find_field(part, field.name);
}

std::vector<Peers> find_peers() {
  std::vector<Peers> out;
  for (const weir_struct& whole : all_structs()) {
    if (whole.chain == WEIR_CHAIN_NONE || !is_whole(whole)) continue;
    for (const weir_field& field : fields_of(whole)) {
      for (const weir_struct& part : all_structs()) {
        if (part.core == 0 || part.chain != whole.chain || is_whole(part)) continue;
        if (const weir_field* of_part = part_field_for(field, part))
          out.push_back({&whole, &field, &part, of_part});
      }
    }
  }
  return out;
}

}  // namespace

std::optional<std::uint64_t> whole_number(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  const std::int64_t given = value.get<std::int64_t>();
  return given < 0 ? std::nullopt : std::optional<std::uint64_t>(given);
}

std::span<const weir_struct> all_structs() { return {weir_structs, weir_struct_count}; }

std::span<const weir_field> fields_of(const weir_struct& one) {
  return {one.fields, one.field_count};
}

const weir_struct* find_struct(std::string_view name) {
  static const auto k_index = [] {
    std::unordered_map<std::string_view, const weir_struct*> index;
    for (const weir_struct& one : all_structs()) index.emplace(one.name, &one);
    for (const weir_alias& alias : std::span(weir_aliases, weir_alias_count))
      index.emplace(alias.name, &weir_structs[alias.of]);
    return index;
  }();
  return look_up(k_index, name, nullptr);
}

const weir_field* find_field(const weir_struct& of, std::string_view name) {
  const auto fields = fields_of(of);
  return find_named(fields, name);
}

int find_enum(std::string_view name) {
  const std::span all(weir_enums, weir_enum_count);
  const auto* found = find_named(all, name);
  return found == nullptr ? -1 : static_cast<int>(found - weir_enums);
}

std::span<const weir_value> values_of(int of_enum) {
  if (of_enum < 0 || static_cast<std::uint32_t>(of_enum) >= weir_enum_count) return {};
  return {weir_enums[of_enum].values, weir_enums[of_enum].count};
}

std::optional<std::int64_t> value_named(int of_enum, std::string_view name) {
  const auto values = values_of(of_enum);
  const auto* found = find_named(values, name);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

bool is_identity_field(std::string_view name) {
  return name.ends_with("UUID") || name.ends_with("LUID") || name.ends_with("LUIDValid");
}

void Warnings::add(std::string what) {
  if (out_.size() < k_most_warnings) {
    out_.push_back(std::move(what));
  } else if (out_.size() == k_most_warnings) {
    out_.emplace_back("and more of the kind");
  }
}

void agree(std::map<std::string, Json>& structs, Warnings& warnings) {
  static const std::vector<Peers> k_peers = find_peers();
  const auto value_of = [&](const weir_struct& of, const weir_field& field) -> const Json* {
    const Json* found = look_up(structs, of.name);
    if (found == nullptr || !found->is_object()) return nullptr;
    const auto value = found->find(field.name);  // null is a value, too
    return value == found->end() ? nullptr : &*value;
  };
  const auto set = [&](const weir_struct& of, const weir_field& field, const Json& from) {
    Json copy = from;
    Json& into = structs[of.name];
    if (!into.is_object()) into = Json::object();
    into[field.name] = std::move(copy);
  };
  for (const Peers& peers : k_peers) {
    const Json* whole = value_of(*peers.whole, *peers.whole_field);
    const Json* part = value_of(*peers.part, *peers.part_field);
    if (whole != nullptr && part == nullptr) {
      set(*peers.part, *peers.part_field, *whole);
    } else if (whole == nullptr && part != nullptr) {
      set(*peers.whole, *peers.whole_field, *part);
    } else if (whole != nullptr && *whole != *part) {
      warnings.add(fmt::format("{}.{} and {}.{} differ", peers.whole->name, peers.whole_field->name,
                               peers.part->name, peers.part_field->name));
    }
  }
}

namespace {

std::optional<std::uint64_t> number_from_text(std::string_view text) {
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const std::string_view digits = hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value, hex ? 16 : 10);
  if (digits.size() > 20 || error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> to_unsigned(const Json& value, std::uint64_t most) {
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
  if (out && *out > most) return std::nullopt;
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
  const auto known = value_named(field.of, value.get_ref<const std::string&>());
  return known ? std::optional(static_cast<std::int32_t>(*known)) : std::nullopt;
}

std::string shown(const Json& value) {
  std::string text = text::printable(dump_json(value));
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

class Filler {
 public:
  explicit Filler(Warnings& warnings) : warnings_(warnings) {}

  void fill(const weir_struct& as, const Json& values, std::span<std::byte> out,
            const std::string& path) {
    if (!values.is_object()) {
      warnings_.add(fmt::format("{}: no object: {}", path, shown(values)));
      return;
    }
    for (const auto& [key, value] : values.items()) {
      if (key == "sType" || key == "pNext") continue;
      const weir_field* field = find_field(as, key);
      const std::string place = path + "." + text::printable(key);
      if (field == nullptr) {
        warnings_.add(place + ": unknown");
      } else if (!is_identity_field(key)) {
        fill_field(*field, value, out, place);
      }
    }
  }

 private:
  void fill_field(const weir_field& field, const Json& value, std::span<std::byte> out,
                  const std::string& path) {
    if (field.kind == WEIR_FIELD_TEXT) return put_text(field, value, out, path);
    if (!field.array) return put(field, value, out.subspan(field.offset), path);
    if (!value.is_array()) return doubt(path, value);
    if (value.size() > field.count)
      warnings_.add(fmt::format("{}: {} values where {} fit", path, value.size(), field.count));
    for (std::size_t i = 0; i < value.size() && i < field.count; ++i) {
      put(field, value[i], out.subspan(field.offset + i * field.element_size),
          fmt::format("{}[{}]", path, i));
    }
  }

  void put_text(const weir_field& field, const Json& value, std::span<std::byte> out,
                const std::string& path) {
    if (!value.is_string()) return doubt(path, value);
    const std::string& text = value.get_ref<const std::string&>();
    if (text.size() >= field.count || text.find('\0') != std::string::npos)
      return doubt(path, value);
    std::memcpy(out.data() + field.offset, text.data(), text.size());
  }

  // One value, at the start of `out`.
  void put(const weir_field& field, const Json& value, std::span<std::byte> out,
           const std::string& path) {
    const auto store = [&](const auto& given) {
      if (!given) return doubt(path, value);
      std::memcpy(out.data(), &*given, field.element_size);  // the lower bytes come first
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
        return store(std::optional(flags_in(field, value, path)));
      default:
        return store(to_unsigned(value, most_of(field)));
    }
  }

  std::uint64_t flags_in(const weir_field& field, const Json& value, const std::string& path) {
    const std::uint64_t most = most_of(field);
    std::uint64_t bits = 0;
    const auto add = [&](const Json& one) {
      auto number = to_unsigned(one, most);
      if (one.is_string()) {
        const auto known = value_named(field.of, one.get_ref<const std::string&>());
        if (known) number = static_cast<std::uint64_t>(*known) & most;
      }
      if (!number) doubt(path, one);
      bits |= number.value_or(0);
    };
    if (value.is_array()) {
      for (const Json& one : value) add(one);
    } else {
      add(value);
    }
    return bits;
  }

  void doubt(const std::string& path, const Json& value) {
    warnings_.add(fmt::format("{}: left out, since weir cannot read {}", path, shown(value)));
  }

  // The largest number of its size: 1, 4 or 8 bytes.
  static std::uint64_t most_of(const weir_field& field) {
    return ~std::uint64_t{0} >> (64 - 8 * field.element_size);
  }

  Warnings& warnings_;
};

}  // namespace

void fill_struct(const weir_struct& as, const Json& values, std::span<std::byte> out,
                 const std::string& path, Warnings& warnings) {
  Filler(warnings).fill(as, values, out, path);
}

}  // namespace weir::probes
