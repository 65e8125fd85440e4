// Nobody lets themselves in, in whatever order things happen: pushes, second pull requests,
// retargets, runs, posts and comments are drawn, and between any two requests of a post or of a
// comment's answer others happen. The flows are the real ones; GitHub is the tests' own.
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "gate/flow/allowances.hpp"
#include "gate/flow/post.hpp"
#include "gate/publish/allow.hpp"

#include "tests/flow/fake_world.hpp"
#include "tests/publish/wire.hpp"

namespace weir::flow {
namespace github_race_test {

using publish::Marker;

// The counts of heads. main and next allow 65 (their rules at k_main); "old" and "lax" let
// everything pass.
const std::string k_good(40, 'a'), k_bad(40, 'b'), k_awful(40, 'c');
const std::string k_old(40, '1'), k_main(40, '2'), k_later(40, '3'), k_lax(40, '4');
constexpr const char* k_maintainer = "ada";
constexpr const char* k_author = "mallory";  // opened all pull requests, and may write
constexpr const char* k_reader = "eve";

std::int64_t head_count(const std::string& head) {
  return head == k_good ? 65 : 77;  // two bad ones change the same
}
bool is_strict(const std::string& rules) { return rules == k_main || rules == k_later; }

verdict::GateVerdict make_verdict(const std::string& head, const std::optional<std::string>& rules,
                                  bool passes) {
  verdict::Judgement metric;
  metric.metric = *unit::find_metric("dispatches_per_token");
  metric.verdict = passes ? verdict::Outcome::pass : verdict::Outcome::fail;
  metric.baseline_text = "65";
  metric.baseline = 65;
  metric.current_text = std::to_string(head_count(head));
  metric.current = static_cast<double>(head_count(head));
  metric.limit.exact = true;
  metric.reason = "counted";
  verdict::CellVerdict cell;
  cell.cell = *profile::CellKey::parse("llama.cpp/tiny/vulkan/decode");
  cell.device = "vulkan";
  cell.verdict = metric.verdict;
  cell.judgements = {metric};
  verdict::GateVerdict gate = verdict::judge_gate({cell}, {});
  if (rules) gate.rules = verdict::RulesFrom{"base", *rules, std::string(64, 'e')};
  return gate;
}

struct Pull {
  std::string head = k_bad, base = "main", base_sha = k_main;
  bool fork = false, open = true;
};

// A run that ended and was not posted yet.
struct Run {
  std::int64_t id = 0, pull = 0;
  Pull was;  // when it began
  enum class How {
    own_event,     // it posts itself, for the event that it began with, by its base's rules
    own_rules,     // the same, by the pull request's own
    second_stage,  // another run posts what it left: judged there by the base's rules
    forged,        // the same, but nobody judged: what it left says that all is well
    requested,     // by /weir run
  } how = How::own_event;
};

struct Comment {
  std::int64_t pull = 0;
  std::string login, body, event;
};

class Drawn : public sys::Http {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {
    store_.set_permission(k_maintainer, "write");
    store_.set_permission(k_author, "write");
    store_.set_permission(k_reader, "read");
    branches_ = {{"main", {k_old, k_main}},
                 {"old", {k_old}},
                 {"next", {k_old, k_main}},
                 {"lax", {k_old, k_lax}}};
    for (const auto& [name, commits] : branches_) store_.set_branch(name, commits);
    pulls_[7].fork = pulls_[8].fork = flip();
    pulls_[8].open = false;
    show();
  }

  void act() {
    switch (random_() % 14) {
      case 0:
        return push();
      case 1:
        return retarget();
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
      default:
        return answer();
    }
  }
  // Posts and answers everything that still waits.
  void end() {
    while (!runs_.empty()) post();
    while (!comments_.empty()) answer();
  }

