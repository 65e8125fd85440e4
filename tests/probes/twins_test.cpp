// Tests of the compiled device twins that the driver maps.
#include "gate/probes/read/twins.hpp"

#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vulkan/vulkan.h>

#include "gate/base/find.hpp"
#include "gate/probes/read/twin_facts.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/probes/read/twin_values.hpp"
#include "gate/probes/twin/blob.h"

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace twins_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A small document of the form that vulkaninfo writes.
Json small_document() {
  return {{"capabilities",
           {{"device",
             {{"extensions", {{"VK_KHR_16bit_storage", 1}, {"VK_KHR_surface", 25}}},
              {"features",
               {{"VkPhysicalDeviceFeatures", {{"shaderInt64", true}}},
                {"VkPhysicalDeviceShaderFloat16Int8FeaturesKHR", {{"shaderFloat16", true}}}}},
              {"properties",
               {{"VkPhysicalDeviceProperties",
                 {{"deviceName", "A Card"},
                  {"vendorID", 4098},
                  {"limits", {{"maxComputeSharedMemorySize", 65536}}}}},
                {"VkPhysicalDeviceSubgroupProperties",
                 {{"subgroupSize", 64},
                  {"supportedStages", {"VK_SHADER_STAGE_COMPUTE_BIT"}},
                  {"supportedOperations",
                   {"VK_SUBGROUP_FEATURE_BASIC_BIT", "VK_SUBGROUP_FEATURE_VOTE_BIT"}}}}}}}}}},
          {"profiles", {{"VP", {{"api-version", "1.2.131"}, {"capabilities", {"device"}}}}}},
          {"weir",
           {{"schema", "weir.device/1"},
            {"name", "a-card"},
            {"title", "A card"},
            {"memory",
             {{"heaps", {{{"size", 1024}, {"flags", {"VK_MEMORY_HEAP_DEVICE_LOCAL_BIT"}}}}},
              {"types", {{{"heap", 0}, {"flags", {"VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT"}}}}}}}}}};
}

Twin read_ok(const Json& document) {
  auto twin = read_twin(dump_json(document));
  EXPECT_TRUE(twin) << twin.error().message;
  return twin ? std::move(*twin) : Twin{};
}

// The contents of the blob, read as the driver does.
class Blob {
 public:
  explicit Blob(std::string bytes) : bytes_(std::move(bytes)) {
    std::memcpy(&header, bytes_.data(), sizeof header);
  }
  [[nodiscard]] const weir_twin_section* section(weir_twin_section_kind kind) const {
    for (std::uint32_t i = 0; i < header.section_count; ++i) {
      if (header.sections[i].kind == static_cast<std::uint32_t>(kind)) return &header.sections[i];
    }
    return nullptr;
  }
  template <class T>
  [[nodiscard]] T entry(weir_twin_section_kind kind, std::size_t index = 0) const {
    T out{};
    const weir_twin_section* table = section(kind);
    EXPECT_TRUE(table != nullptr && index < table->count && table->entry_size == sizeof(T));
    if (table != nullptr && index < table->count)
      std::memcpy(&out, bytes_.data() + table->offset + index * table->entry_size, sizeof out);
    return out;
  }
  // The struct of this type; nothing where it is not known, an empty one where it is not described.
  [[nodiscard]] std::optional<std::string> chained(std::uint32_t type) const {
    const weir_twin_section* table = section(WEIR_TWIN_STRUCTS);
    for (std::uint32_t i = 0; table != nullptr && i < table->count; ++i) {
      const auto description = entry<weir_twin_struct>(WEIR_TWIN_STRUCTS, i);
      if (description.type != type) continue;
      return description.offset == 0 ? std::string()
                                     : bytes_.substr(description.offset, description.size);
    }
    return std::nullopt;
  }
  template <class T>
  [[nodiscard]] T chained_as(VkStructureType type) const {
    T out{};
    const auto bytes = chained(static_cast<std::uint32_t>(type));
    EXPECT_TRUE(bytes && bytes->size() == sizeof(T)) << type;
    if (bytes && bytes->size() == sizeof(T)) std::memcpy(&out, bytes->data(), sizeof out);
    return out;
  }

