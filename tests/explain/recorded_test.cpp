// Tests if the cause is the first finding, on recorded profiles. Each shows an unmodified llama.cpp
// with one of its own switches changed (recorded/README.md).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/explain/causes.hpp"

#include "tests/explain/build.hpp"
#include "tests/explain/judged.hpp"
#include "tests/explain/scored.hpp"

namespace weir::explain {
namespace recorded_test {

using test::Planted;
using test::Score;

Json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  auto json = parse_json(text.str());
  EXPECT_TRUE(json) << path << ": " << (json ? "" : json.error().message);
  return json ? *json : Json::object();
}

std::vector<Json> recordings(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Json> list;
  for (const auto& path : paths) list.push_back(read_json(path));
  return list;
}

ModelFacts read_model(const Json& recording) {
  ModelFacts model = test::plain_model(recording.at("layers").get<std::int64_t>());
  if (recording.contains("experts_used")) model.experts_used = recording.at("experts_used");
  return model;
}

profile::Profile read_profile(const Json& json) {
  auto profile = read_fields<profile::Profile>(json, "profile");
  EXPECT_TRUE(profile) << (profile ? "" : profile.error().message);
  return profile ? *profile : profile::Profile{};
}

// Returns the profile of a change. Its file may hold only what differs from its base.
profile::Profile changed_profile(const Json& base, const Json& change) {
  if (change.contains("profile")) return read_profile(change.at("profile"));
  const Json& differs = change.at("differs");
  Json json = base;
  json.update(differs);
  std::map<std::string, Json> metrics;
  for (const Json* side : {&base, &differs}) {
    for (const Json& metric : side->value("metrics", Json::array()))
      metrics[metric.at("metric")] = metric;
  }
  json["metrics"] = Json::array();
  for (const auto& [name, entry] : metrics) {
    if (!entry.contains("gone")) json["metrics"].push_back(entry);
  }
  return read_profile(json);
}

// Keeps what only a Vulkan layer sees: no ops, no counts of ggml's.
profile::Profile without_ggml(profile::Profile profile) {
  std::erase_if(profile.metrics, [](const auto& entry) { return entry.second.source == "ggml"; });
  profile.placement = {profile::Placement::State::seen, "", {}};
  return profile;
}

// Each list holds kinds separated by '|'.
std::string undone(const std::string& kinds) {
  static const std::map<std::string, std::string> k_opposite = {
      {"fusion_lost", "fusion_gained"},
      {"fusion_gained", "fusion_lost"},
      {"batching_lost", "batching_gained"},
      {"graphs_lost", "graphs_gained"},
      {"op_added", "op_removed"},
      {"op_removed", "op_added"},
      {"sync_added", "sync_removed"},
      {"work_moved_to_cpu", "work_moved_to_gpu"},
      {"work_moved_to_gpu", "work_moved_to_cpu"},
      {"sync_removed", "sync_added"},
      {"copies_removed", "extra_copies"},
      {"sync_per_layer", "sync_removed"},
      {"extra_copies", "copies_removed"}};
  std::vector<std::string> opposites;
  for (const std::string& kind : text::split(kinds, '|')) {
    const auto match = k_opposite.find(kind);
    opposites.push_back(match == k_opposite.end() ? kind : match->second);
  }
  return text::join(opposites, "|");
}

struct Scores {
  Score done, undone, blind, blind_undone;
};

Scores score(const std::vector<Json>& list) {
  Scores scores;
  for (const Json& recording : list) {
    const ModelFacts facts = read_model(recording);
    // A program without a model file has no layers to compare with.
    const ModelFacts* model = facts.layers > 0 ? &facts : nullptr;
    const profile::Profile base = read_profile(recording.at("base"));
    for (const Json& change : recording.at("changes")) {
      const profile::Profile changed = changed_profile(recording.at("base"), change);
      const std::string want = change.at("want").is_null() ? "" : change.at("want");
      const std::string name = recording.at("model").get<std::string>() + " " +
                               recording.at("prompt").get<std::string>() + " on " +
                               recording.at("device").get<std::string>() + ": " +
                               change.at("switch").get<std::string>();
      const Options options{default_bands(), {}};
      scores.done.add({name, want, explain(make_evidence(base, changed), model, options)});
      scores.undone.add(
          {name + ", undone", undone(want), explain(make_evidence(changed, base), model, options)});
      scores.blind.add(
          {name + ", Vulkan alone", want,
           explain(make_evidence(without_ggml(base), without_ggml(changed)), nullptr, options)});
      scores.blind_undone.add(
          {name + ", Vulkan alone, undone", undone(want),
           explain(make_evidence(without_ggml(changed), without_ggml(base)), nullptr, options)});
    }
  }
  return scores;
}

void show(const char* what, const Score& score) {
  std::cout << what << ": " << score.right << " of " << score.cases << " first, " << score.in_three
            << " among the first three\n"
            << score.wrong;
}

TEST(RecordedChanges, NameTheCauseFirst) {
  const Scores scores = score(recordings(WEIR_SOURCE_DIR "/tests/explain/recorded"));
  show("changed", scores.done);
  show("undone", scores.undone);
  show("seen by a Vulkan layer alone", scores.blind);
  show("seen by a Vulkan layer alone, undone", scores.blind_undone);
  EXPECT_GE(scores.done.cases, 30U);
  EXPECT_EQ(scores.done.share(), 1.0) << scores.done.wrong;
  EXPECT_EQ(scores.undone.share(), 1.0) << scores.undone.wrong;
  EXPECT_EQ(scores.blind.share(), 1.0) << scores.blind.wrong;
  EXPECT_GE(scores.blind_undone.share(), 0.9) << scores.blind_undone.wrong;
}

// Other engines on Vulkan than llama.cpp (docs/evidence/explain.md). Rules may be written with the
// pairs in development, never with those in held_out.
TEST(RecordedChanges, NameTheCauseFirstOfOtherEngines) {
  const std::string others = WEIR_SOURCE_DIR "/tests/explain/others";
  const std::vector<Json> development = recordings(others + "/development");
  const Scores scores = score(development);
  show("development", scores.done);
  show("development, undone", scores.undone);
  show("development, seen by a Vulkan layer alone", scores.blind);
  EXPECT_EQ(scores.done.cases, 278U);
  EXPECT_GE(scores.done.right, 266U)
      << "86 of 88, 40 of 44, 34 of 37, 32 of 32, 39 of 40 and 35 of 37";
  EXPECT_GE(scores.undone.right, 262U);
  const Scores held_out = score(recordings(others + "/held_out"));
  show("held out", held_out.done);
  EXPECT_EQ(held_out.done.cases, 39U);
  EXPECT_GE(held_out.done.right, 37U);
  const auto find_changes = [](const profile::Profile& before, const profile::Profile& after) {
    return explain(make_evidence(before, after), nullptr, {default_bands(), {}}).findings;
  };
  for (const Json& json : development) {
    const profile::Profile base = read_profile(json.at("base"));
    for (const Json& change : json.at("changes")) {
      const profile::Profile changed = changed_profile(json.at("base"), change);
      if (change.at("switch") == "useFlashAttn: true") {
        EXPECT_EQ(find_changes(changed, base)
                      .front()
                      .headline.find("Fusion lost: flash_attn ran as one kernel 34 times a token"),
                  0U)
            << "its variants, 14 + 14 + 4 + 2, before contig_cpy's 22";
      }
      if (change.at("switch") != "n_gpu_layers: 2") continue;
      for (const Finding& finding : find_changes(base, changed)) {
        EXPECT_NE(finding.kind, "fusion_lost") << finding.text();
      }
    }
  }
}

// Turns a recording into a run of one cell, so that a switch does not rename it. It has no list of
// ops that may run on the CPU; we treat the list as complete.
profile::Profile judgeable(profile::Profile profile) {
  profile.cell = {"llama.cpp", "default", "recorded", "gpu", "work"};
  profile.placement.state = profile::Placement::State::seen;
  profile.placement.reason.clear();
  return profile;
}

// Judges each pair as a gate of one cell, by weir's default limits.
TEST(RecordedChanges, ClaimWhatFailedOrLeaveItUnexplained) {
  std::size_t failed = 0, first = 0;
  std::string others;
  for (const Json& recording : recordings(WEIR_SOURCE_DIR "/tests/explain/recorded")) {
    const profile::Profile base = judgeable(read_profile(recording.at("base")));
    for (const Json& change : recording.at("changes")) {
      const profile::Profile changed = judgeable(changed_profile(recording.at("base"), change));
      verdict::GateVerdict gate;
      gate.cells = {verdict::judge_cell(changed, {baseline::choose_run(changed, base)}, {}, {})};
      verdict::CellVerdict& cell = gate.cells.front();
      const std::string name = change.at("switch");
      cell.findings = explain(make_evidence(cell), nullptr, {default_bands(), {}}).findings;
      find_causes(gate);
      if (cell.verdict != verdict::Outcome::fail) {
        EXPECT_TRUE(gate.causes.empty() && gate.unexplained.empty()) << name;
        continue;
      }
      ++failed;
      EXPECT_FALSE(gate.causes.empty() && gate.unexplained.empty()) << name;
      const std::vector<std::string> lost = test::lost(gate);
      EXPECT_TRUE(lost.empty()) << name << ": " << text::join(lost);
      for (const verdict::Unexplained& rest : gate.unexplained) {
        others += name + ": " + rest.what + "\n";
      }
      if (!gate.causes.empty() && gate.causes.front().kind == cell.findings.front().kind) ++first;
    }
  }
  std::cout << first << " of " << failed << " failed cells have their first finding as cause\n"
            << "unexplained:\n"
            << others;
  EXPECT_EQ(failed, 31U) << "of 36: five changed nothing that a limit holds";
  EXPECT_EQ(first, failed);
  EXPECT_EQ(others, "");
}

// Reads recordings outside the repository: WEIR_EXPLAIN_RECORDED=FOLDER.
TEST(RecordedChanges, NameTheCauseFirstInAnotherSet) {
  const char* folder = std::getenv("WEIR_EXPLAIN_RECORDED");
  if (folder == nullptr) GTEST_SKIP() << "WEIR_EXPLAIN_RECORDED names no folder";
  const Scores scores = score(recordings(folder));
  show("changed", scores.done);
  show("undone", scores.undone);
  show("seen by a Vulkan layer alone", scores.blind);
  show("seen by a Vulkan layer alone, undone", scores.blind_undone);
  EXPECT_GE(scores.done.share(), 0.9);
}

}  // namespace recorded_test
}  // namespace weir::explain