  tl::expected<sys::HttpResponse, sys::HttpFailure> send(const sys::HttpRequest& request,
                                                         const sys::HttpLimits&,
                                                         const sys::Stop&) override {
    if (depth_ < 3 && --left_ > 0 && random_() % 6 == 0) act();
    const std::string target = request.url.substr(std::string("https://api.github.com").size());
    const tests::StoreRequest store_request = tests::store_request(
        {.method = request.method, .target = target, .body = request.body.value_or("")});
    const tests::StoreAnswer answer = store_.answer(store_request);
    if (request.method != "GET") check();
    sys::HttpResponse response{answer.status, {{"content-type", "application/json"}}, ""};
    if (!answer.body.is_null()) response.body = dump_json(answer.body);
    return response;
  }

  std::string wrong;           // the first success that nobody earned
  int greens = 0, waived = 0;  // earned ones; without any this test shows nothing

 private:
  bool flip() { return random_() % 2 == 0; }
  template <class List>
  auto& choose(List& list) {
    return *std::next(list.begin(), static_cast<std::ptrdiff_t>(random_() % list.size()));
  }

  void show() {
    for (const auto& [number, pull] : pulls_) {
      if (number == 8 && !there_) continue;
      const Json repository = {{"full_name", pull.fork ? "mallory/r" : "o/r"}};
      store_.add_pull(number, pull.head,
                      {{"state", pull.open ? "open" : "closed"},
                       {"user", {{"login", k_author}}},
                       {"head", {{"ref", "topic"}, {"repo", repository}}},
                       {"base", {{"ref", pull.base}, {"sha", pull.base_sha}}}});
    }
  }
  void push() {
    const std::string heads[] = {k_good, k_bad, k_awful};
    const std::string head = heads[random_() % 3];
    for (auto& [number, pull] : pulls_) {  // one branch for both
      pull.head = head;
      pull.base_sha = branches_[pull.base].back();
    }
    show();
  }
  void aim(Pull& pull) {
    pull.base = choose(branches_).first;
    pull.base_sha = branches_[pull.base].back();
    show();
  }
  void retarget() { aim(choose(pulls_).second); }
  void second() {
    there_ = true;
    pulls_[8].open = !pulls_[8].open;
    show();
  }
  void advance() {
    if (branches_["main"].back() == k_later) return;
    branches_["main"].push_back(k_later);
    store_.set_branch("main", branches_["main"]);
  }

  // Honest: by the tip that `base` has now.
  verdict::GateVerdict judge(const std::string& head, const std::string& base) {
    const std::string rules = branches_[base].back();
    const bool passes = !is_strict(rules) || head == k_good;
    if (passes) passed_.insert({head, rules});
    return make_verdict(head, rules, passes);
  }
  void run() {
    auto& [number, pull] = choose(pulls_);
    if (!pull.open || runs_.size() > 5) return;
    constexpr Run::How k_hows[] = {Run::How::own_event, Run::How::own_rules, Run::How::second_stage,
                                   Run::How::forged};
    Run::How how = k_hows[random_() % 4];
    if (pull.fork && how < Run::How::second_stage) how = Run::How::second_stage;
    if (!pull.fork && how == Run::How::forged) how = Run::How::second_stage;
    runs_.push_back({++last_run_, number, pull, how});
  }

