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
    const Json json = node_to_json(*root);
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
    Supported context = test_context();
    for (const char* probe : {"cuda", "hip", "instructions", "instrument"})
      context.probes.emplace_back(probe);
    context.adapters.emplace_back("weir-observed");
    context.twins = described_devices();
    const auto settings = parse_settings(read_file(path), path.string(), context);
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
  Supported context = test_context();
  context.probes.emplace_back("instrument");
  context.adapters.emplace_back("agave");
  for (const char* page : k_pages) {
    const auto settings = parse_settings(printed_in(page), page, context);
    ASSERT_TRUE(settings) << settings.error().message;
    const auto matrix = expand(*settings);
    ASSERT_TRUE(matrix) << matrix.error().message;
    EXPECT_FALSE(matrix->cells.empty()) << page;
    EXPECT_THAT(matrix->notes, testing::IsEmpty()) << page;
  }
}

TEST(Configs, HoldTheReferenceMatrixOfEightCells) {
  const auto settings =
      parse_settings(read_file(k_configs / "llama.cpp.yaml"), "llama.cpp.yaml", test_context());
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
  EXPECT_EQ(complaint(config_with("limits:\n- {metrics: '*_per_token', exact: false}\n"
                                  "- {metrics: load_seconds, max_increase: 5%, until: 2027-01-01}\n"
                                  "gate: {budget: 10m}\nvariants: {default: {}}\n")),
            "");
}

TEST_F(SchemaTest, RefusesWhatWeirRefuses) {
  const std::string cases[] = {
      config_with("limts: []\n"),
      config_with("limits: [{metrics: load_seconds, max_dorp: 5%}]\n"),
      config_with("limits: [{mode: warn}]\n"),
      config_with("gate: {runs: 0}\n"),
      config_with("gate: {budget: soon}\n"),
      config_with("variants: {'a/b': {}}\n"),
      config_with("variants: {a: {args: --x}}\n"),
      with_head("prompts: {p: {tokens: many}}\n"),
      with_head("prompts: {p: {tokens: 8, concurrency: 0}}\n"),
      with_head("prompts: {p: {tokens: 8, rate: 0}}\n"),
      "version: 2\n",
  };
  for (const std::string& yaml : cases) {
    EXPECT_NE(config_error(yaml), "") << yaml;
    EXPECT_NE(complaint(yaml), "") << yaml;
  }
}

// Each key stands in one of these with nothing that contradicts it.
const std::string k_around =
    "models: {tiny: {path: tiny.gguf, engines: {llama.cpp: {}}}}\n"
    "variants: {default: {engines: {llama.cpp: {}}}}\n"
    "matrix: {include: [{engine: '*'}], exclude: [{prompt: decode}]}\n"
    "explain: {rules: [{when: {op: ROPE}, say: x}], bands: {syncs_per_token: {}}}\ngate: {}\n";
const std::string k_process = "{command: [bench, -m, '{model}'], output: llama-bench, ";
const std::string k_generic = "{command: [run], output: generic, ";
struct Around {
  std::string engine;
  const char* backend = "{device: vulkan, engines: {llama.cpp: {}}}";
  const char* prompt = "{tokens: 8, engines: {llama.cpp: {}}}";
  const char* limit = "{mode: report, match: {backend: vulkan}}";
};
const Around k_arounds[] = {
    {k_process + "cpu_ops_allowed: {ROPE: {why: small, match: {prompt: decode}}}}"},
    {k_process + "container: {runtime: docker, image: x}}"},
    {k_process + "probes: [instructions, python]}"},
    {k_process + "timeout: 2m}", "{device: cuda, twin: amd-rx-7900-xtx}", "{tokens: 8}",
     "{max_drop: 5%}"},
    {"{preset: llama-bench}"},
    {k_generic +
     "metrics: {my: {regex: (a), unit: ms, better: lower}}, facts: {model: {regex: (a)}}}"},
    {k_generic + "metrics: {my: {pointer: /a, unit: ms, better: lower}}, "
                 "facts: {model: {pointer: /a}}}"},
    {"{kind: server, api: llama, command: [serve, '{port}'], ready: {url: /up}, slo: {ttft: 1s}, "
     "logits: {max_kl: 1}}"},
    {"{kind: server, api: llama, command: [serve, '{port}'], ready: {line: up}, slo: {ttft: 1s}}",
     "{device: vulkan}", "{tokens: 8, capacity: {low: 1, high: 99}}"},
    {"{kind: server, api: llama, command: [serve, '{port}']}", "{device: vulkan}",
     "{workload: trace.jsonl}"},
};

