// What is described -> the bytes that the driver maps.
#include <algorithm>
#include <cstring>

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

// Where the last of its fields ends.
std::uint32_t used_by(const weir_struct& as) {
  std::uint32_t end = 0;
  for (const weir_field& field : fields_of(as)) {
    end = std::max(end, field.offset + field.count * field.element_size);
  }
  return end;
}

class BlobWriter {
 public:
  explicit BlobWriter(Twin& twin) : twin_(twin), warnings_(twin.warnings) {
    bytes_.resize(sizeof(weir_twin_header));
    std::memcpy(header_.magic, WEIR_TWIN_MAGIC, sizeof header_.magic);
    header_.version = WEIR_TWIN_VERSION;
    std::memcpy(header_.name, twin.name.data(),
                std::min(twin.name.size(), sizeof header_.name - 1));
  }

  std::string write() {
    one(WEIR_TWIN_PROPERTIES, "VkPhysicalDeviceProperties");
    one(WEIR_TWIN_FEATURES, "VkPhysicalDeviceFeatures");
    many(WEIR_TWIN_MEMORY, "VkPhysicalDeviceMemoryProperties", {twin_.memory}, "memory");
    many(WEIR_TWIN_QUEUE_FAMILIES, "VkQueueFamilyProperties", twin_.queue_families,
         "queueFamiliesProperties");
    many(WEIR_TWIN_COOPERATIVE_MATRICES, "VkCooperativeMatrixPropertiesKHR",
         twin_.cooperative_matrices, "weir.cooperative_matrices");
    many(WEIR_TWIN_FLEXIBLE_MATRICES, "VkCooperativeMatrixFlexibleDimensionsPropertiesNV",
         twin_.flexible_matrices, "weir.flexible_matrices");
    extensions();
    formats();
    chained();
    header_.size = bytes_.size();
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    return std::move(bytes_);
  }

 private:
  // Fills the struct at `at`.
  void put(const weir_struct& as, const Json& values, std::size_t at, const std::string& path) {
    std::span<std::byte> out(reinterpret_cast<std::byte*>(bytes_.data()) + at, as.size);
    if (as.type != 0) std::memcpy(out.data(), &as.type, sizeof as.type);
    fill_struct(as, values, out, path, warnings_);
  }

  std::size_t room(std::size_t size) {
    const std::size_t at = (bytes_.size() + k_alignment - 1) / k_alignment * k_alignment;
    bytes_.resize(at + size);
    return at;
  }

  void section(weir_twin_section_kind kind, std::size_t entry_size, std::size_t offset,
               std::size_t count) {
    header_.sections[header_.section_count++] = {static_cast<std::uint32_t>(kind),
                                                 static_cast<std::uint32_t>(entry_size), offset,
                                                 static_cast<std::uint32_t>(count), 0};
  }

  void one(weir_twin_section_kind kind, const char* name) {
    const auto found = twin_.structs.find(name);
    many(kind, name, {found == twin_.structs.end() ? Json::object() : found->second}, name);
  }

  void many(weir_twin_section_kind kind, const char* name, const std::vector<Json>& values,
            const std::string& path) {
    if (values.empty()) return;
    // Sizes of these are multiples of 4 and hold nothing wider, or of 8: entries lie side by side.
    const weir_struct& as = *find_struct(name);
    const std::size_t at = room(as.size * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(as, values[i], at + i * as.size,
          values.size() == 1 ? path : fmt::format("{}[{}]", path, i));
    }
    section(kind, as.size, at, values.size());
  }

  template <class Entry>
  void list(weir_twin_section_kind kind, const std::vector<Entry>& entries) {
    if (entries.empty()) return;
    const std::size_t at = room(sizeof(Entry) * entries.size());
    std::memcpy(bytes_.data() + at, entries.data(), sizeof(Entry) * entries.size());
    section(kind, sizeof(Entry), at, entries.size());
  }

  void extensions() {
    std::vector<Extension> out;
    for (const auto& [name, revision] : twin_.extensions) {
      Extension& one = out.emplace_back(Extension{{}, revision});
      std::memcpy(one.name, name.data(), std::min(name.size(), sizeof one.name - 1));
    }
    list(WEIR_TWIN_EXTENSIONS, out);
  }

  void formats() {
    const weir_struct& as = *find_struct("VkFormatProperties");
    const int names = find_enum("VkFormat");
    std::vector<weir_twin_format> out;
    for (const auto& [name, features] : twin_.formats) {
      const auto number = value_named(names, name);
      if (!number) {
        warnings_.add("formats." + name + ": unknown");
        continue;
      }
      // VkFormatProperties: linear, optimal, buffer.
      std::uint32_t flags[3] = {};
      fill_struct(as, features, std::as_writable_bytes(std::span(flags)), "formats." + name,
                  warnings_);
      out.push_back({static_cast<std::uint32_t>(*number), flags[0], flags[1], flags[2]});
    }
    list(WEIR_TWIN_FORMATS, out);
  }

  void chained() {
    std::vector<weir_twin_struct> out;
    for (const weir_struct& as : all_structs()) {
      if (as.chain == WEIR_CHAIN_NONE) continue;
      const auto found = twin_.structs.find(as.name);
      const std::size_t at = found == twin_.structs.end() ? 0 : room(as.size);
      if (at != 0) put(as, found->second, at, as.name);
      out.push_back({as.type, as.size, at, used_by(as), 0});
    }
    list(WEIR_TWIN_STRUCTS, out);
  }

  Twin& twin_;
  Warnings warnings_;
  weir_twin_header header_{};
  std::string bytes_;
};

}  // namespace

std::string compile_twin(Twin& twin) { return BlobWriter(twin).write(); }

}  // namespace weir::probes