  void post() {
    if (runs_.empty()) return;
    const auto drawn = runs_.begin() + static_cast<std::ptrdiff_t>(random_() % runs_.size());
    const Run run = *drawn;
    runs_.erase(drawn);
    PostOptions words;
    words.run = "/project/verdict.json";
    words.settle = "0s";
    verdict::GateVerdict gate;
    Json event = {{"repository", {{"full_name", "o/r"}}}};
    const std::string head_repository = run.was.fork ? "mallory/r" : "o/r";
    if (run.how == Run::How::own_event || run.how == Run::How::own_rules) {
      gate = run.how == Run::How::own_event ? judge(run.was.head, run.was.base)
                                            : make_verdict(run.was.head, std::nullopt, true);
      event["pull_request"] = {
          {"number", run.pull},
          {"head", {{"sha", run.was.head}, {"repo", {{"full_name", head_repository}}}}},
          {"base", {{"ref", run.was.base}, {"sha", run.was.base_sha}}}};
    } else if (run.how == Run::How::requested) {
      gate = judge(run.was.head, run.was.base);
      event["issue"] = {{"number", run.pull}, {"pull_request", {{"url", "u"}}}};
      event["comment"] = {{"id", 1}};
      words.sha = run.was.head;
    } else {
      // The base that the second stage knows when it judges; the pull request may move on.
      gate = run.how == Run::How::forged
                 ? make_verdict(run.was.head, branches_[pulls_[run.pull].base].back(), true)
                 : judge(run.was.head, pulls_[run.pull].base);
      words.judged_here = run.how == Run::How::second_stage;
      event["workflow_run"] = {
          {"id", run.id},
          {"run_attempt", 1},
          {"head_sha", run.was.head},
          {"head_branch", "topic"},
          {"event", "pull_request"},
          // The measuring job ends as its verdict says.
          {"conclusion", gate.exit_code == ExitCode::pass ? "success" : "failure"},
          {"head_repository", {{"full_name", head_repository}}}};
    }
    in_world(event, [&](tests::FakeWorld& fake, const Job& job) {
      fake.files.put("/project/verdict.json", dump_json(write_fields(gate)));
      fake.environment["GITHUB_RUN_ID"] = std::to_string(run.id);
      const auto posted = flow::post(job, words);
      if (!posted && wrong.empty()) wrong = "a post failed: " + posted.error().message;
    });
  }

  // With a line that is offered for this head, one that was offered anywhere, or the head.
  void comment() {
    auto& [number, pull] = choose(pulls_);
    if (number == 8 && !there_) return;
    Comment comment{number, "", "", ""};
    const char* logins[] = {k_maintainer, k_maintainer, k_author, k_reader};
    comment.login = logins[random_() % 4];
    std::string code = offered_.empty() || flip() ? "" : choose(offered_).first;
    for (const auto& [line, of] : offered_) {
      if (flip() && std::get<0>(of) == number && std::get<1>(of) == pull.head) code = line;
    }
    if (!code.empty()) {
      comment.body = fmt::format("/weir accept {} seen", code);
    } else {
      comment.body = "/weir run " + (flip() ? pull.head : k_awful);
    }
    const std::int64_t id = store_.add_comment(number, comment.login, comment.body);
    comment.event =
        dump_json(Json{{"action", "created"},
                       {"repository", {{"full_name", "o/r"}}},
                       {"issue", {{"number", number}, {"pull_request", {{"url", "u"}}}}},
                       {"comment",
                        {{"id", id},
                         {"body", comment.body},
                         {"user", {{"login", comment.login}, {"type", "User"}}}}}});
    comments_.push_back(comment);
  }
  void answer() {
    if (comments_.empty()) return;
    const auto drawn =
        comments_.begin() + static_cast<std::ptrdiff_t>(random_() % comments_.size());
    const Comment comment = *drawn;
    comments_.erase(drawn);
    posted_.push_back(comment);
    AllowOptions words;
    words.event_file = "/project/event.json";
    const Pull before = pulls_[comment.pull];
    in_world(*parse_json(comment.event), [&](tests::FakeWorld&, const Job& job) {
      const auto answered = flow::allow(job, words);
      if (!answered) {
        if (wrong.empty()) wrong = "an answer failed: " + answered.error().message;
        return;
      }
      const Json json = *parse_json(answered->json);
      if (json["command"] == "accepted") ++waived;
      if (json["command"] != "run" || json["fork"] == true) return;
      Pull measured = before;
      measured.head = json["sha"].get<std::string>();
      runs_.push_back({++last_run_, comment.pull, measured, Run::How::requested});
    });
  }

  template <class Do>
  void in_world(const Json& event, const Do& act_in) {
    tests::FakeWorld fake("");
    fake.files.put("/project/event.json", dump_json(event));
    fake.environment = {{"GITHUB_EVENT_PATH", "/project/event.json"},
                        {"GITHUB_REPOSITORY", "o/r"},
                        {"GITHUB_TOKEN", "ghs_0123456789abcdef"}};
    sys::World& own = fake.world;
    sys::World world{own.files, own.processes, own.clock, own.locks,    *this,
                     own.pause, own.coin,      own.load,  own.terminal, own.environment};
    Job job{world};
    job.output.quiet = true;
    ++depth_;
    act_in(fake, job);
    --depth_;
  }

