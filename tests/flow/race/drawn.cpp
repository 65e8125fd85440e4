// The events, drawn one after another and between requests.
#include "tests/flow/race/drawn.hpp"

#include "gate/base/find.hpp"
#include "gate/flow/waivers.hpp"

#include "tests/publish/wire.hpp"

namespace weir::tests::race {
namespace {

// A verdict that somebody wrote by hand: with the rules of a commit, or without any.
verdict::GateVerdict make_verdict(const std::optional<std::string>& rules) {
  verdict::Judgement metric;
  metric.metric = *unit::find_metric("syncs_per_token");
  metric.verdict = verdict::Outcome::pass;
  metric.baseline_text = metric.current_text = "65";
  metric.baseline = metric.current = 65;
  metric.limit.exact = true;
  metric.reason = "counted";
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse("mine/m/cpu/decode");
  cell.device = "cpu";
  cell.verdict = metric.verdict;
  cell.judgements = {metric};
  verdict::GateVerdict gate = verdict::judge_gate({cell}, {});
  if (rules) gate.rules = verdict::RulesFrom{"base", *rules, std::string(64, 'e')};
  return gate;
}

}  // namespace

Drawn::Drawn(Jobs& jobs, unsigned seed)
    : jobs_(jobs), random_(seed), disk_(jobs.fresh()), earned_(jobs.origin()) {
  choose_attack();
  earned_.watch(ids(heads_));
  store_.set_permission(k_maintainer, "write");
  store_.set_permission(k_author, "write");
  store_.set_permission(k_reader, "read");
  branches_ = {{"main", {"old", "main"}},
               {"old", {"old"}},
               {"next", {"old", "main"}},
               {"lax", {"old", "lax"}}};
  for (const auto& [name, commits] : branches_) store_.set_branch(name, ids(commits));
  // She may have been here before.
  if (has_refs() && flip()) push_refs();
  if (keeps_disk_ && flip()) disk_ = jobs.poisoned();
  for (const std::int64_t number : {7, 8}) {
    pulls_[number].head = heads_[1];
    pulls_[number].base_sha = id("main");
  }
  pulls_[7].fork = pulls_[8].fork = flip();
  pulls_[8].open = false;
  show();
}

void Drawn::choose_attack() {
  attack_ = static_cast<Attack>(random_() % 4);
  switch (attack_) {
    case Attack::refs:
      choose_names();
      break;
    case Attack::cache:
      heads_ = {"poisoner", "bad", "bad_poisoner"};
      keeps_disk_ = random_() % 8 != 0;
      if (!keeps_disk_) {  // a runner that is new each time has nothing that must not be trusted
        heads_ = {"good", "bad", "folders"};
        trusts_cache_ = true;
      }
      break;
    case Attack::runs: {
      constexpr Steps k_steps[] = {Steps::gate, Steps::run_and_gate, Steps::shards,
                                   Steps::shards_into};
      heads_ = {"good", "runs", "copies"};
      steps_ = k_steps[random_() % 4];
      posts_newest_ = steps_ == Steps::gate;
      break;
    }
    case Attack::all:
      heads_ = {"poisoner", flip() ? "runs" : "copies", "folders"};
      naming_ = Naming::of_remote;
      names_ = {Naming::id, naming_, Naming::full};
      posts_newest_ = keeps_disk_ = true;
      break;
  }
}

// Chooses a workflow that names one thing, or rules and base, as she hopes.
void Drawn::choose_names() {
  const auto what = random_() % 4;
  naming_ = static_cast<Naming>(random_() % (what < 2 ? k_namings : k_namings_of_any_branch));
  names_ = {Naming::id, Naming::id, Naming::full};
  if (what == 0) names_.rules = naming_;
  if (what < 2) names_.base = naming_;
  if (what >= 2) names_.baselines = naming_;
  takes_waivers_ = what == 2;
  if (what == 3) steps_ = Steps::stored;
  has_baselines_ = what == 3 || (what == 2 && flip());
  const bool has_folders =
      naming_ == Naming::of_remote || naming_ == Naming::local || naming_ == Naming::fetched;
  heads_ = {"good", "bad", has_folders ? "folders" : "bad"};
}

std::vector<std::string> Drawn::ids(const std::vector<std::string>& names) const {
  return collect<std::string>(names, [&](const std::string& name) { return id(name); });
}

void Drawn::act() {
  switch (random_() % 15) {
    case 0:
      return push();
    case 1:
      return aim(choose(pulls_).second);
    case 2:
      return second();
    case 3:
      return advance();
    case 4:
    case 5:
      return run();
    case 6:
    case 7:
      return post();
    case 8:
    case 9:
    case 10:
      return comment();
    case 11:
      return has_refs() ? push_refs() : push();
    default:
      return answer();
  }
}

void Drawn::end() {
  while (!runs_.empty()) post();
  while (!comments_.empty()) answer();
}

tl::expected<sys::HttpResponse, sys::HttpFailure> Drawn::send(const sys::HttpRequest& request,
                                                              const sys::HttpLimits&,
                                                              const sys::Stop&) {
  if (depth_ < 3 && --left_ > 0 && random_() % 6 == 0) act();
  const std::string target = request.url.substr(std::string("https://api.github.com").size());
  const StoreRequest store_request = tests::store_request(
      {.method = request.method, .target = target, .body = request.body.value_or("")});
  const StoreAnswer answer = store_.answer(store_request);
  if (request.method != "GET") check();
  sys::HttpResponse response{answer.status, {{"content-type", "application/json"}}, ""};
  if (!answer.body.is_null()) response.body = dump_json(answer.body);
  return response;
}

void Drawn::show() {
  for (const auto& [number, pull] : pulls_) {
    if (number == 8 && !there_) continue;
    const Json repository = {{"full_name", pull.fork ? "mallory/r" : "o/r"}};
    store_.add_pull(number, id(pull.head),
                    {{"state", pull.open ? "open" : "closed"},
                     {"user", {{"login", k_author}}},
                     {"head", {{"ref", "topic"}, {"repo", repository}}},
                     {"base", {{"ref", pull.base}, {"sha", pull.base_sha}}}});
  }
}

// --- what somebody does to the repository

void Drawn::push() {
  const std::string head = choose(heads_);
  for (auto& [number, pull] : pulls_) {  // one branch for both
    pull.head = head;
    pull.base_sha = id(branches_[pull.base].back());
  }
  show();
}

void Drawn::push_refs() {
  pushed_.clear();
  const auto push_all = [&](const std::vector<std::string>& refs) {
    pushed_.insert(pushed_.end(), refs.begin(), refs.end());
  };
  switch (random_() % 3) {
    case 0:  // they are gone
      return;
    case 1: {
      const auto fitting = refs_like(naming_, id("main"));
      return push_all(fitting[random_() % fitting.size()]);
    }
    default:
      for (int i = 0; i < k_namings; ++i) {
        for (const auto& refs : refs_like(static_cast<Naming>(i), id("main"))) push_all(refs);
      }
  }
}

void Drawn::aim(Pull& pull) {
  pull.base = choose(branches_).first;
  pull.base_sha = id(branches_[pull.base].back());
  show();
}

void Drawn::second() {
  there_ = true;
  pulls_[8].open = !pulls_[8].open;
  show();
}

void Drawn::advance() {
  // Her refs name one commit of main: where she pushes some it stays.
  if (has_refs() || branches_["main"].back() == "later") return;
  branches_["main"].push_back("later");
  store_.set_branch("main", ids(branches_["main"]));
}

// --- runs

// Returns the inputs of a job for that base. Her refs attack the names of main alone.
Inputs Drawn::inputs_for(const std::string& head, const std::string& base) const {
  Inputs inputs{.head = head,
                .branch = base,
                .tip = branches_.at(base).back(),
                .has_baselines = has_baselines_};
  if (base == "main") {
    inputs.names = names_;
    inputs.pushed = pushed_;
  }
  return inputs;
}

void Drawn::run() {
  auto& [number, pull] = choose(pulls_);
  if (!pull.open || runs_.size() > 5) return;
  using How = Run::How;
  constexpr How k_hows[] = {How::own_event, How::own_rules, How::second_stage, How::forged};
  How how = k_hows[random_() % 4];
  if (pull.fork && how < How::second_stage) how = How::second_stage;
  if (!pull.fork && how == How::forged) how = How::second_stage;
  Run run{++last_run_, number, pull, how};
  measure(run);
  runs_.push_back(run);
}

// Runs the job that measures, where there is one.
void Drawn::measure(Run& run) {
  if (run.how == Run::How::own_rules || run.how == Run::How::forged) return;
  Inputs inputs = inputs_for(run.was.head, run.was.base);
  inputs.trusts_cache = trusts_cache_;
  inputs.steps = steps_;
  if (takes_waivers_) inputs.pull = run.pull;
  if (run.how == Run::How::second_stage) {
    if (steps_ != Steps::stored) inputs.steps = Steps::gate;
    run.own_workflow = run.was.head != heads_[0] && flip();
    if (run.own_workflow && steps_ != Steps::stored) {
      inputs.against = id("slow");
      inputs.names = {};
      inputs.pushed.clear();
    }
  }
  const bool has_cache = keeps_disk_ && disk_->key.find("77 syncs") != std::string::npos;
  run.job = &jobs_.measure(inputs, disk_);
  if (keeps_disk_) disk_ = run.job->disk;
  if (!inputs.pushed.empty()) ++by_refs;
  if (has_cache) ++by_cache;
  if (has_runs(run.was.head) && inputs.steps != Steps::gate) ++by_runs;
  if (run.job->verdict && run.how != Run::How::second_stage) {
    earned_.judge(id(run.was.head), id(inputs.tip));
  }
}

void Drawn::post() {
  if (runs_.empty()) return;
  const auto drawn = runs_.begin() + static_cast<std::ptrdiff_t>(random_() % runs_.size());
  const Run run = *drawn;
  runs_.erase(drawn);
  post_run(run);
}

void Drawn::post_run(const Run& run) {
  flow::PostOptions words;
  words.run = "/project/verdict.json";
  words.settle = "0s";
  words.parts.comment = random_() % 4 == 0;  // it is no success, and takes most requests
  std::optional<std::string> verdict;
  const std::string head = id(run.was.head);
  const std::string head_repository = run.was.fork ? "mallory/r" : "o/r";
  Json event = {{"repository", {{"full_name", "o/r"}}}};
  if (run.how == Run::How::own_event || run.how == Run::How::own_rules) {
    verdict =
        run.job != nullptr ? run.job->verdict : dump_json(write_fields(make_verdict(std::nullopt)));
    event["pull_request"] = {{"number", run.pull},
                             {"head", {{"sha", head}, {"repo", {{"full_name", head_repository}}}}},
                             {"base", {{"ref", run.was.base}, {"sha", run.was.base_sha}}}};
  } else if (run.how == Run::How::requested) {
    verdict = run.job->verdict;
    event["issue"] = {{"number", run.pull}, {"pull_request", {{"url", "u"}}}};
    event["comment"] = {{"id", 1}};
    words.sha = head;
  } else {
    // The base that the second stage knows when it judges; the pull request may move on.
    const std::string base = pulls_[run.pull].base;
    bool passed = true;
    if (run.how == Run::How::forged) {
      verdict = dump_json(write_fields(make_verdict(id(branches_[base].back()))));
    } else {
      Inputs inputs = inputs_for("", base);
      inputs.steps = steps_ == Steps::stored ? steps_ : Steps::gate;
      if (flip()) {  // as ci/post fetches and names it
        inputs.names = {};
        inputs.pushed.clear();
      }
      if (!inputs.pushed.empty()) ++by_refs;
      if (run.job->verdict) verdict = jobs_.judge(*run.job, inputs).verdict;
      if (verdict) earned_.judge(head, id(inputs.tip));
      words.judged_here = true;
      passed = run.job->passed || run.own_workflow;
    }
    event["workflow_run"] = {{"id", run.id},
                             {"run_attempt", 1},
                             {"head_sha", head},
                             {"head_branch", "topic"},
                             {"event", "pull_request"},
                             {"conclusion", passed ? "success" : "failure"},
                             {"head_repository", {{"full_name", head_repository}}}};
  }
  if (!verdict) words.missing_verdict = "weir gate has left no verdict";
  const bool is_own = run.how == Run::How::own_event || run.how == Run::How::requested;
  if (is_own && verdict && posts_newest_) return post_newest(run, event, words);
  in_world(event, [&](FakeWorld& fake, const flow::Job& job) {
    if (verdict) fake.files.put("/project/verdict.json", *verdict);
    fake.environment["GITHUB_RUN_ID"] = std::to_string(run.id);
    note_post(flow::post(job, words));
  });
}

// Posts from the checkout, where weir looks for the newest run.
void Drawn::post_newest(const Run& run, const Json& event, flow::PostOptions words) {
  if (has_runs(run.was.head)) ++by_runs;
  words.run.clear();
  Place place(jobs_.origin(), run.job->clone, run.job->refs, run.job->files);
  place.clock.seconds = 3600;
  const std::string file = fmt::format("/job/event-{}.json", ++last_event_);
  place.files->put(file, dump_json(event));
  place.environment = {{"GITHUB_EVENT_PATH", file},
                       {"GITHUB_REPOSITORY", "o/r"},
                       {"GITHUB_RUN_ID", std::to_string(run.id)},
                       {"GITHUB_TOKEN", "ghs_0123456789abcdef"}};
  flow::Job job = place.job();
  sys::World world = place.with(*this);
  ++depth_;
  note_post(flow::post({world, job.selection, job.output}, words));
  --depth_;
  EXPECT_TRUE(place.files->remove(file));
}

void Drawn::note_post(const Result<flow::Answer>& posted) {
  if (!posted && wrong.empty()) wrong = "a post failed: " + posted.error().message;
}

// --- comments

// Writes a comment with a line that is offered for this head, one that was offered anywhere, or the
// head.
void Drawn::comment() {
  auto& [number, pull] = choose(pulls_);
  if (number == 8 && !there_) return;
  Comment comment{number, "", "", ""};
  const char* logins[] = {k_maintainer, k_maintainer, k_author, k_reader};
  comment.login = logins[random_() % 4];
  const Earned::Offers& offers = earned_.offers();
  std::string code = offers.empty() || flip() ? "" : choose(offers).first;
  for (const auto& [line, of] : offers) {
    if (flip() && std::get<0>(of) == number && std::get<1>(of) == id(pull.head)) code = line;
  }
  if (!code.empty()) {
    comment.body = fmt::format("/weir waive {} seen", code);
  } else {
    comment.body = "/weir run " + id(flip() ? pull.head : heads_[2]);
  }
  const std::int64_t comment_id = store_.add_comment(number, comment.login, comment.body);
  comment.event = dump_json(Json{{"action", "created"},
                                 {"repository", {{"full_name", "o/r"}}},
                                 {"issue", {{"number", number}, {"pull_request", {{"url", "u"}}}}},
                                 {"comment",
                                  {{"id", comment_id},
                                   {"body", comment.body},
                                   {"user", {{"login", comment.login}, {"type", "User"}}}}}});
  comments_.push_back(comment);
}

void Drawn::answer() {
  if (comments_.empty()) return;
  const auto drawn = comments_.begin() + static_cast<std::ptrdiff_t>(random_() % comments_.size());
  const Comment comment = *drawn;
  comments_.erase(drawn);
  earned_.post(comment);
  flow::WaiveOptions words;
  words.event_file = "/project/event.json";
  const Pull before = pulls_[comment.pull];
  in_world(*parse_json(comment.event), [&](FakeWorld&, const flow::Job& job) {
    const auto answered = flow::waive(job, words);
    if (!answered) {
      if (wrong.empty()) wrong = "an answer failed: " + answered.error().message;
      return;
    }
    const Json json = *parse_json(answered->json);
    if (json["command"] == "waived") ++waived;
    if (json["command"] != "run" || json["fork"] == true) return;
    Run run{++last_run_, comment.pull, before, Run::How::requested};
    const auto head = std::ranges::find(heads_, json["sha"].get<std::string>(),
                                        [&](const std::string& name) { return id(name); });
    run.was.head = *head;
    measure(run);
    runs_.push_back(run);
  });
}

// --- weir's surroundings

void Drawn::in_world(const Json& event,
                     const std::function<void(FakeWorld&, const flow::Job&)>& act_in) {
  FakeWorld fake("");
  fake.files.put("/project/event.json", dump_json(event));
  fake.environment = {{"GITHUB_EVENT_PATH", "/project/event.json"},
                      {"GITHUB_REPOSITORY", "o/r"},
                      {"GITHUB_TOKEN", "ghs_0123456789abcdef"}};
  sys::World& own = fake.world;
  sys::World world{own.files, own.processes, own.clock, own.locks,    *this,
                   own.pause, own.coin,      own.load,  own.terminal, own.environment};
  flow::Job job{world};
  job.output.quiet = true;
  ++depth_;
  act_in(fake, job);
  --depth_;
}

// Looks at what GitHub shows after each request that writes.
void Drawn::check() {
  if (!wrong.empty()) return;
  wrong = earned_.find_wrong(store_, branches_);
}

}  // namespace weir::tests::race
