// Tests the journal of a run: what it records, and how torn or changed files are read.
#include "gate/run/journal.hpp"

#include <cstdlib>
#include <random>

#include "gate/base/fields.hpp"

#include "tests/run/scene.hpp"

namespace weir::run {
namespace journal_test {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

RunRecord make_record(const Plan& plan, std::size_t order) {
  const Step& step = plan.steps[order];
  RunRecord record;
  record.cell = plan.cells[step.cell].cell.key.str();
  record.pass = step.pass;
  record.order = step.order;
  record.parameters = step.parameters;
  record.wall_seconds = 1.25;
  record.stderr_tail = "two\nlines \"quoted\" and \xE2\x80\xA6";
  return record;
}

RunHeader versioned_header(const Plan& plan) {
  RunHeader header = make_header(plan);
  header.weir_version = "0.1.0";
  header.config_file = "weir.yaml";
  header.config_text = k_scene_yaml;
  header.machine.cpu_model = "Test CPU";
  header.notes = {"a note"};
  header.extra = {{"commit", "abc"}};
  return header;
}

// Writes a run with its first `records` records and returns its text.
std::string journal_text(Scene& scene, const Plan& plan, std::size_t records) {
  auto journal = Journal::create(scene.files, "/out", versioned_header(plan));
  EXPECT_TRUE(journal.has_value());
  for (std::size_t i = 0; i < records; ++i) {
    EXPECT_TRUE(journal->append(make_record(plan, i)).has_value());
  }
  return *scene.files.read("/out/run.jsonl", 1 << 20);
}

TEST(Journal, HoldsEverythingThatAVerdictIsMadeFrom) {
  const auto scene = make_scene();
  scene->around.devices["vulkan"].absent = "gone";
  const Plan plan = plan_scene(*scene);
  journal_text(*scene, plan, 2);
  const auto run = read_run(scene->files, "/out");
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_FALSE(run->torn);
  const RunHeader& header = run->header;
  EXPECT_EQ(header.config_text, k_scene_yaml);
  EXPECT_EQ(header.steps, plan.steps);
  EXPECT_EQ(header.identity, plan.identity);
  EXPECT_EQ(header.notes, std::vector<std::string>{"a note"});
  EXPECT_EQ(header.extra["commit"], "abc");
  EXPECT_EQ(header.machine.cpu_model, "Test CPU");
  EXPECT_EQ(header.unavailable,
            (std::map<std::string, std::string>{{"bench/tiny/vulkan/decode", "gone"}}));
  ASSERT_EQ(header.cells.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(write_fields(header.cells[i]), write_fields(plan.cells[i].facts));
    EXPECT_EQ(header.cells[i].cpu_ops_allowed, plan.cells[i].facts.cpu_ops_allowed);
    EXPECT_EQ(header.cells[i].cpu_ops_when, plan.cells[i].facts.cpu_ops_when);
  }
  EXPECT_EQ(run->records, (std::vector{make_record(plan, 0), make_record(plan, 1)}));
}

TEST(Journal, KeepsEveryFinishedRecordWhereverTheLastLineIsTorn) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  const std::string full_text = journal_text(*scene, plan, 3);
  const std::size_t last = full_text.rfind('\n', full_text.size() - 2) + 1;
  for (std::size_t size = last; size < full_text.size(); ++size) {
    scene->files.put("/out/run.jsonl", full_text.substr(0, size));
    const auto run = read_run(scene->files, "/out");
    ASSERT_TRUE(run.has_value()) << "torn at " << size << ": " << run.error().message;
    EXPECT_EQ(run->records.size(), 2U) << size;
    EXPECT_EQ(run->torn, size > last) << size;
    EXPECT_EQ(run->whole_bytes, last) << size;

    auto journal = Journal::resume(scene->files, "/out", plan);
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    EXPECT_EQ(journal->earlier().size(), 2U);
    ASSERT_TRUE(journal->append(make_record(plan, 2)).has_value());
    ASSERT_EQ(*scene->files.read("/out/run.jsonl", 1 << 20), full_text) << "torn at " << size;
  }
}

TEST(Journal, ThatIsThereAlreadyNamesTheCommandThatGoesOnWithIt) {
  struct Row {
    Json extra;
    const char* command;
  };
  const Json shard = {{"index", 1},
                      {"plan", "p"},
                      {"cells", {"e/m/b/p"}},
                      {"shards", {Json::array({0}), Json::array()}}};
  for (const Row& row : {
           Row{Json::object(), "weir gate --resume /out "},
           Row{{{"verb", "rm -rf"}}, "weir gate --resume /out "},
           Row{{{"verb", "run"}}, "weir run --resume /out "},
           Row{{{"verb", "run"}, {"shard", shard}}, "weir run --resume /out --shard 1/2 "},
           Row{{{"verb", k_accept_verb}}, "weir baseline accept and"},
       }) {
    const auto scene = make_scene();
    RunHeader header = versioned_header(plan_scene(*scene));
    header.extra = row.extra;
    ASSERT_TRUE(Journal::create(scene->files, "/out", header).has_value());
    const auto again = Journal::create(scene->files, "/out", header);
    ASSERT_FALSE(again.has_value());
    EXPECT_THAT(again.error().message, testing::HasSubstr(row.command));
  }
}

// Half a line that was not cut off, with another worker's line after it.
TEST(Journal, LosesOnlyTheTornLineOfAFullDisk) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  const std::string full_text = journal_text(*scene, plan, 4);
  ASSERT_TRUE(scene->files.remove("/out/run.jsonl").has_value());
  {
    auto journal = Journal::create(scene->files, "/out", versioned_header(plan));
    ASSERT_TRUE(journal->append(make_record(plan, 0)).has_value());
    scene->files.tear_after("/out/run.jsonl", 40);
    EXPECT_EQ(journal->append(make_record(plan, 1)).error().code, Code::io);
    ASSERT_TRUE(journal->append(make_record(plan, 2)).has_value());  // joined to the half line
    ASSERT_TRUE(journal->append(make_record(plan, 3)).has_value());
  }
  const auto run = read_run(scene->files, "/out");
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->records, (std::vector{make_record(plan, 0), make_record(plan, 3)}));
  EXPECT_EQ(run->warnings,
            std::vector<std::string>{
                "the journal's line 3 is torn, as a full disk leaves one: it was skipped"});
  auto journal = Journal::resume(scene->files, "/out", plan);
  ASSERT_TRUE(journal.has_value()) << journal.error().message;
  EXPECT_EQ(journal->earlier().size(), 2U);
  for (const std::size_t again : {1, 2}) {
    ASSERT_TRUE(journal->append(make_record(plan, again)).has_value());
  }
  EXPECT_EQ(read_run(scene->files, "/out")->records.size(), 4U) << "nothing is lost for good";
}

