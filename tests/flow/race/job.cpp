// Runs weir's flows as the jobs of workflows do.
#include "tests/flow/race/job.hpp"

#include "gate/flow/gate.hpp"
#include "gate/flow/shards.hpp"
#include "gate/run/journal.hpp"

namespace weir::tests::race {

// --- names

std::string name_of(Naming naming, const std::string& branch, const std::string& id) {
  switch (naming) {
    case Naming::full:
      return "refs/remotes/origin/" + branch;
    case Naming::of_remote:
      return "origin/" + branch;
    case Naming::local:
      return branch;
    case Naming::id:
      return id;
    case Naming::short_id:
      return id.substr(0, 12);
    case Naming::fetched:
      return "FETCH_HEAD";
  }
  return "";
}

std::vector<std::vector<std::string>> refs_like(Naming naming, const std::string& id) {
  const auto in = [](const std::string& folder) {
    return std::vector{folder + "main", folder + "perf-baselines"};
  };
  const std::string short_id = id.substr(0, 12);
  switch (naming) {
    case Naming::full:
      return {in("refs/tags/refs/remotes/origin/"), in("refs/heads/refs/remotes/origin/"),
              in("refs/tags/remotes/origin/")};
    case Naming::of_remote:
      return {in("refs/tags/origin/"), in("refs/heads/origin/"), in("refs/remotes/origin/origin/")};
    case Naming::local:
      return {in("refs/tags/"), in("refs/remotes/"), in("refs/")};
    case Naming::id:
      return {{"refs/tags/" + id, "refs/heads/" + id}, {"refs/replace/" + id}};
    case Naming::short_id:
      return {{"refs/tags/" + short_id}, {"refs/heads/" + short_id}};
    case Naming::fetched:
      return {{"refs/tags/FETCH_HEAD"}, {"refs/heads/FETCH_HEAD"}};
  }
  return {};
}

std::string Inputs::key() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", head, branch, tip,
                     text::join(pushed, " "), static_cast<int>(names.rules),
                     static_cast<int>(names.base), static_cast<int>(names.baselines),
                     static_cast<int>(steps), against, from, pull, has_baselines, is_ci,
                     trusts_cache);
}

// --- the world of a job

Place::Place(Origin& origin, std::string clone, Refs refs,
             std::shared_ptr<sys::MemoryFiles> place_files)
    : files(std::move(place_files)),
      environment{{"WEIR_PROBES", "/probes"}},
      origin_(origin),
      clone_(std::move(clone)),
      checkout_(origin.checkout()),
      refs_(std::move(refs)),
      world_{*files,
             processes_,
             clock,
             locks_,
             http_,
             pause_,
             coin_,
             load_,
             terminal_,
             [this](const std::string& name) {
               const auto variable = environment.find(name);
               return variable == environment.end() ? std::nullopt
                                                    : std::optional(variable->second);
             }} {
  origin_.use(clone_);
  files->put("/probes/.keep", "");
  files->put("/job/.keep", "");
  files->put(checkout_ + "/.git/HEAD", "");
  files->put(origin_.program(), "");
  files->set_executable(origin_.program());
}

flow::Job Place::job(sys::World& world) const {
  flow::Job job{world};
  job.selection.config = checkout_ + "/weir.yaml";
  job.selection.baselines = checkout_ + "/baselines";
  job.selection.runs_folder = checkout_ + "/weir-out";
  job.selection.counts_only = true;
  job.output.quiet = true;
  job.output.json = "/job/verdict.json";
  return job;
}

sys::World Place::with(sys::Http& http) {
  return {*files, processes_, clock, locks_,    http,
          pause_, coin_,      load_, terminal_, world_.environment};
}

sys::Finished Place::start(const sys::ProcessSpec& spec) {
  sys::Finished finished;
  if (spec.argv[0] == origin_.program()) {
    const auto worktree = std::ranges::find(spec.argv, "worktree");
    if (worktree == spec.argv.end()) return origin_.git(spec, clone_, refs_);
    if (*(worktree + 1) == "add") {  // … add … FOLDER COMMIT
      const std::string& folder = spec.argv[spec.argv.size() - 2];
      put(*files, folder, origin_.tree_of(spec.argv.back()));
      files->put(folder + "/.git", "");
    }
    return finished;
  }
  const std::string source = files->read(spec.argv[0], 1 << 20).value_or("");
  if (!spec.argv[0].ends_with("/build.sh")) return start_engine(source);
  put(*files, spec.folder, {{"engine", {source, TreeFile::Kind::program}}});
  return finished;
}

// Prints the count in the source, and does what else the source names.
sys::Finished Place::start_engine(const std::string& source) {
  clock.seconds += 60;
  if (source.find("poisons") != std::string::npos && poison) poison();
  if (source.find("copies") != std::string::npos) {
    const std::string kept = checkout_ + "/kept";
    for (const auto& [path, file] : take(*files, kept)) {
      files->put(checkout_ + "/weir-out" + path.substr(kept.size()), file.text);
    }
  }
  const std::size_t end = source.find(" syncs"), begin = source.rfind(' ', end - 1) + 1;
  sys::Finished finished;
  finished.out = source.substr(begin, end - begin) + " syncs\n";
  finished.wall_seconds = 2;
  return finished;
}

// --- jobs

std::string without_drawn(std::string journal) {
  constexpr std::string_view k_before = "\"programs\":\"";
  const std::size_t at = journal.find(k_before);
  if (at != std::string::npos) journal.replace(at + k_before.size(), 12, 12, '0');
  return journal;
}

