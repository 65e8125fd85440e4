// Tests weir's output against the published JSON Schema, with an independent validator.
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#pragma GCC diagnostic pop

#include "gate/base/json.hpp"

#include "tests/report/paired_fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace schema_test {

Json schema_json() {
  return Json::parse(support::read_file(std::filesystem::path(WEIR_SOURCE_DIR) /
                                        "gate/report/schemas/weir.verdict.schema.json"));
}

// Returns the validator's complaint about a document; "" if there is none.
std::string complaint(const Json& document) {
  static const valijson::Schema* const k_schema = [] {
    auto* schema = new valijson::Schema;
    const Json text = schema_json();
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), *schema);
    return schema;
  }();
  valijson::ValidationResults results;
  valijson::Validator validator;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  if (validator.validate(*k_schema, target, &results)) return "";
  valijson::ValidationResults::Error error;
  std::string out = "refused";
  while (results.popError(error)) {
    out += "\n";
    for (const std::string& part : error.context) out += part;
    out += " " + error.description;
  }
  return out;
}

TEST(Schema, TakesEveryVerdictThatWeirWrites) {
  std::vector<fixtures::Case> cases = fixtures::all();
  for (fixtures::Case& fixture : fixtures::all_beside()) cases.push_back(std::move(fixture));
  for (const auto& [name, gate] : cases) {
    // Reads it as others do: written out (invalid UTF-8 replaced) and parsed again.
    const Json written = Json::parse(dump_json(write_fields(gate)));
    EXPECT_EQ(complaint(written), "") << name;
  }
}

TEST(Schema, IsThatOfTheDocumentThatIsWrittenAJudgementAtATime) {
  std::vector<fixtures::Case> cases = fixtures::all();
  for (fixtures::Case& fixture : fixtures::all_beside()) cases.push_back(std::move(fixture));
  for (auto& [name, gate] : cases) {
    const std::string whole = dump_json(write_fields(gate), 1) + "\n";
    EXPECT_EQ(verdict::to_text(gate), whole) << name;
    EXPECT_EQ(dump_json(write_fields(gate), 1) + "\n", whole) << name << ": is as before";
  }
}

TEST(Schema, TakesATwinHeldAgainstItsDevice) {
  auto gate = fixtures::green();
  verdict::TwinCheck check;
  check.twin = "amd-rx-7900-xtx";
  check.device = "AMD Radeon RX 7900 XTX (RADV NAVI31)";
  check.against = fixtures::key("tiny-llama", "vulkan", "decode");
  check.about = {"driver version 0x1 described, 0x2 here"};
  check.compared = 24;
  check.differences = {{"dispatches_per_token", Rational(65), Rational::parse("171/2")},
                       {"copies_per_token", {}, Rational(2)}};
  check.kernels = {{"rms_norm", Rational(12), {}}};
  gate.cells.front().twin_check = check;
  const Json written = Json::parse(dump_json(write_fields(gate)));
  EXPECT_EQ(complaint(written), "");
}

TEST(Schema, TakesEveryKindOfLimit) {
  auto gate = fixtures::green();
  verdict::Limit& limit = gate.cells[0].judgements[0].limit;
  limit.max_increase = verdict::MaxChange{{3, false}, {1, false}};
  limit.max_decrease = verdict::MaxChange{{0.1, true}, {0.05, true}};
  limit.max = verdict::Amount{3, false};
  limit.min = verdict::Amount{1, false};
  limit.mode = verdict::Mode::report;
  limit.reason = "new, being observed";
  EXPECT_EQ(complaint(write_fields(gate)), "");
}

TEST(Schema, DescribesEveryKeyThatWeirWritesAndNoOther) {
  const Json schema = schema_json();
  auto red = fixtures::red();
  red.options = {{"--out", "perf"}};
  red.comment = verdict::Comment::never;
  red.causes = {{"sync_added", "The CPU waits for the GPU.", {}, {}, {}, 0, "", ""}};
  red.unexplained = {{"kernels", {}}};
  red.runs.emplace();
  red.cells[3].requests = 1;
  red.cells[3].latencies = {0, 20'000, 100'000};
  red.cells[3].batches = {{1, 4, 12}};
  red.cells[3].ran_elsewhere = true;
  red.cells[3].not_allowed = {"SWIGLU"};
  verdict::Judgement& code = red.cells[3].put(verdict::k_kernel_code);
  code.changed = {{"rms_norm", std::nullopt, Rational(1)}};
  code.code.emplace_back().kernel = "rms_norm";
  code.compiler = "radv-navi31, Mesa 25.0.7";
  const Json gate = write_fields(red);
  EXPECT_EQ(complaint(gate), "");
  const auto keys = [](const Json& object) {
    std::vector<std::string> names;
    for (const auto& item : object.items()) names.push_back(item.key());
    return names;
  };
  const Json& definitions = schema["definitions"];
  EXPECT_EQ(keys(schema["properties"]), keys(gate));
  EXPECT_EQ(keys(definitions["cell"]["properties"]), keys(gate["cells"][3]));
  EXPECT_EQ(keys(definitions["metric"]["properties"]), keys(gate["cells"][3]["judgements"][0]));
  const Json& rules = gate["cells"][3]["judgements"];
  const auto rule = std::ranges::find(rules, verdict::k_kernel_code,
                                      [](const Json& judgement) { return judgement["subject"]; });
  ASSERT_NE(rule, rules.end());
  EXPECT_EQ(keys(definitions["rule"]["properties"]), keys(*rule));
  EXPECT_EQ(keys(definitions["max_change"]["properties"]),
            keys(gate["cells"][3]["judgements"][5]["limit"]["max_drop"]));
}

TEST(Schema, RefusesWhatIsBroken) {
  struct Row {
    const char* what;
    std::function<void(Json&)> spoil;
  };
  const std::vector<Row> rows = {
      {"another schema", [](Json& json) { json["schema"] = "weir.verdict/2"; }},
      {"no verdict", [](Json& json) { json.erase("verdict"); }},
      {"unknown verdict", [](Json& json) { json["verdict"] = "green"; }},
      {"unknown exit code", [](Json& json) { json["exit_code"] = 5; }},
      {"cells that are no list", [](Json& json) { json["cells"] = Json::object(); }},
      {"a total of no verdict", [](Json& json) { json["totals"]["fine"] = 1; }},
      {"a cell without its name", [](Json& json) { json["cells"][3].erase("cell"); }},
      {"a metric without a unit",
       [](Json& json) { json["cells"][3]["judgements"][0].erase("unit"); }},
      {"a number as text", [](Json& json) { json["cells"][3]["judgements"][0]["current"] = "77"; }},
      {"exact: false",
       [](Json& json) { json["cells"][3]["judgements"][0]["limit"]["exact"] = false; }},
      {"an empty limit",
       [](Json& json) { json["cells"][3]["judgements"][0]["limit"] = Json::object(); }},
      {"a kernel count of 1.5",
       [](Json& json) { json["cells"][3]["judgements"][7]["changed"][0]["current"] = 1.5; }},
      {"a fraction that is none",
       [](Json& json) { json["cells"][3]["judgements"][7]["changed"][0]["current"] = "1/x"; }},
  };
  for (const auto& [what, spoil] : rows) {
    Json json = write_fields(fixtures::red());
    ASSERT_EQ(complaint(json), "");
    spoil(json);
    EXPECT_NE(complaint(json), "") << what;
  }
}

}  // namespace schema_test
}  // namespace weir::report
