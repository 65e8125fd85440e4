// The commits that jobs measure and judge by.
//
//   old ── main ── later        old and lax let everything pass; main and later allow no change
//    │      ├── good, poisoner  count as much as all bases
//    └ lax  └── slow ── trap    counts more, as all bad heads: bad, runs, copies, folders and
//                  └── bad, …   bad_poisoner
//
// slow is a base beside which no bad head is worse. trap has lax rules, baselines of the bad count
// and waivers for it: whoever takes it for the base, or for perf-baselines, lets a bad head pass.
#include "gate/flow/accept.hpp"
#include "gate/verdict/waiver.hpp"

#include "tests/flow/race/job.hpp"

namespace weir::tests::race {
namespace {

const std::string k_strict = R"(version: 1
engines:
  mine:
    command: [./engine, "{model}", "{tokens}"]
    output: generic
    build: [./build.sh]
    metrics: {syncs_per_token: {regex: "([0-9]+) syncs"}}
models: {m: model.bin}
backends: {cpu: {}}
prompts: {decode: {prompt_tokens: 0, tokens: 8}}
)";
const std::string k_lax =
    k_strict + "limits: [{metrics: syncs_per_token, exact: false, max_increase: 1000}]\n";
constexpr int k_good = 65, k_bad = 77;
constexpr double k_minute = 60, k_day = 86400;
// The folder of a run that begins when the tests' clock does.
constexpr const char* k_run = "20270115-080000";

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  EXPECT_NE(text.find(what), std::string::npos) << what;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

// Files of a commit. Its engine prints the count of its source, and has these habits.
Tree make_tree(int syncs, const std::string& rules, const std::string& habits = "") {
  const std::string source = fmt::format("#!/bin/sh\n# {} syncs\n# {}\n", syncs, habits);
  return {{"weir.yaml", {rules}},
          {"model.bin", {"weights"}},
          {"build.sh", {source, TreeFile::Kind::program}}};
}

}  // namespace

Jobs::Jobs() {
  make_commits();
  make_poison();
}

// Commits a head of pull requests and makes its clone.
void Jobs::clone_head(const std::string& name, const Tree& tree, const std::string& parent) {
  origin_.commit(name, tree, parent);
  origin_.clone(name, name);
  origin_.use(name);
  for (const std::string folder : {"weir-out", "shards"})
    origin_.touch(fmt::format("{}/{}/{}/run.jsonl", origin_.checkout(), folder, k_run));
  if (!tree.contains("joined/run.jsonl")) origin_.touch(origin_.checkout() + "/joined/run.jsonl");
}

void Jobs::make_commits() {
  origin_.commit("old", make_tree(k_good, k_lax));
  origin_.commit("main", make_tree(k_good, k_strict), "old");
  Tree later = make_tree(k_good, k_strict);
  later["note"] = {"later"};
  origin_.commit("later", later, "main");
  origin_.commit("lax", make_tree(k_good, k_lax), "old");
  origin_.commit("slow", make_tree(k_bad, k_strict), "main");
  clone_head("good", make_tree(k_good, k_strict), "main");
  clone_head("bad", make_tree(k_bad, k_strict, "as its parent"), "slow");
  clone_head("poisoner", make_tree(k_good, k_strict, "poisons"), "main");
  clone_head("bad_poisoner", make_tree(k_bad, k_strict, "poisons"), "slow");
  std::map<int, Tree> baselines = make_baselines();
  origin_.commit("perf-baselines", baselines[k_good], "old");
  Tree trap = make_tree(k_bad, k_lax);
  trap.merge(baselines[k_bad]);
  trap.merge(make_waivers());
  origin_.commit("trap", trap, "slow");

  // Runs of the good one, committed where weir looks for the newest run and for joined ones.
  Tree runs = make_tree(k_bad, k_strict);
  runs.merge(below("weir-out/zzx", run_of_good(Steps::gate, 30 * k_day)));
  runs.merge(below("weir-out/zzy", run_of_good(Steps::gate, -k_day)));
  runs.merge(below("weir-out/zzz", run_of_good(Steps::gate, k_minute / 2)));
  runs.merge(below("kept", run_of_good(Steps::gate, k_minute / 2)));
  runs["weir-out/zzw"] = {"../kept", TreeFile::Kind::link};
  runs.merge(below("joined", run_of_good(Steps::gate, 0)));
  clone_head("runs", runs, "slow");
  // The same, copied there by the engine; and a shard.
  Tree copies = make_tree(k_bad, k_strict, "copies");
  copies.merge(below("kept/zzx", run_of_good(Steps::gate, 30 * k_day)));
  copies.merge(below("kept/zzz", run_of_good(Steps::gate, -k_day)));
  copies.merge(below("shards/zzz", run_of_good(Steps::shards, 0)));
  clone_head("copies", copies, "slow");

  // Folders with a base of the bad count, named as workflows name the base.
  Tree folders = make_tree(k_bad, k_strict), base = make_tree(k_bad, k_lax);
  base["engine"] = base.at("build.sh");
  for (const std::string name : {"main", "origin/main", "FETCH_HEAD"})
    folders.merge(below(name, base));
  clone_head("folders", folders, "slow");

  origin_.clone("judge", "");
  origin_.touch(origin_.folder("artifact/run/run.jsonl"));
}