// Steps of pairs and their records. The orders of later steps must not be mistaken for theirs.
TEST(Journal, SkipsTheRecordsOfStepsWhoseDeclarationIsTorn) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  const std::string full_text = journal_text(*scene, plan, 1);
  RunRecord lost = make_record(plan, 0);
  lost.order = static_cast<std::int64_t>(plan.steps.size());
  const std::string line = dump_json(write_fields(lost)) + "\n";
  EXPECT_FALSE(parse_run(full_text + line).has_value()) << "without a torn line that is no journal";
  const auto run = parse_run(full_text + "{\"steps\": [{\"ce\n" + line);
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->records.size(), 1U);
  EXPECT_EQ(run->warnings,
            std::vector<std::string>{
                "the journal's line 3 is torn, as a full disk leaves one: 2 lines were skipped"});
}

TEST(Journal, IsRefusedWhenItsFirstLineIsNotWhole) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  const std::string full_text = journal_text(*scene, plan, 0);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, full_text.size() - 1}) {
    const auto run = parse_run(full_text.substr(0, size));
    ASSERT_FALSE(run.has_value()) << size;
    EXPECT_EQ(run.error().message, "no run: it was ended before its first line was written");
  }
}

TEST(Journal, OfACellThatIsThereTwiceIsRefused) {
  // Each of them would be made of all its records again.
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  RunHeader header = versioned_header(plan);
  header.cells.push_back(header.cells.front());
  const auto run = parse_run(dump_json(to_json(header)) + "\n");
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().message, testing::HasSubstr("has the cell bench/tiny/cpu/decode twice"));
  header.cells.pop_back();
  header.config_file = std::string(5000, 'w');
  const auto long_name = parse_run(dump_json(to_json(header)) + "\n");
  ASSERT_FALSE(long_name.has_value());
  EXPECT_THAT(long_name.error().message, testing::HasSubstr("\"config_file\" that is too long"));
}

TEST(Journal, NamesTheLineThatIsWrong) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  const std::string full_text = journal_text(*scene, plan, 1);
  const std::string header = full_text.substr(0, full_text.find('\n') + 1);
  const auto error_text = [&](const std::string& text) {
    const auto run = parse_run(text);
    EXPECT_FALSE(run.has_value()) << text.substr(header.size());
    return run ? std::string() : run.error().message;
  };
  RunRecord record = make_record(plan, 0);
  const auto line = [&] { return header + dump_json(write_fields(record)) + "\n"; };
  EXPECT_EQ(error_text("{\n"), "line 1: not valid JSON at byte 2 of 1");
  EXPECT_EQ(error_text(header + "{}\n").substr(0, 8), "line 2: ") << "no record";
  record.order = 1000;
  EXPECT_EQ(error_text(line()), "line 2: order 1000 is not in the plan");
  record.order = -1;
  EXPECT_EQ(error_text(line()), "line 2: order -1 is not in the plan");
  record = make_record(plan, 0);
  record.cell = "bench/tiny/cpu/decode";
  EXPECT_EQ(error_text(line()), "line 2: order 0 belongs to another cell, pass or side");
  EXPECT_EQ(error_text("{\"schema\": \"weir.run/9\"}\n"),
            "line 1: schema \"weir.run/9\", not \"weir.run/1\": made by another version of weir");
}