namespace {

// Returns the cache, without links, which each run makes again.
Disk take_disk(const sys::MemoryFiles& files, const std::string& cache) {
  Disk disk;
  for (const auto& [path, file] : take(files, cache)) {
    if (path.starts_with(cache + "/sides/")) continue;
    // A tree that is not reused ends in 16 digits that were drawn.
    std::string name = path.substr(cache.size());
    constexpr std::string_view k_trees = "/trees/";
    const std::size_t drawn = k_trees.size() + 12 + 1 + 40 + 1 + 12;
    if (name.starts_with(k_trees) && name.size() > drawn && name[drawn] == '-') {
      name.erase(drawn + 1, 16);
    }
    disk.key += fmt::format("{} {}\n", name, file.text);
    disk.files[path] = file;
  }
  return disk;
}

// Fills in what a gate left.
void finish(const Result<flow::Answer>& answer, Done& done) {
  if (!answer) {
    done.error = answer.error().message;
    return;
  }
  done.passed = answer->code == flow::ExitCode::pass;
  const auto text = done.files->read("/job/verdict.json", 1 << 24);
  if (!text) return;
  done.verdict = *text;
  done.run = parse_json(*text).value().value("run", "");
}

std::vector<std::string> branches_of(const Inputs& inputs) {
  std::vector<std::string> branches{"old", "lax"};
  if (inputs.has_baselines) branches.emplace_back("perf-baselines");
  return branches;
}

// Runs the commands of the job up to the gate. `tip` is the id of the base.
Result<flow::Answer> run_steps(const Inputs& inputs, const std::string& tip, const flow::Job& job,
                               const std::string& checkout) {
  flow::GateOptions gate;
  gate.wanted.verb = "gate";
  gate.rules.rules_from = name_of(inputs.names.rules, inputs.branch, tip);
  const std::string baselines = name_of(inputs.names.baselines, "perf-baselines", "");
  if (inputs.pull != 0) gate.waived = {baselines, inputs.pull, inputs.branch};
  if (inputs.steps == Steps::stored) {
    gate.rules.baselines_ref = baselines;
    return flow::gate(job, gate);
  }
  const std::string against =
      inputs.against.empty() ? name_of(inputs.names.base, inputs.branch, tip) : inputs.against;
  if (inputs.steps == Steps::gate) {
    gate.against = against;
    return flow::gate(job, gate);
  }
  gate.from = inputs.from;
  flow::RunOptions run;
  run.against = against;
  run.wanted.verb = "run";
  if (inputs.steps == Steps::run_and_gate) {
    WEIR_CHECK(flow::run_matrix(job, run));
    return flow::gate(job, gate);
  }
  flow::Job shard_job = job;
  shard_job.selection.runs_folder = checkout + "/shards";
  run.wanted.shard = "1/1";
  WEIR_CHECK(flow::run_matrix(shard_job, run));
  flow::MergeOptions merge;
  merge.runs = run::list_runs(job.files(), shard_job.selection.runs_folder);
  if (inputs.steps == Steps::shards_into) gate.from = merge.into = checkout + "/joined";
  WEIR_CHECK(flow::merge(job, merge));
  return flow::gate(job, gate);
}

}  // namespace

const Done& Jobs::measure(const Inputs& inputs, const std::shared_ptr<const Disk>& disk) {
  const std::string key = inputs.key() + "\n" + disk->key;
  const auto known = done_.find(key);
  if (known != done_.end()) return known->second;
  return done_[key] = run(inputs, *disk);
}

Done Jobs::run(const Inputs& inputs, const Disk& disk) {
  const Tree& tree = origin_.at(inputs.head).tree;
  Done done;
  done.clone = inputs.head;
  done.refs = origin_.refs(inputs.tip, branches_of(inputs), inputs.pushed);
  done.files = std::make_shared<sys::MemoryFiles>();
  Place place(origin_, done.clone, done.refs, done.files);
  put(*done.files, origin_.checkout(), tree);
  put(*done.files, origin_.checkout(),
      {{"engine", {tree.at("build.sh").text, TreeFile::Kind::program}}});
  put(*done.files, "/", disk.files);
  place.poison = [&] { put(*done.files, "/", poisoned_->files); };
  if (inputs.is_ci) place.environment["CI"] = "true";
  flow::Job job = place.job();
  job.trusts_cache = inputs.trusts_cache;
  finish(run_steps(inputs, origin_.id(inputs.tip), job, origin_.checkout()), done);
  done.disk = std::make_shared<Disk>(take_disk(*done.files, origin_.folder("cache")));
  return done;
}

const Done& Jobs::judge(const Done& measured, const Inputs& inputs) {
  const std::string journal =
      measured.files->read(sys::join_path(measured.run, run::k_journal_name), 1 << 24).value();
  const std::string key = "judge " + inputs.key() + "\n" + without_drawn(journal);
  const auto known = done_.find(key);
  if (known != done_.end()) return known->second;
  Done done;
  done.clone = "judge";
  done.refs = origin_.refs(inputs.tip, branches_of(inputs), inputs.pushed);
  done.files = std::make_shared<sys::MemoryFiles>();
  Place place(origin_, done.clone, done.refs, done.files);
  place.environment["CI"] = "true";
  place.clock.seconds = 3600;
  flow::GateOptions gate;
  gate.from = origin_.folder("artifact/run");
  done.files->put(*gate.from + "/run.jsonl", journal);
  gate.rules.rules_from = name_of(inputs.names.rules, inputs.branch, origin_.id(inputs.tip));
  if (inputs.steps == Steps::stored)
    gate.rules.baselines_ref = name_of(inputs.names.baselines, "perf-baselines", "");
  finish(flow::gate(place.job(), gate), done);
  return done_[key] = std::move(done);
}

}  // namespace weir::tests::race
