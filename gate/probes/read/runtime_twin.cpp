// Compiles the section of an API in a GPU's description: CUDA's and HIP's alike.
#include "gate/probes/read/runtime_twin.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/twin_values.hpp"
#include "gate/probes/twin/runtime/blob.h"

namespace weir::probes {
namespace {

constexpr std::uint64_t k_largest_int = 0x7fffffff;

// Writes the section of a description to the bytes that the twin's libraries map.
class Compiler {
 public:
  Compiler(const Twin& twin, const RuntimeApi& api, RuntimeTwin& out)
      : api_(api),
        section_(twin.*api.section),
        place_(fmt::format("{}: weir.{}", twin.name, api.name)),
        read_(section_, place_),
        out_(out) {}

  // Compiles a twin with `devices` GPUs.
  Result<void> compile(std::int64_t devices) {
    blob_.magic = WEIR_RUNTIME_TWIN_MAGIC;
    blob_.bytes = sizeof blob_;
    blob_.devices = static_cast<std::uint32_t>(devices);
    out_.name = text::printable(read_.string("name")).substr(0, sizeof blob_.name - 1);
    std::memcpy(blob_.name, out_.name.data(), out_.name.size());
    blob_.total_bytes = to_unsigned(read_.integer("memory_bytes"));
    blob_.used_bytes = to_unsigned(read_.optional_integer("used_bytes").value_or(0));
    blob_.driver_version = static_cast<std::int32_t>(std::clamp<std::int64_t>(
        read_.optional_integer("driver_version").value_or(api_.driver_version), 0, k_largest_int));
    blob_.peers = read_.optional_boolean("peer_access").value_or(false) ? 1 : 0;
    WEIR_CHECK(read_generation());
    set(api_.multiprocessors, to_unsigned(read_.integer("multiprocessors")));
    WEIR_CHECK(read_attributes());
    if (auto problem = read_.problem()) return tl::unexpected(std::move(*problem));
    out_.blob.assign(reinterpret_cast<const char*>(&blob_), sizeof blob_);
    if (!out_.target.empty()) {
      out_.blob += out_.target;
      out_.blob.resize(sizeof(weir_hip_twin));
    }
    return {};
  }

 private:
  // The value, or 0 for a negative one.
  static std::uint64_t to_unsigned(std::int64_t value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
  }
  // Sets an attribute of the table, at most to the largest int.
  void set(std::string_view name, std::uint64_t value) {
    const auto* attribute = find_named(api_.attributes, name);
    blob_.attributes[attribute->number] = static_cast<std::int32_t>(std::min(value, k_largest_int));
  }

  // Sets all attributes to their defaults, then those that depend on the GPU's generation.
  Result<void> read_generation() {
    const std::string text = read_.string(api_.generation_key);
    if (auto problem = read_.problem()) return tl::unexpected(std::move(*problem));
    WEIR_TRY(const RuntimeGeneration generation,
             api_.find_generation(text).map_error(
                 with_prefix(fmt::format("{}.{}", place_, api_.generation_key))));
    out_.major = generation.major;
    out_.minor = generation.minor;
    out_.target = generation.target.substr(0, sizeof weir_hip_twin::target - 1);
    for (const RuntimeAttribute& attribute : api_.attributes) {
      blob_.attributes[attribute.number] = attribute.value;
    }
    for (const auto& [name, value] : generation.attributes) set(name, value);
    return {};
  }

  // Sets the attributes that the description overrides.
  Result<void> read_attributes() {
    const Json& attributes = member_or_null(section_, "attributes");
    if (attributes.is_null()) return {};
    const std::string place = place_ + ".attributes";
    if (!attributes.is_object()) return fail(Code::data, "{}: no object", place);
    for (const auto& [name, value] : attributes.items()) {
      if (find_named(api_.attributes, name) == nullptr) {
        return fail(Code::data, "{}: \"{}\" is none that is known here", place,
                    text::printable(name));
      }
      if (!value.is_number_unsigned()) {
        return fail(Code::data, "{}.{}: no whole number", place, name);
      }
      set(name, value.get<std::uint64_t>());
    }
    return {};
  }

  const RuntimeApi& api_;
  const Json& section_;
  std::string place_;  // "nvidia-l4: weir.cuda"
  JsonReader read_;
  RuntimeTwin& out_;
  weir_runtime_twin blob_{};
};

}  // namespace

std::span<const RuntimeApi* const> runtime_apis() {
  static constexpr std::array k_all{&k_cuda_runtime, &k_hip_runtime};
  return k_all;
}

std::string CodeTarget::file_name() const {
  std::string name = target.empty() ? fmt::format("{}{}", major, minor) : target;
  std::ranges::replace(name, ':', '.');
  return name;
}

const RuntimeApi* find_runtime_api(std::string_view name) {
  for (const RuntimeApi* api : runtime_apis()) {
    if (api->name == name) return api;
  }
  return nullptr;
}

bool is_library_of(const RuntimeApi& api, std::string_view name) {
  return std::ranges::any_of(api.stems,
                             [&](std::string_view stem) { return name.starts_with(stem); });
}

Result<RuntimeTwin> compile_runtime_twin(const Twin& twin, std::string_view api,
                                         std::int64_t devices) {
  const RuntimeApi* runtime = find_runtime_api(api);
  if (runtime == nullptr || !(twin.*runtime->section).is_object()) {
    return fail(Code::data, "{}: it is not described for {} (no weir.{})", twin.name,
                runtime == nullptr ? api : runtime->title, api);
  }
  RuntimeTwin out;
  WEIR_CHECK(Compiler(twin, *runtime, out).compile(devices));
  return out;
}

}  // namespace weir::probes
