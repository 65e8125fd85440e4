// A verdict against a base program, with private names hidden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/flow/redacted.hpp"

#include "tests/config/parse_text.hpp"

namespace weir::flow {
namespace veiled_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

config::Redactor redactor() {
  auto settings = config::parse_text(
      "version: 1\n"
      "engines:\n"
      "  falcon: {command: [./run-falcon, '{model}', '{tokens}'], output: llama-bench,\n"
      "           private: true}\n"
      "models: {acme-13b: {path: weights/acme-secret.gguf, private: true}}\n"
      "backends: {cpu: {}}\n"
      "prompts: {decode: {tokens: 8}}\n");
  EXPECT_TRUE(settings) << settings.error().message;
  return config::Redactor(*settings, "/home/us");
}

TEST(Redacted, ABaseCommandWithAPrivateNameIsTakenOutWhole) {
  verdict::GateVerdict gate;
  gate.base_origin = "the command old/run-falcon -m weights/acme-secret.gguf";
  gate.against = verdict::Against{"", {"old/run-falcon", "-m", "weights/acme-secret.gguf"}};
  const auto shown = redacted(gate, redactor());
  EXPECT_THAT(shown.base_origin, Not(HasSubstr("falcon")));
  EXPECT_THAT(shown.base_origin, Not(HasSubstr("secret")));
  ASSERT_TRUE(shown.against) << "that there is a base program is no secret";
  EXPECT_THAT(shown.against->command, IsEmpty());
  EXPECT_EQ(dump_json(write_fields(shown)).find("secret"), std::string::npos);
}

TEST(Redacted, ASubjectThatNamesAPrivateModelHasItsAlias) {
  verdict::GateVerdict gate;
  gate.base_origin = "merge-base of HEAD and acme-13b, 1a2b3c4 \"Tune for acme-13b\"";
  gate.against = verdict::Against{"acme-13b", {}};
  gate.options = {{"--out", "runs/acme-13b"}, {"--baselines", "perf"}};
  const auto shown = redacted(gate, redactor());
  EXPECT_EQ(shown.options.at("--out"), "");
  EXPECT_EQ(shown.options.at("--baselines"), "perf");
  EXPECT_THAT(shown.base_origin, Not(HasSubstr("acme")));
  EXPECT_EQ(shown.against->spec, "");
}

TEST(Redacted, ComparedRunsWithAPrivateNameAreTakenOut) {
  verdict::GateVerdict gate;
  for (const char* compared : {"out/1", "out/acme-13b"}) {
    gate.runs = {"out/2", compared};
    const auto shown = redacted(gate, redactor());
    ASSERT_TRUE(shown.runs) << "it is a comparison still";
    EXPECT_EQ(shown.runs->size(), std::string(compared) == "out/1" ? 2U : 0U);
  }
}

TEST(Redacted, CausesNameNoPrivateCells) {
  verdict::GateVerdict gate;
  const std::string cell = "llama.cpp/acme-13b/cpu/decode";
  gate.cells.emplace_back().cell = *profile::CellKey::parse(cell);
  gate.causes = {{"user_rule", "acme-13b is slow on falcon", {"acme-13b"}, {cell}, {}, 0, "", ""}};
  gate.unexplained = {{"kernels", {cell}}};
  const auto shown = redacted(gate, redactor());
  EXPECT_THAT(dump_json(write_fields(shown)), Not(HasSubstr("acme")));
  EXPECT_THAT(shown.causes[0].cells, ElementsAre(shown.cells[0].cell.str()));
  EXPECT_THAT(shown.unexplained[0].cells, ElementsAre(shown.cells[0].cell.str()));
}

// An engine names its device as it likes.
TEST(Redacted, DevicesKernelsAndOpsNameNothingPrivate) {
  verdict::GateVerdict gate;
  verdict::CellVerdict& cell = gate.cells.emplace_back();
  cell.cell = *profile::CellKey::parse("llama.cpp/tiny/metal/decode");
  cell.device_class = "metal-acme-13b-1";
  cell.device_name = "GPU of acme-13b";
  cell.put(verdict::k_kernels).changed = {{"acme-13b", {}, Rational(1)}};
  cell.put(verdict::k_placement).changed = {{"ROPE on acme-13b", {}, Rational(1)}};
  cell.put(verdict::k_kernel_code).code.emplace_back().kernel = "mul acme-13b";
  EXPECT_THAT(dump_json(write_fields(redacted(gate, redactor()))), Not(HasSubstr("acme")));
  profile::Profile profile;
  profile.cell = cell.cell;
  profile.provenance.device_class = "metal-acme-13b-1";
  profile.provenance.device_name = "GPU of acme-13b";
  profile.kernels.emplace().counts = {{"acme-13b", 1}};
  profile.graph_ops = profile.kernels;
  EXPECT_THAT(dump_json(write_fields(redacted(profile, redactor()))), Not(HasSubstr("acme")));
}

TEST(Redacted, ABaseThatNamesNothingPrivateStays) {
  verdict::GateVerdict gate;
  gate.against = verdict::Against{"", {"./old", "-m", "{model}"}};
  EXPECT_THAT(redacted(gate, redactor()).against->command, ElementsAre("./old", "-m", "{model}"));
}

TEST(Redacted, AnExplanationNamesNothingPrivate) {
  explain::Explanation why;
  why.cell = "falcon/acme-13b/cpu/decode";
  verdict::Finding rule;
  rule.headline = "acme-13b is slow on falcon: see the runbook";
  rule.lines = {"weights/acme-secret.gguf has 8 layers"};
  why.findings = {rule};
  why.warnings = {"acme-13b ends in the middle"};
  EXPECT_NE(dump_json(write_fields(why)).find("acme"), std::string::npos);
  const std::string shown = dump_json(write_fields(redacted(why, redactor())));
  EXPECT_THAT(shown, Not(HasSubstr("acme")));
  EXPECT_THAT(shown, Not(HasSubstr("falcon")));
  EXPECT_THAT(shown, HasSubstr("see the runbook"));
}

}  // namespace veiled_test
}  // namespace weir::flow