  // After each request that writes.
  void check() {
    for (const Json& run : store_.check_runs()) {
      const auto marker = publish::parse_marker(run.value("external_id", ""));
      if (!marker) continue;
      const std::string head = run.value("head_sha", ""), name = run.value("name", "");
      const std::string summary = run["output"].value("summary", "");
      const std::size_t at = summary.rfind("/weir accept ");
      if (at != std::string::npos && summary.find(" REASON", at) != std::string::npos) {
        const std::tuple place(marker->pull_request.value_or(0), head, name);
        const auto [offer, fresh] = offered_.emplace(summary.substr(at + 13, 40), place);
        if (!fresh && offer->second != place && wrong.empty()) wrong = "one code for two places";
      }
      if (run["conclusion"] == "success" || run["conclusion"] == "neutral") {
        hold(name, marker->pull_request.value_or(0), head, name);
      }
    }
    for (const std::string& head : {k_good, k_bad, k_awful}) {
      std::set<std::string> heads;
      for (const Json& status : store_.statuses(head)) {
        const std::string context = status.value("context", "");
        if (!heads.insert(context).second || status["state"] != "success") continue;
        // "weir/gate (main #7)"
        const std::size_t mark = context.find(" #");
        if (mark == std::string::npos) {
          hold(context, 0, head, context);
        } else {
          hold(context, std::stoi(context.substr(mark + 2)), head,
               "weir" + context.substr(9, mark - 9) + ")");
        }
      }
    }
  }
  // A success of `shown` on `head`: earned by that base's rules, or accepted by its code.
  void hold(const std::string& shown, std::int64_t pull, const std::string& head,
            const std::string& name) {
    for (const auto& [branch, commits] : branches_) {
      if (name != "weir (" + branch + ")") continue;
      for (const std::string& rules : commits) {
        // main and lax once were as old is.
        if (!passed_.contains({head, rules}) || (rules == k_old && branch != "old")) continue;
        ++greens;
        return;
      }
    }
    for (const Comment& comment : posted_) {
      const auto offer = offered_.find(comment.body.substr(0, 53).substr(13));
      if (comment.pull == pull && comment.login == k_maintainer && offer != offered_.end() &&
          offer->second == std::tuple(pull, head, name)) {
        return;
      }
    }
    if (wrong.empty()) {
      wrong =
          fmt::format("{} is a success at {} for pull request {}", shown, head.substr(0, 7), pull);
    }
  }

  std::mt19937 random_;
  tests::GithubStore store_;
  std::map<std::string, std::vector<std::string>> branches_;
  std::map<std::int64_t, Pull> pulls_;
  bool there_ = false;  // the second one
  std::vector<Run> runs_;
  std::vector<Comment> comments_, posted_;
  std::int64_t last_run_ = 0;
  int depth_ = 0, left_ = 12;
  std::set<std::pair<std::string, std::string>> passed_;  // head, rules: by an honest judge
  // Code -> the pull request, head and name of the check that offered it.
  std::map<std::string, std::tuple<std::int64_t, std::string, std::string>> offered_;
};

// 10 000 in all, in four parts that may run side by side.
class Interleavings : public testing::TestWithParam<unsigned> {};

TEST_P(Interleavings, OfWhateverHappensLeaveNoSuccessThatWasNotEarned) {
  constexpr unsigned k_times = 2500;
  int greens = 0, waived = 0;
  for (unsigned seed = GetParam() * k_times; seed < (GetParam() + 1) * k_times; ++seed) {
    Drawn drawn(seed);
    for (int i = 0; i < 12; ++i) drawn.act();
    drawn.end();
    ASSERT_EQ(drawn.wrong, "") << "seed " << seed;
    greens += drawn.greens > 0 ? 1 : 0;
    waived += drawn.waived;
  }
  // Else it would hold of a program that posts nothing.
  EXPECT_GT(greens, 250);
  EXPECT_GT(waived, 25);
}
INSTANTIATE_TEST_SUITE_P(Drawn, Interleavings, testing::Range(0U, 4U));

}  // namespace github_race_test
}  // namespace weir::flow
