// Every file in configs/ loads, and agrees with the JSON Schema that editors use.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/config/parse.hpp"
#include "gate/config/presets.hpp"
#include "gate/config/starter.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace configs_test {

using testing::HasSubstr;

const std::filesystem::path k_configs = std::filesystem::path(WEIR_SOURCE_DIR) / "configs";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> config_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(k_configs)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  return files;
}

std::vector<std::string> described_devices() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(k_configs / "devices")) {
    names.push_back(entry.path().stem().string());
  }
  return names;
}

// As an editor's YAML mode hands it to the validator.
Json to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return nullptr;
    case Node::Kind::list: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case Node::Kind::map: {
      Json map = Json::object();
      for (const Entry& entry : node.entries) map[entry.key] = to_json(entry.value);
      return map;
    }
    case Node::Kind::scalar:
      break;
  }
  if (!node.quoted) {
    if (node.text == "true" || node.text == "false") return node.text == "true";
    if (const auto whole = text::to_int(node.text)) return *whole;
    if (const auto number = text::to_double(node.text)) return *number;
  }
  return node.text;
}

class SchemaTest : public testing::Test {
 protected:
  SchemaTest() {
    const auto parsed = parse_json(read_file(k_configs / "weir.schema.json"));
    if (!parsed) {
      ADD_FAILURE() << parsed.error().message;
      return;
    }
    document_ = *parsed;
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(document_), schema_);
  }

  // The first complaint, or "".
  std::string complaint(const std::string& yaml) {
    const auto root = parse_yaml(yaml, "weir.yaml");
    if (!root) return root.error().message;
    const Json json = to_json(*root);
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(json), &results)) {
      return "";
    }
    valijson::ValidationResults::Error error;
    std::string all;
    while (results.popError(error))
      all += text::join(error.context) + ": " + error.description + "\n";
    return all.empty() ? "invalid" : all;
  }

  Json document_;
  valijson::Schema schema_;
};

TEST(Configs, LoadAndMakeCells) {
  const auto files = config_files();
  ASSERT_GE(files.size(), 2U);
  for (const auto& path : files) {
    Known known = known_here_and_now();
    for (const char* probe : {"cuda", "instructions", "instrument"})
      known.probes.emplace_back(probe);
    known.adapters.emplace_back("weir-observed");
    known.twins = described_devices();
    const auto settings = parse_settings(read_file(path), path.string(), known);
    ASSERT_TRUE(settings) << settings.error().message;
    const auto matrix = expand(*settings);
    ASSERT_TRUE(matrix) << matrix.error().message;
    EXPECT_THAT(matrix->notes, testing::IsEmpty()) << path;
  }
}

// A whole weir.yaml among a page's examples.
std::string printed_in(const std::string& page) {
  const std::string all = read_file(std::filesystem::path(WEIR_SOURCE_DIR) / "docs" / page);
  const std::size_t from = all.find("\nversion: 1\n");
  return from == std::string::npos ? "" : all.substr(from + 1, all.find("\n```", from) - from);
}
constexpr const char* k_pages[] = {"how-to/agave.md", "how-to/instrument.md"};

TEST(Configs, LoadAsThePagesPrintThem) {
  Known known = known_here_and_now();
  known.probes.emplace_back("instrument");
  known.adapters.emplace_back("agave");
  for (const char* page : k_pages) {
    const auto settings = parse_settings(printed_in(page), page, known);
    ASSERT_TRUE(settings) << settings.error().message;
    const auto matrix = expand(*settings);
    ASSERT_TRUE(matrix) << matrix.error().message;
    EXPECT_FALSE(matrix->cells.empty()) << page;
    EXPECT_THAT(matrix->notes, testing::IsEmpty()) << page;
  }
}

TEST(Configs, HoldTheReferenceMatrixOfEightCells) {
  const auto settings = parse_settings(read_file(k_configs / "llama.cpp.yaml"), "llama.cpp.yaml",
                                       known_here_and_now());
  ASSERT_TRUE(settings) << settings.error().message;
  const auto matrix = expand(*settings);
  ASSERT_TRUE(matrix) << matrix.error().message;
  std::vector<std::string> names;
  for (const Cell& cell : matrix->cells) names.push_back(cell.key.str());
  EXPECT_THAT(names,
              testing::ElementsAre(
                  "llama.cpp/tiny-llama/cpu/prefill", "llama.cpp/tiny-llama/cpu/decode",
                  "llama.cpp/tiny-llama/vulkan/prefill", "llama.cpp/tiny-llama/vulkan/decode",
                  "llama.cpp/tiny-gemma3/cpu/prefill", "llama.cpp/tiny-gemma3/cpu/decode",
                  "llama.cpp/tiny-gemma3/vulkan/prefill", "llama.cpp/tiny-gemma3/vulkan/decode"));
}

TEST_F(SchemaTest, AgreesWithEveryConfigThatWeirReads) {
  for (const auto& path : config_files()) EXPECT_EQ(complaint(read_file(path)), "") << path;
  for (const char* page : k_pages) EXPECT_EQ(complaint(printed_in(page)), "") << page;
  EXPECT_EQ(complaint(starter_config({})), "");
  EXPECT_EQ(complaint(starter_config({{{"llama.cpp", "llama-bench", "llama-bench"}}, {}, true})),
            "");
  for (const Preset& preset : presets()) {
    EXPECT_EQ(complaint(*expanded_yaml(
                  fmt::format("version: 1\nengines: {{e: {{preset: {}}}}}\n", preset.name), "w")),
              "");
  }
  EXPECT_EQ(complaint(whole("limits:\n- {metrics: '*_per_token', exact: false}\n"
                            "- {metrics: load_seconds, max_increase: 5%, until: 2027-01-01}\n"
                            "gate: {budget: 10m}\nvariants: {default: {}}\n")),
            "");
}

TEST_F(SchemaTest, RefusesWhatWeirRefuses) {
  const std::string cases[] = {
      whole("limts: []\n"),
      whole("limits: [{metrics: load_seconds, max_dorp: 5%}]\n"),
      whole("limits: [{mode: warn}]\n"),
      whole("gate: {runs: 0}\n"),
      whole("gate: {budget: soon}\n"),
      whole("variants: {'a/b': {}}\n"),
      whole("variants: {a: {args: --x}}\n"),
      with_head("prompts: {p: {tokens: many}}\n"),
      with_head("prompts: {p: {tokens: 8, concurrency: 0}}\n"),
      with_head("prompts: {p: {tokens: 8, rate: 0}}\n"),
      "version: 2\n",
  };
  for (const std::string& yaml : cases) {
    EXPECT_NE(message_of(yaml), "") << yaml;
    EXPECT_NE(complaint(yaml), "") << yaml;
  }
}

}  // namespace configs_test
}  // namespace weir::config
