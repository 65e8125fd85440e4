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
  // Room for a struct, filled; its offset.
  std::size_t put(const weir_struct& as, const Json* values, const std::string& path) {
    const std::size_t at = room(as.size);
    std::span<std::byte> out(reinterpret_cast<std::byte*>(bytes_.data()) + at, as.size);
    if (as.type != 0) std::memcpy(out.data(), &as.type, sizeof as.type);
    if (values != nullptr) fill_struct(as, *values, out, path, warnings_);
    return at;
  }

  std::size_t room(std::size_t size) {
    const std::size_t at = (bytes_.size() + k_alignment - 1) / k_alignment * k_alignment;
    bytes_.resize(at + size);
    return at;
  }

  void section(weir_twin_section_kind kind, std::size_t entry_size, std::size_t offset,
               std::size_t count) {
    if (count == 0) return;
    header_.sections[header_.section_count++] = {static_cast<std::uint32_t>(kind),
                                                 static_cast<std::uint32_t>(entry_size), offset,
                                                 static_cast<std::uint32_t>(count), 0};
  }

  void one(weir_twin_section_kind kind, const char* name) {
    const weir_struct& as = *find_struct(name);
    const auto found = twin_.structs.find(name);
    const std::size_t at = put(as, found == twin_.structs.end() ? nullptr : &found->second, name);
    section(kind, as.size, at, 1);
  }

  void many(weir_twin_section_kind kind, const char* name, const std::vector<Json>& values,
            const std::string& path) {
    if (values.empty()) return;
    // Sizes of these are multiples of 4 and hold nothing wider, or of 8: entries lie side by side.
    const weir_struct& as = *find_struct(name);
    const std::size_t at = room(as.size * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::span<std::byte> out(reinterpret_cast<std::byte*>(bytes_.data()) + at + i * as.size,
                               as.size);
      if (as.type != 0) std::memcpy(out.data(), &as.type, sizeof as.type);
      fill_struct(as, values[i], out, values.size() == 1 ? path : fmt::format("{}[{}]", path, i),
                  warnings_);
    }
    section(kind, as.size, at, values.size());
  }

  void extensions() {
    std::size_t count = 0;
    const std::size_t at = room(sizeof(Extension) * twin_.extensions.size());
    for (const auto& [name, revision] : twin_.extensions) {
      Extension out{};
      std::memcpy(out.name, name.data(), std::min(name.size(), sizeof out.name - 1));
      out.revision = revision;
      std::memcpy(bytes_.data() + at + count++ * sizeof out, &out, sizeof out);
    }
    section(WEIR_TWIN_EXTENSIONS, sizeof(Extension), at, count);
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
    const std::size_t at = room(sizeof(weir_twin_format) * out.size());
    if (!out.empty())
      std::memcpy(bytes_.data() + at, out.data(), sizeof(weir_twin_format) * out.size());
    section(WEIR_TWIN_FORMATS, sizeof(weir_twin_format), at, out.size());
  }

  void chained() {
    std::vector<weir_twin_struct> out;
    for (const weir_struct& as : all_structs()) {
      if (as.chain == WEIR_CHAIN_NONE) continue;
      const auto found = twin_.structs.find(as.name);
      const std::size_t at = found == twin_.structs.end() ? 0 : put(as, &found->second, as.name);
      out.push_back({as.type, as.size, at, used_by(as), 0});
    }
    const std::size_t at = room(sizeof(weir_twin_struct) * out.size());
    std::memcpy(bytes_.data() + at, out.data(), sizeof(weir_twin_struct) * out.size());
    section(WEIR_TWIN_STRUCTS, sizeof(weir_twin_struct), at, out.size());
  }

  Twin& twin_;
  Warnings warnings_;
  weir_twin_header header_{};
  std::string bytes_;
};

}  // namespace

std::string compile_twin(Twin& twin) { return BlobWriter(twin).write(); }

}  // namespace weir::probes