  weir_twin_header header{};
  std::string bytes_;
};

// An odd number of features has padding behind it, where programs leave anything.
TEST(Twins, TellTheDriverWhereAStructsFieldsEnd) {
  Twin twin = read_ok(small_document());
  const Blob blob(compile_twin(twin));
  const std::map<std::uint32_t, std::uint32_t> expected{
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT, 20},  // head and 1
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, 28},             // head and 3
      {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, 24}};   // head and 2
  std::size_t checked = 0;
  for (std::uint32_t i = 0; i < blob.section(WEIR_TWIN_STRUCTS)->count; ++i) {
    const auto description = blob.entry<weir_twin_struct>(WEIR_TWIN_STRUCTS, i);
    EXPECT_LE(description.used, description.size) << description.type;
    EXPECT_GE(description.used + 8, description.size) << description.type;
    const auto match = expected.find(description.type);
    if (match == expected.end()) continue;
    ++checked;
    EXPECT_EQ(description.used, match->second) << description.type;
  }
  EXPECT_EQ(checked, expected.size());
}

TEST(Twins, AreCompiledIntoWhatTheDriverMaps) {
  Twin twin = read_ok(small_document());
  const Blob blob(compile_twin(twin));
  EXPECT_STREQ(blob.header.magic, WEIR_TWIN_MAGIC);
  EXPECT_STREQ(blob.header.name, "a-card");
  EXPECT_EQ(blob.header.size, blob.bytes_.size());
  const auto properties = blob.entry<VkPhysicalDeviceProperties>(WEIR_TWIN_PROPERTIES);
  EXPECT_STREQ(properties.deviceName, "A Card");
  EXPECT_EQ(properties.vendorID, 4098U);
  EXPECT_EQ(properties.apiVersion, VK_MAKE_API_VERSION(0, 1, 2, 131));
  EXPECT_EQ(properties.limits.maxComputeSharedMemorySize, 65536U);
  // Not described: the least that Vulkan requires.
  EXPECT_EQ(properties.limits.maxPushConstantsSize, 128U);
  EXPECT_EQ(properties.limits.maxComputeWorkGroupSize[2], 64U);
  const auto memory = blob.entry<VkPhysicalDeviceMemoryProperties>(WEIR_TWIN_MEMORY);
  EXPECT_EQ(memory.memoryHeapCount, 1U);
  EXPECT_EQ(memory.memoryHeaps[0].size, 1024U);
  EXPECT_EQ(memory.memoryTypes[0].propertyFlags, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  // An instance's extension is none of the device's.
  EXPECT_EQ(blob.section(WEIR_TWIN_EXTENSIONS)->count, 1U);
  EXPECT_STREQ(blob.entry<VkExtensionProperties>(WEIR_TWIN_EXTENSIONS).extensionName,
               "VK_KHR_16bit_storage");
  EXPECT_THAT(twin.warnings, ElementsAre(HasSubstr("one queue")));
}

TEST(Twins, SayTheSameInStructsOfAVersionAndInThoseItTookUp) {
  Twin twin = read_ok(small_document());
  const Blob blob(compile_twin(twin));
  const auto eleven = blob.chained_as<VkPhysicalDeviceVulkan11Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  EXPECT_EQ(eleven.subgroupSize, 64U);
  EXPECT_EQ(eleven.subgroupSupportedStages, VK_SHADER_STAGE_COMPUTE_BIT + 0U);
  EXPECT_EQ(eleven.subgroupSupportedOperations,
            VK_SUBGROUP_FEATURE_BASIC_BIT + 0U + VK_SUBGROUP_FEATURE_VOTE_BIT);
  const auto twelve = blob.chained_as<VkPhysicalDeviceVulkan12Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  EXPECT_EQ(twelve.shaderFloat16, VK_TRUE);
  EXPECT_EQ(twelve.shaderInt8, VK_FALSE);
}

TEST(Twins, KnowEveryStructOfTheTwoChainsAlsoWhereItIsNotDescribed) {
  Twin twin = read_ok(small_document());
  const Blob blob(compile_twin(twin));
  // VkPhysicalDeviceCooperativeMatrixFeaturesKHR is newer than Debian's headers.
  for (const std::uint32_t type : {1000506000U, 1000593000U, 1000141000U, 1000068001U}) {
    const auto chain = blob.chained(type);
    ASSERT_TRUE(chain) << type;
    EXPECT_EQ(*chain, "") << type;
  }
  EXPECT_FALSE(blob.chained(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT));
}

TEST(Twins, TellOfWhatTheyDoNotKnowAndGoOn) {
  struct Case {
    const char* what;
    const char* pointer;
    Json value;
    const char* warning;
  };
  const std::string device = "/capabilities/device";
  const std::string card = device + "/properties/VkPhysicalDeviceProperties";
  const Case cases[] = {
      {"a struct", "/capabilities/device/features/VkNoSuch", Json::object(), "VkNoSuch: unknown"},
      {"a field", "/capabilities/device/properties/VkPhysicalDeviceProperties/speed", 1,
       "VkPhysicalDeviceProperties.speed: unknown"},
      {"too big", "/capabilities/device/properties/VkPhysicalDeviceProperties/vendorID",
       std::uint64_t{1} << 32, "weir cannot read 4294967296"},
      {"no number", "/capabilities/device/properties/VkPhysicalDeviceProperties/vendorID", "AMD",
       "weir cannot read \"AMD\""},
      {"no such value", "/capabilities/device/properties/VkPhysicalDeviceProperties/deviceType",
       "VK_FAST", "VK_FAST"},
      {"a long name", "/capabilities/device/properties/VkPhysicalDeviceProperties/deviceName",
       std::string(256, 'x'), "deviceName"},
      {"no list", "/weir/cooperative_matrices", 7, "cooperative_matrices: no list"},
      {"no object", "/weir/cooperative_matrices", {7}, "no object"},
      {"a key", "/weir/colour", "red", "weir.colour: unknown"},
      {"a heap that is not there", "/weir/memory/types/0/heap", 3, "memory: not described"},
      {"memory of another kind", "/weir/memory", 3, "memory: not described"},
      {"a revision", "/capabilities/device/extensions/VK_KHR_16bit_storage", "new", "revision"},
      {"an extension", "/capabilities/device/extensions/16bit", 1, "no name of an extension"},
      {"no object of limits", "/capabilities/device/properties/VkPhysicalDeviceProperties/limits",
       3, "limits: not described"},
      {"two that differ",
       "/capabilities/device/properties/VkPhysicalDeviceVulkan11Properties",
       {{"subgroupSize", 32}},
       "differ"},
  };
  for (const Case& entry : cases) {
    Json document = small_document();
    document[Json::json_pointer(entry.pointer)] = entry.value;
    Twin twin = read_ok(document);
    static_cast<void>(compile_twin(twin));
    EXPECT_THAT(twin.warnings, testing::Contains(HasSubstr(entry.warning))) << entry.what;
  }
}

TEST(Twins, AreRefusedWhereTheTextIsNoDescription) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "JSON"},
      {"[]", "not an object"},
      {"{}", "VkPhysicalDeviceProperties is nowhere"},
      {"{\"capabilities\": 3}", "VkPhysicalDeviceProperties is nowhere"},
      {"{\"weir\": {\"schema\": \"weir.device/9\"}}", "weir.device/9"},
  };
  for (const auto& [text, words] : cases) {
    const auto twin = read_twin(text);
    ASSERT_FALSE(twin) << text;
    EXPECT_EQ(twin.error().code, Code::data) << text;
    EXPECT_THAT(twin.error().message, HasSubstr(words)) << text;
  }
  EXPECT_FALSE(read_twin(std::string(9 << 20, ' ')));
}

