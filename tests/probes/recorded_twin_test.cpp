// A recorded description against the device itself. The device is lavapipe, which every machine has
// that runs these tests.
#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/twin_values.hpp"
#include "gate/probes/read/twins.hpp"
#include "gate/probes/twin/blob.h"

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace recorded_twin_test {

std::map<std::string, std::string> answers_of_the_device() {
  const Ran ran = run({WEIR_STRUCT_DUMP}, {});
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::map<std::string, std::string> out;
  std::istringstream lines(ran.out);
  std::string key, hex;
  while (lines >> key >> hex) {
    std::string& bytes = out[key];
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

// UUIDs and LUIDs are not recorded.
void forget_identity(const weir_struct& as, std::string& bytes) {
  for (const weir_field& field : struct_fields(as)) {
    if (is_identity_field(field.name))
      bytes.replace(field.offset, field.count * field.element_size,
                    field.count * field.element_size, '\0');
  }
}

TEST(RecordedTwin, GivesByteForByteWhatTheDeviceItselfAnswers) {
  const sys::RealFiles files;
  const auto places = locate(files);
  ASSERT_TRUE(places) << places.error().message;
  const Ran described = run({places->devices_program, "--describe"}, {});
  ASSERT_EQ(described.status, 0) << described.err;
  const auto document = parse_json(described.out);
  ASSERT_TRUE(document) << document.error().message;
  ASSERT_FALSE((*document)["descriptions"].empty()) << described.out;
  auto twin = read_twin(dump_json((*document)["descriptions"][0]));
  ASSERT_TRUE(twin) << twin.error().message;
  const std::string blob = compile_twin(*twin);
  EXPECT_THAT(twin->warnings, testing::IsEmpty());

  const auto answers = answers_of_the_device();
  weir_twin_header header;
  std::memcpy(&header, blob.data(), sizeof header);
  std::size_t compared = 0, described_structs = 0;
  const auto compare = [&](const std::string& key, const char* name, std::string bytes) {
    const auto answer = answers.find(key);
    ASSERT_NE(answer, answers.end()) << key;
    std::string theirs = answer->second;
    ASSERT_EQ(theirs.size(), bytes.size()) << key;
    if (name != nullptr) forget_identity(*find_struct(name), theirs);
    EXPECT_EQ(bytes, theirs) << key << " " << (name == nullptr ? "" : name);
    ++compared;
  };
  for (std::uint32_t i = 0; i < header.section_count; ++i) {
    const weir_twin_section& section = header.sections[i];
    const std::string bytes =
        blob.substr(section.offset, std::size_t{section.entry_size} * section.count);
    switch (section.kind) {
      case WEIR_TWIN_PROPERTIES:
        compare("properties", "VkPhysicalDeviceProperties", bytes);
        break;
      case WEIR_TWIN_FEATURES:
        compare("features", nullptr, bytes);
        break;
      case WEIR_TWIN_MEMORY:
        compare("memory", nullptr, bytes);
        break;
      case WEIR_TWIN_QUEUE_FAMILIES:
        compare("families", nullptr, bytes);
        break;
      case WEIR_TWIN_STRUCTS:
        for (std::uint32_t j = 0; j < section.count; ++j) {
          weir_twin_struct description;
          std::memcpy(&description, bytes.data() + std::size_t{j} * section.entry_size,
                      sizeof description);
          const char* name = nullptr;
          for (const weir_struct& as : all_structs()) {
            if (as.type == description.type && as.chain != WEIR_CHAIN_NONE) name = as.name;
          }
          ASSERT_NE(name, nullptr);
          std::string own(description.size, '\0');
          std::memcpy(own.data(), &description.type, sizeof description.type);
          if (description.offset != 0) own = blob.substr(description.offset, description.size);
          described_structs += description.offset != 0 ? 1U : 0U;
          compare(std::to_string(description.type), name, own);
        }
        break;
      default:
        break;
    }
  }
  EXPECT_EQ(compared, answers.size());
  EXPECT_GT(described_structs, 50U);
}

}  // namespace recorded_twin_test
}  // namespace weir::probes