// Returns the node at path `owner` in `root`; null if a part of the path is missing.
Node* mapping_at(Node& root, const std::string& owner) {
  Node* at = &root;
  for (const std::string& part : text::split(owner, '.')) {
    const bool is_list = part.ends_with("[]");
    if (part == "*") {
      at = at->entries.empty() ? nullptr : &at->entries.front().value;
    } else if (!part.empty()) {
      at = at->find(is_list ? part.substr(0, part.size() - 2) : part);
    }
    if (at != nullptr && is_list) at = at->items.empty() ? nullptr : &at->items.front();
    if (at == nullptr) return nullptr;
  }
  return at->kind == Node::Kind::map ? at : nullptr;
}

// Each text with `key: value` in it, where its mapping is there.
std::vector<std::string> texts_with(const KeyInfo& key, const std::string& value) {
  std::vector<std::string> texts;
  for (const Around& around : k_arounds) {
    Node root = parse_yaml(fmt::format("version: 1\nengines: {{llama.cpp: {}}}\n{}"
                                       "backends: {{vulkan: {}}}\n"
                                       "prompts: {{decode: {}, hello: {{text: a, tokens: 8}}}}\n"
                                       "limits: [{}]\n",
                                       around.engine, k_around, around.backend, around.prompt,
                                       around.limit),
                           "around")
                    .value();
    Node* mapping = mapping_at(root, key.owner);
    if (mapping == nullptr) continue;
    std::erase_if(mapping->entries, [&](const Entry& entry) { return entry.key == key.name; });
    mapping->entries.push_back({key.name, {}, parse_yaml(value, "a value").value()});
    texts.push_back(to_yaml(root));
  }
  return texts;
}

std::string parser_complaint(const std::string& yaml) {
  Supported context = test_context();
  for (const char* probe : {"instructions", "cuda", "hip", "metal", "opencl", "python"}) {
    context.probes.emplace_back(probe);
  }
  const auto settings = parse_settings(yaml, "weir.yaml", context);
  return settings ? "" : settings.error().message;
}

TEST(Keys, AreAllExplainedByASentenceAndAnExample) {
  const auto keys = list_keys(test_context());
  EXPECT_GT(keys.size(), 150U);
  for (const KeyInfo& key : keys) {
    EXPECT_TRUE(key.meaning.ends_with('.')) << key.path();
    EXPECT_NE(key.example, "") << key.path();
    EXPECT_NE(key.form.type, "") << key.path();
  }
  EXPECT_TRUE(std::ranges::any_of(
      keys, [](const KeyInfo& key) { return key.path() == "engines.*.share_start"; }));
}

TEST_F(SchemaTest, TakesEachKeyWithItsExampleAndItsDefaultAsWeirDoes) {
  for (const KeyInfo& key : list_keys(test_context())) {
    std::vector<std::string> values{key.example};
    if (key.is_value) values.push_back(key.shown_default);
    for (const std::string& value : values) {
      std::string refused = "nothing has its mapping";
      bool taken = false;
      for (const std::string& yaml : texts_with(key, value)) {
        const std::string complained = parser_complaint(yaml);
        if (complained.empty()) {
          EXPECT_EQ(complaint(yaml), "") << key.path() << ": " << value << "\n" << yaml;
        }
        taken = taken || complained.empty();
        refused = complained;
      }
      EXPECT_TRUE(taken) << key.path() << ": " << value << " is refused: " << refused;
    }
  }
}

TEST_F(SchemaTest, RefusesAnUnknownKeyInEachMappingAsWeirDoes) {
  for (KeyInfo key : list_keys(test_context())) {
    key.name = "no_such_key";
    for (const std::string& yaml : texts_with(key, "1")) {
      EXPECT_THAT(parser_complaint(yaml), HasSubstr("no_such_key")) << yaml;
      EXPECT_NE(complaint(yaml), "") << yaml;
    }
  }
}

}  // namespace configs_test
}  // namespace weir::config