TEST(Twins, ReadTheOlderFormOfVulkaninfoToo) {
  const Json older = {
      {"$schema", "https://schema.khronos.org/vulkan/devsim_1_0_0.json#"},
      {"VkPhysicalDeviceProperties", {{"deviceName", "Old"}, {"limits", Json::object()}}},
      {"VkPhysicalDeviceMemoryProperties",
       {{"memoryHeaps", {{{"size", 64}, {"flags", 1}}}},
        {"memoryTypes", {{{"heapIndex", 0}, {"propertyFlags", 15}}}}}},
      {"ArrayOfVkExtensionProperties",
       {{{"extensionName", "VK_KHR_8bit_storage"}, {"specVersion", 1}}}},
      {"ArrayOfVkQueueFamilyProperties", {{{"queueFlags", 2}, {"queueCount", 3}}}}};
  Twin twin = read_ok(older);
  const Blob blob(compile_twin(twin));
  EXPECT_THAT(twin.warnings, IsEmpty());
  EXPECT_EQ(twin.name, "old");
  EXPECT_EQ(
      blob.entry<VkPhysicalDeviceMemoryProperties>(WEIR_TWIN_MEMORY).memoryTypes[0].propertyFlags,
      15U);
  EXPECT_EQ(blob.entry<VkQueueFamilyProperties>(WEIR_TWIN_QUEUE_FAMILIES).queueCount, 3U);
  EXPECT_EQ(blob.section(WEIR_TWIN_EXTENSIONS)->count, 1U);
}

