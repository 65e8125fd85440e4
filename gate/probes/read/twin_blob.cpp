// Compiles a GPU's description to the bytes that the twin driver maps.
#include <algorithm>
#include <cstring>

#include "gate/base/find.hpp"
#include "gate/probes/read/twin_values.hpp"
#include "gate/probes/read/twins.hpp"
#include "gate/probes/twin/blob.h"

namespace weir::probes {
namespace {

constexpr std::size_t k_alignment = 8;

// VkExtensionProperties: char extensionName[256], uint32_t specVersion.
struct Extension {
  char name[256];
  std::uint32_t revision;
};

// The bytes of a struct up to the end of its last field, without padding.
std::uint32_t used_bytes(const weir_struct& type) {
  std::uint32_t end = 0;
  for (const weir_field& field : struct_fields(type)) {
    end = std::max(end, field.offset + field.count * field.element_size);
  }
  return end;
}

// Writes the sections of gate/probes/twin/blob.h, then the header in front of them.
class BlobWriter {
 public:
  explicit BlobWriter(Twin& twin) : twin_(twin), warnings_(twin.warnings) {
    bytes_.resize(sizeof(weir_twin_header));
    std::memcpy(header_.magic, WEIR_TWIN_MAGIC, sizeof header_.magic);
    header_.version = WEIR_TWIN_VERSION;
    std::memcpy(header_.name, twin.name.data(),
                std::min(twin.name.size(), sizeof header_.name - 1));
  }

  // Returns the bytes: the header and all sections.
  std::string write() {
    add_struct(WEIR_TWIN_PROPERTIES, "VkPhysicalDeviceProperties");
    add_struct(WEIR_TWIN_FEATURES, "VkPhysicalDeviceFeatures");
    add_structs(WEIR_TWIN_MEMORY, "VkPhysicalDeviceMemoryProperties", {twin_.memory}, "memory");
    add_structs(WEIR_TWIN_QUEUE_FAMILIES, "VkQueueFamilyProperties", twin_.queue_families,
                "queueFamiliesProperties");
    add_structs(WEIR_TWIN_COOPERATIVE_MATRICES, "VkCooperativeMatrixPropertiesKHR",
                twin_.cooperative_matrices, "weir.cooperative_matrices");
    add_structs(WEIR_TWIN_FLEXIBLE_MATRICES, "VkCooperativeMatrixFlexibleDimensionsPropertiesNV",
                twin_.flexible_matrices, "weir.flexible_matrices");
    add_extensions();
    add_formats();
    add_chained_structs();
    header_.size = bytes_.size();
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    return std::move(bytes_);
  }

 private:
  // Fills the struct at offset `at`, with its type first if it has one.
  void fill(const weir_struct& type, const Json& values, std::size_t at, const std::string& path) {
    std::span<std::byte> out(reinterpret_cast<std::byte*>(bytes_.data()) + at, type.size);
    if (type.type != 0) std::memcpy(out.data(), &type.type, sizeof type.type);
    fill_struct(type, values, out, path, warnings_);
  }

  // Appends `size` bytes, aligned, and returns their offset.
  std::size_t allocate(std::size_t size) {
    const std::size_t at = (bytes_.size() + k_alignment - 1) / k_alignment * k_alignment;
    bytes_.resize(at + size);
    return at;
  }

  // Adds a section's entry to the header.
  void add_section(weir_twin_section_kind kind, std::size_t entry_size, std::size_t offset,
                   std::size_t count) {
    header_.sections[header_.section_count] = {static_cast<std::uint32_t>(kind),
                                               static_cast<std::uint32_t>(entry_size), offset,
                                               static_cast<std::uint32_t>(count), 0};
    ++header_.section_count;
  }

  // Adds a section with one struct; one that is not described is empty.
  void add_struct(weir_twin_section_kind kind, const char* name) {
    add_structs(kind, name, {look_up(twin_.structs, name, Json::object())}, name);
  }

  // Adds a section with an array of structs of one type. `path` names it in warnings.
  void add_structs(weir_twin_section_kind kind, const char* name, const std::vector<Json>& values,
                   const std::string& path) {
    if (values.empty()) return;
    // The structs' sizes are multiples of their alignment, so that entries need no padding.
    const weir_struct& type = *find_struct(name);
    const std::size_t at = allocate(type.size * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      fill(type, values[i], at + i * type.size,
           values.size() == 1 ? path : fmt::format("{}[{}]", path, i));
    }
    add_section(kind, type.size, at, values.size());
  }

  // Adds a section with a copy of the entries.
  template <class Entry>
  void add_list(weir_twin_section_kind kind, const std::vector<Entry>& entries) {
    if (entries.empty()) return;
    const std::size_t at = allocate(sizeof(Entry) * entries.size());
    std::memcpy(bytes_.data() + at, entries.data(), sizeof(Entry) * entries.size());
    add_section(kind, sizeof(Entry), at, entries.size());
  }

  void add_extensions() {
    std::vector<Extension> out;
    for (const auto& [name, revision] : twin_.extensions) {
      Extension& extension = out.emplace_back(Extension{{}, revision});
      std::memcpy(extension.name, name.data(), std::min(name.size(), sizeof extension.name - 1));
    }
    add_list(WEIR_TWIN_EXTENSIONS, out);
  }

  // Adds the features of each format that Vulkan knows.
  void add_formats() {
    const weir_struct& type = *find_struct("VkFormatProperties");
    const int names = find_enum("VkFormat");
    std::vector<weir_twin_format> out;
    for (const auto& [name, features] : twin_.formats) {
      const auto number = find_enum_value(names, name);
      if (!number) {
        warnings_.add("formats." + name + ": unknown");
        continue;
      }
      // VkFormatProperties: linear, optimal, buffer.
      std::uint32_t flags[3] = {};
      fill_struct(type, features, std::as_writable_bytes(std::span(flags)), "formats." + name,
                  warnings_);
      out.push_back({static_cast<std::uint32_t>(*number), flags[0], flags[1], flags[2]});
    }
    add_list(WEIR_TWIN_FORMATS, out);
  }

  // Adds every struct that can stand in a pNext chain. Offset 0 means that it is not described.
  void add_chained_structs() {
    std::vector<weir_twin_struct> out;
    for (const weir_struct& type : all_structs()) {
      if (type.chain == WEIR_CHAIN_NONE) continue;
      std::size_t at = 0;
      if (const Json* values = look_up(twin_.structs, type.name)) {
        at = allocate(type.size);
        fill(type, *values, at, type.name);
      }
      out.push_back({type.type, type.size, at, used_bytes(type), 0});
    }
    add_list(WEIR_TWIN_STRUCTS, out);
  }

  Twin& twin_;
  Warnings warnings_;
  weir_twin_header header_{};
  std::string bytes_;
};

}  // namespace

std::string compile_twin(Twin& twin) { return BlobWriter(twin).write(); }

}  // namespace weir::probes