TEST(Journal, ReadsOrRefusesEveryMutatedText) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  const std::string full_text = journal_text(*scene, plan, 3);
  std::mt19937 random(20261120);  // the same inputs every time
  const auto random_below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  const std::string_view pieces[] = {"\n",
                                     "{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     "\"",
                                     ":",
                                     "-1",
                                     "0",
                                     "null",
                                     "true",
                                     "1e99",
                                     "{}",
                                     "[]",
                                     "\\u0000",
                                     "\xff",
                                     "\\",
                                     "9223372036854775808",
                                     "0.5",
                                     "\"\""};
  int read = 0, refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text = full_text;
    for (std::size_t changes = 1 + random_below(4); changes > 0; --changes) {
      const std::size_t at = random_below(text.size());
      const std::string_view piece = pieces[random_below(std::size(pieces))];
      switch (random_below(4)) {
        case 0:
          text[at] = static_cast<char>(random_below(256));
          break;
        case 1:
          text.insert(at, piece);
          break;
        case 2:
          text.replace(at, std::min(text.size() - at, random_below(12)), piece);
          break;
        default:
          text.resize(std::max<std::size_t>(1, at));
      }
    }
    const auto run = parse_run(text);
    if (!run) {
      ++refused;
      EXPECT_FALSE(run.error().message.empty());
      continue;
    }
    ++read;
    ASSERT_LE(run->records.size(), 3U);
    for (const RunRecord& record : run->records) {
      ASSERT_LT(static_cast<std::size_t>(record.order), run->header.steps.size());
    }
  }
  // Both occur: a change within a text is accepted, one in the frame is not.
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

TEST(Journal, GoesOnOnlyWithThePlanItWasBegunWith) {
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  const std::string full_text = journal_text(*scene, plan, 2);
  const auto refused = Journal::resume(scene->files, "/out", plan_scene(*scene, {.runs = 9}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::usage);
  EXPECT_TRUE(refused.error().message.starts_with(
      "/out: this run was begun with other number and order of runs"))
      << refused.error().message;
  EXPECT_EQ(*scene->files.read("/out/run.jsonl", 1 << 20), full_text) << "left as it was";
  EXPECT_FALSE(Journal::create(scene->files, "/out", versioned_header(plan)).has_value())
      << "and not begun anew";
}

TEST(Journal, BelongsToOneWeirAtATime) {
  char pattern[] = "/tmp/weir-journal-XXXXXX";
  const std::string folder = mkdtemp(pattern);
  sys::RealFiles files;
  const auto scene = make_scene();
  const Plan plan = plan_scene(*scene);
  {
    auto first = Journal::create(files, folder, versioned_header(plan));
    ASSERT_TRUE(first.has_value()) << first.error().message;
    ASSERT_TRUE(first->append(make_record(plan, 0)).has_value());
    const auto second = Journal::resume(files, folder, plan);
    ASSERT_FALSE(second.has_value());
    EXPECT_NE(second.error().message.find("another weir is writing it"), std::string::npos);
  }
  const auto after = Journal::resume(files, folder, plan);
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(after->earlier().size(), 1U);
  ASSERT_TRUE(files.remove_tree(folder).has_value());
}

TEST(Runs, AreNamedByTimeAndFoundNewestLast) {
  sys::MemoryFiles files;
  const double now = 1'800'000'000;  // 2027-01-15 08:00:00 UTC
  const auto first = make_run_folder(files, "out", now);
  const auto second = make_run_folder(files, "out", now);
  const auto third = make_run_folder(files, "out", now + 1);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(*first, "out/20270115-080000");
  EXPECT_EQ(*second, "out/20270115-080000-002");
  EXPECT_EQ(*third, "out/20270115-080001");
  EXPECT_TRUE(list_runs(files, "out").empty()) << "no journal in any of them";
  for (const auto& folder : {*third, *first, *second}) files.put(folder + "/run.jsonl", "");
  EXPECT_EQ(list_runs(files, "out"), (std::vector{*first, *second, *third}));
  EXPECT_TRUE(named_before(*second, now + 1));
  EXPECT_FALSE(named_before(*third, now + 1));
  EXPECT_FALSE(named_before("out/2027", now + 1)) << "no name of weir's";
  EXPECT_FALSE(named_before("out/20270115_080000", now + 1));
}

TEST(Runs, TellWhenTheyBeganByTheirFirstLine) {
  sys::MemoryFiles files;
  RunHeader header;
  header.started_at = 1'800'000'000.25;
  for (const std::size_t notes : {std::size_t{1}, std::size_t{300'000}}) {
    header.notes = {std::string(notes, 'x')};
    files.put("out/run/run.jsonl", dump_json(to_json(header)) + "\nno record\n");
    const auto began = read_started_at(files, "out/run");
    ASSERT_TRUE(began) << began.error().message;
    EXPECT_EQ(*began, 1'800'000'000.25);
  }
  files.put("out/run/run.jsonl", "");
  EXPECT_EQ(read_started_at(files, "out/run").error().message,
            "out/run/run.jsonl: no run: it was ended before its first line was written");
}

}  // namespace journal_test
}  // namespace weir::run