TEST(Twins, LeaveOutWhatTellsOneCardFromAnother) {
  Json document = small_document();
  document["/capabilities/device/properties/VkPhysicalDeviceIDProperties"_json_pointer] = {
      {"deviceUUID", {1, 2, 3}}, {"deviceLUIDValid", true}, {"deviceNodeMask", 1}};
  Twin twin = read_ok(document);
  const Blob blob(compile_twin(twin));
  const auto ids = blob.chained_as<VkPhysicalDeviceIDProperties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  EXPECT_EQ(ids.deviceUUID[0], 0);
  EXPECT_EQ(ids.deviceLUIDValid, VK_FALSE);
  EXPECT_EQ(dump_json(document_of(twin)).find("UUID"), std::string::npos);
}

TEST(Twins, ShowNoCoresWhereAStructOfThemIsDescribedAsEmpty) {
  Json document = small_document();
  document
      ["/capabilities/device/properties/VkPhysicalDeviceShaderSMBuiltinsPropertiesNV"_json_pointer] =
          {{"shaderSMCount", 0}, {"shaderWarpsPerSM", 0}};
  for (const auto& [subject, what] : facts_of(read_ok(document)))
    EXPECT_NE(subject, "cores") << what;
}

TEST(Twins, AreTheSameAgainFromTheDocumentThatIsWrittenOfThem) {
  const std::string folder = std::string(WEIR_SOURCE_DIR) + "/configs/devices";
  const sys::RealFiles files;
  const auto twins = list_twins(files, {folder});
  ASSERT_TRUE(twins);
  for (const TwinEntry& entry : *twins) {
    auto twin = load_twin(files, {folder}, entry.name);
    ASSERT_TRUE(twin) << entry.name;
    Twin again = read_ok(document_of(*twin));
    EXPECT_EQ(again.cuda, twin->cuda) << entry.name;
    if (twin->has_vulkan()) {
      EXPECT_EQ(compile_twin(*twin), compile_twin(again)) << entry.name;
    }
    EXPECT_EQ(facts_of(*twin), facts_of(again)) << entry.name;
  }
}

TEST(Twins, ThatComeWithWeirAreReadWithoutADoubtAndSayWhereTheyAreFrom) {
  const std::string folder = std::string(WEIR_SOURCE_DIR) + "/configs/devices";
  const sys::RealFiles files;
  const auto twins = list_twins(files, {folder});
  ASSERT_TRUE(twins);
  EXPECT_GE(twins->size(), 12U);
  for (const TwinEntry& entry : *twins) {
    EXPECT_EQ(entry.error, "");
    auto twin = load_twin(files, {folder}, entry.name);
    ASSERT_TRUE(twin) << entry.name;
    EXPECT_FALSE(entry.apis.empty()) << entry.name;
    if (holds(entry.apis, "vulkan")) static_cast<void>(compile_twin(*twin));
    EXPECT_THAT(twin->warnings, IsEmpty()) << entry.name;
    EXPECT_THAT(entry.source, testing::StartsWith("from public data: ")) << entry.name;
    EXPECT_FALSE(twin->assumed.empty()) << entry.name;
    const auto text = files.read(entry.path, 1 << 20);
    const auto document = parse_json(*text);
    EXPECT_EQ((*document)["weir"]["name"], entry.name);
  }
}

