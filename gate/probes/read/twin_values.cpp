#include "gate/probes/read/twin_values.hpp"

#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

namespace weir::probes {
namespace {

constexpr std::size_t k_most_warnings = 100;

// Those that are part of a version under another name than by themselves (Vulkan specification,
// VkPhysicalDeviceVulkan11Properties).
struct Renamed {
  const char* whole;
  const char* part;
  const char* of;
};
constexpr Renamed k_renamed[] = {
    {"subgroupSupportedStages", "supportedStages", "VkPhysicalDeviceSubgroupProperties"},
    {"subgroupSupportedOperations", "supportedOperations", "VkPhysicalDeviceSubgroupProperties"},
    {"subgroupQuadOperationsInAllStages", "quadOperationsInAllStages",
     "VkPhysicalDeviceSubgroupProperties"},
};

bool is_whole(const weir_struct& one) {
  return std::string_view(one.name).substr(0, 23) == "VkPhysicalDeviceVulkan1";
}

// Two fields that say the same thing.
struct Peers {
  const weir_struct* whole;
  const weir_field* whole_field;
  const weir_struct* part;
  const weir_field* part_field;
};

const weir_field* part_field_for(const weir_field& field, const weir_struct& part) {
  for (const Renamed& renamed : k_renamed) {
    if (std::strcmp(renamed.whole, field.name) == 0 && std::strcmp(renamed.of, part.name) == 0)
      return find_field(part, renamed.part);
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
  const auto found = k_index.find(name);
  return found == k_index.end() ? nullptr : found->second;
}

const weir_field* find_field(const weir_struct& of, std::string_view name) {
  for (const weir_field& field : fields_of(of)) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

int find_enum(std::string_view name) {
  for (std::uint32_t i = 0; i < weir_enum_count; ++i) {
    if (name == weir_enums[i].name) return static_cast<int>(i);
  }
  return -1;
}

std::optional<std::int64_t> value_named(int of_enum, std::string_view name) {
  if (of_enum < 0 || static_cast<std::uint32_t>(of_enum) >= weir_enum_count) return std::nullopt;
  const weir_enum& one = weir_enums[of_enum];
  for (const weir_value& value : std::span(one.values, one.count)) {
    if (name == value.name) return value.value;
  }
  return std::nullopt;
}

bool is_identity_field(std::string_view name) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
  };
  return ends_with("UUID") || ends_with("LUID") || ends_with("LUIDValid");
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
    const auto found = structs.find(of.name);
    if (found == structs.end() || !found->second.is_object()) return nullptr;
    const auto value = found->second.find(field.name);
    return value == found->second.end() ? nullptr : &*value;
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

}  // namespace weir::probes