// Returns stored baselines of both counts, as weir writes them.
std::map<int, Tree> Jobs::make_baselines() {
  std::map<int, Tree> baselines;
  for (const auto& [head, syncs] : {std::pair{"good", k_good}, {"bad", k_bad}}) {
    const Tree& tree = origin_.at(head).tree;
    Place place(origin_, head, origin_.refs("main", {}, {}), std::make_shared<sys::MemoryFiles>());
    put(*place.files, origin_.checkout(), tree);
    put(*place.files, origin_.checkout(),
        {{"engine", {tree.at("build.sh").text, TreeFile::Kind::program}}});
    const auto accepted = flow::accept(place.job(), {});
    EXPECT_TRUE(accepted) << accepted.error().message;
    for (const auto& [path, file] : take(*place.files, origin_.checkout() + "/baselines"))
      baselines[syncs][path.substr(origin_.checkout().size() + 1)] = file;
    EXPECT_EQ(baselines[syncs].size(), 1U);
  }
  return baselines;
}

// Returns waivers of all that the bad heads change, for both pull requests.
Tree Jobs::make_waivers() {
  const Done& failing = measure({.head = "bad", .steps = Steps::stored, .has_baselines = true});
  EXPECT_TRUE(failing.verdict && !failing.passed) << failing.error;
  const auto verdict = parse_json(failing.verdict.value_or("{}"))
                           .and_then(reading<verdict::GateVerdict>("verdict"))
                           .value();
  Tree waivers;
  for (const std::int64_t pull : {7, 8}) {
    std::vector<verdict::Waiver> list;
    for (const verdict::Waivable& change : verdict::needed_waivers(verdict).changes)
      list.push_back({change, pull, {}, "seen", "ada", "2027-12-31", {}});
    EXPECT_EQ(list.size(), 1U);
    waivers[verdict::waiver_path(pull)] = {verdict::to_text(pull, list)};
  }
  return waivers;
}

// Returns a run of the good head, with its verdict, that claims to have begun some seconds after
// the jobs that find it.
Tree Jobs::run_of_good(Steps steps, double seconds_later) {
  const Done& done = measure({.head = "good", .steps = steps});
  EXPECT_TRUE(done.passed) << done.error;
  std::string run = done.run;
  if (steps == Steps::shards) run = origin_.checkout() + "/shards/" + k_run;
  std::string journal = without_drawn(done.files->read(run + "/run.jsonl", 1 << 24).value());
  const auto with_start = [](double seconds) {
    return fmt::format("\"started_at\":{:.1f},\"weir_version\"", seconds);
  };
  const double began_at = run::FakeClock().now();
  replace_all(journal, with_start(began_at), with_start(began_at + seconds_later));
  std::string verdict = *done.verdict;
  // Else the commit's id, and with it what is drawn, would depend on the folder of this test.
  for (std::string* text : {&journal, &verdict})
    replace_all(*text, origin_.checkout(), "/checkout");
  return {{"run.jsonl", {journal}}, {"verdict.json", {verdict}}};
}

// Makes what weir would keep of the bases outside of CI, and has it count as much as the bad heads.
void Jobs::make_poison() {
  std::shared_ptr<const Disk> disk = fresh_;
  const auto keep_bases = [&] {
    for (const std::string branch : {"main", "old"}) {
      disk = measure({.head = "good", .branch = branch, .tip = branch, .is_ci = false}, disk).disk;
    }
  };
  keep_bases();
  Disk changed;
  for (auto [path, file] : disk->files) {
    if (path.find("/counts-") != std::string::npos) continue;
    if (path.ends_with("/engine")) file.text = origin_.at("bad").tree.at("build.sh").text;
    changed.key += path + " " + file.text + "\n";
    changed.files[path] = file;
  }
  disk = std::make_shared<Disk>(changed);
  keep_bases();  // counts them
  poisoned_ = disk;
}

}  // namespace weir::tests::race