TEST(Twins, SurviveRandomDamage) {
  const sys::RealFiles files;
  const auto intact =
      files.read(std::string(WEIR_SOURCE_DIR) + "/configs/devices/intel-arc-b580.json", 1 << 20);
  ASSERT_TRUE(intact);
  std::mt19937 random(20260704);
  std::size_t read = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string text;
    if (i % 2 == 0) {
      // A small document, since most damage to a big one hits little.
      text = dump_json(small_document());
    } else {
      text = *intact;
    }
    const int times = 1 + static_cast<int>(random() % 4);
    for (int j = 0; j < times; ++j) {
      const std::size_t place = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[place] = static_cast<char>(random());
          break;
        case 1:
          text.erase(place, random() % 8);
          break;
        case 2:
          text.insert(place, text.substr(random() % text.size(), random() % 32));
          break;
        default:
          text[place] = "[]{}\",:0123456789truenfls"[random() % 24];
      }
      if (text.empty()) break;
    }
    auto twin = read_twin(text);
    if (!twin) continue;
    ++read;
    const Blob blob(compile_twin(*twin));
    ASSERT_EQ(blob.header.size, blob.bytes_.size());
    ASSERT_LE(twin->warnings.size(), 101U);
    static_cast<void>(facts_of(*twin));
    static_cast<void>(dump_json(document_of(*twin)));
  }
  EXPECT_GT(read, 1000U);
}

TEST(TwinFolders, PutTheNearerDescriptionInFront) {
  const sys::RealFiles files;
  const Folder folder;
  const auto put = [&](const std::string& path, const std::string& title) {
    const std::filesystem::path file = folder.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    Json document = small_document();
    document["weir"]["title"] = title;
    std::ofstream(file) << dump_json(document);
  };
  put("home/configs/devices/a.json", "near");
  put("share/weir/devices/a.json", "far");
  put("share/weir/devices/b.json", "other");
  put("share/weir/devices/No Name.json", "left out");
  std::ofstream(folder.path() + "/share/weir/devices/c.json") << "no";
  const auto folders = twin_folders(files, folder.path() + "/home", folder.path() + "/bin/weir");
  EXPECT_EQ(folders.size(), 2U);
  const auto twins = list_twins(files, folders);
  ASSERT_TRUE(twins);
  ASSERT_EQ(twins->size(), 3U);
  EXPECT_EQ((*twins)[0].title, "near");
  EXPECT_EQ((*twins)[1].title, "other");
  EXPECT_THAT((*twins)[2].error, HasSubstr("c.json"));
  const auto twin = load_twin(files, folders, "a");
  ASSERT_TRUE(twin);
  // A file's name is the device's.
  EXPECT_EQ(twin->name, "a");
  EXPECT_EQ(twin->title, "near");
}

// Without a title and a name they are called as the GPU is, of whichever API.
TEST(Twins, AreCalledAsTheirGpuIs) {
  for (const char* api : {"cuda", "hip"}) {
    const Twin twin =
        read_ok({{"weir", {{"schema", "weir.device/1"}, {api, {{"name", "A GPU"}}}}}});
    EXPECT_EQ(twin.title, "A GPU") << api;
    EXPECT_EQ(twin.name, "a-gpu") << api;
  }
}

TEST(TwinFolders, SayWhatMayHaveBeenMeant) {
  const sys::RealFiles files;
  const std::vector<std::string> folders{std::string(WEIR_SOURCE_DIR) + "/configs/devices"};
  const auto twin = load_twin(files, folders, "nvidia-rtx-4091");
  ASSERT_FALSE(twin);
  EXPECT_EQ(twin.error().code, Code::config);
  EXPECT_THAT(twin.error().message, HasSubstr("did you mean"));
  EXPECT_FALSE(load_twin(files, folders, "../devices/nvidia-rtx-4090"));
}

}  // namespace twins_test
}  // namespace weir::probes
