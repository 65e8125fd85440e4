// weir serve: its options, its log, and how it judges and posts uploaded runs.
#include "gate/flow/serve.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "gate/flow/arrivals.hpp"
#include "gate/flow/measure.hpp"
#include "gate/flow/stored_baselines.hpp"

#include "tests/publish/store_api.hpp"

namespace weir::flow {
namespace serve_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ListenPlace, IsAnAddressAndAPort) {
  struct Case {
    const char *text, *address;
    int port;
    bool loopback;
  };
  for (const Case& test_case : std::vector<Case>{{"127.0.0.1:8080", "127.0.0.1", 8080, true},
                                                 {"localhost:0", "127.0.0.1", 0, true},
                                                 {"[::1]:80", "::1", 80, true},
                                                 {"0.0.0.0:443", "0.0.0.0", 443, false},
                                                 {"[::]:65535", "::", 65535, false},
                                                 {"10.1.2.3:1", "10.1.2.3", 1, false}}) {
    const auto place = parse_listen(test_case.text);
    ASSERT_TRUE(place) << test_case.text;
    EXPECT_EQ(place->address, test_case.address);
    EXPECT_EQ(place->port, test_case.port);
    EXPECT_EQ(place->loopback, test_case.loopback) << test_case.text;
  }
  for (const char* text : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", ":8080",
                           "::1:8080", "127.0.0.1:-1", "127.0.0.1:http"}) {
    EXPECT_FALSE(parse_listen(text)) << text;
  }
}

TEST(Pairs, NameAProjectOnce) {
  const auto pairs = parse_pairs("--gate", {"a=/srv/a=b", "b=c"});
  ASSERT_TRUE(pairs);
  EXPECT_EQ(pairs->at(0).second, "/srv/a=b");
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"a"}, {"=a"}, {"a="}, {"a=1", "a=2"}}) {
    EXPECT_FALSE(parse_pairs("--gate", wrong)) << wrong.front();
  }
}

#ifdef WEIR_SERVE

serve::RequestLine hostile_line() {
  serve::RequestLine line;
  line.method = "GET";
  line.path = "/a\r\n::error::b\x1B[31m\xE2\x80\xAE" + std::string(5000, 'x');
  line.peer = "192.0.2.1";
  line.token = "0123456789ab";
  line.status = 404;
  line.seconds = 0.0125;
  return line;
}

TEST(ServeLog, IsOneLineWhateverWasAskedFor) {
  for (const LogForm form : {LogForm::text, LogForm::json}) {
    const std::string line = log_line(hostile_line(), 1795167015, form);
    EXPECT_EQ(line.find_first_of("\r\n\x1B"), std::string::npos);
    EXPECT_THAT(line, Not(HasSubstr("\xE2\x80\xAE")));
    EXPECT_THAT(line, HasSubstr("2026-11-20T09:30:15Z"));
    EXPECT_THAT(line, HasSubstr("12.5"));
    EXPECT_LT(line.size(), 1000U);
    EXPECT_THAT(log_line(std::string("a\nb"), 0, form), Not(HasSubstr("\n")));
  }
  EXPECT_EQ(Json::parse(log_line(hostile_line(), 0, LogForm::json))["status"], 404);
}

class Arriving : public testing::Test {
 protected:
  Arriving() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-arrive-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    EXPECT_TRUE(world().files.write_atomic(
        folder_ + "/weir.yaml",
        "version: 1\n"
        "engines:\n"
        "  falcon: {command: [./run, '{model}', '{tokens}'], output: llama-bench, private: true}\n"
        "models: {tiny: tiny.gguf}\n"
        "backends: {cpu: {}}\n"
        "prompts: {decode: {tokens: 8}}\n"));
  }
  ~Arriving() override { std::filesystem::remove_all(folder_); }

  static profile::Profile make_profile(const std::string& cell, std::int64_t dispatches) {
    profile::Profile profile;
    profile.cell = *profile::CellKey::parse(cell);
    profile.device = "cpu";
    profile.provenance.fingerprint = "f";
    profile.provenance.device_class = "cpu-x86-64-v3";
    profile::Measurement count;
    count.metric = *unit::find_metric("dispatches_per_token");
    count.nature = profile::Nature::exact;
    count.exact = Rational(dispatches);
    profile.metrics["dispatches_per_token"] = count;
    return profile;
  }
  // The baseline has the true name, what comes has the alias.
  std::string alias() {
    Job job{world()};
    job.selection.config = folder_ + "/weir.yaml";
    const auto loaded = load_config(job);
    return loaded->configuration.redactor.cell(*profile::CellKey::parse("falcon/tiny/cpu/decode"))
        .str();
  }

  [[nodiscard]] sys::World& world() { return real_.world(); }

  sys::RealWorld real_;
  std::string folder_;
};

TEST_F(Arriving, IsComparedWithTheBaselinesOfItsProjectUnderItsAlias) {
  sys::Files& files = world().files;
  StoredBaselines stored(files, folder_ + "/baselines");
  ASSERT_TRUE(
      stored.put(baseline::accept(make_profile("falcon/tiny/cpu/decode", 65), std::nullopt, {})));
  const auto judge = FolderJudge::make(world(), {{"engine", folder_}});
  ASSERT_TRUE(judge) << judge.error().message;
  ASSERT_NE(alias(), "falcon/tiny/cpu/decode");
  const auto outcome = [&](const std::string& project, std::int64_t dispatches) {
    const std::vector<profile::Profile> profiles{make_profile(alias(), dispatches)};
    const auto verdict = (*judge)->judge({project, "1a2b3c4", {}}, profiles);
    EXPECT_TRUE(verdict) << verdict.error().message;
    if (!*verdict) return std::string("none");
    const std::string text = dump_json(write_fields(**verdict));
    EXPECT_THAT(text, Not(HasSubstr("falcon")));
    EXPECT_THAT(text, Not(HasSubstr(folder_)));
    return std::string(verdict::to_string((*verdict)->verdict));
  };
  EXPECT_EQ(outcome("engine", 65), "pass");
  EXPECT_EQ(outcome("engine", 77), "fail");
  EXPECT_EQ(outcome("another", 77), "none");
  // Edited since: read anew.
  ASSERT_TRUE(files.write_atomic(folder_ + "/weir.yaml", "version: ["));
  const std::vector<profile::Profile> profiles{make_profile("falcon/tiny/cpu/decode", 65)};
  const auto broken = (*judge)->judge({"engine", {}, {}}, profiles);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, Not(HasSubstr(folder_)));
}

TEST_F(Arriving, NeedsAFolderThatCanBeRead) {
  EXPECT_FALSE(FolderJudge::make(world(), {{"engine", folder_ + "/nowhere"}}));
}

TEST(ServeOptions, NameWhoseJobsMayUpload) {
  ServeOptions options;
  const auto http = std::make_shared<sys::RealHttp>();
  EXPECT_FALSE(issuer_options(options, http)->has_value());
  options.jobs = {"engine=me/engine@refs/heads/main", "engine=74@refs/pull/*"};
  EXPECT_THAT(issuer_options(options, http).error().message, HasSubstr("--oidc-audience"));
  options.audience = "https://perf.example.org";
  const auto issuer = issuer_options(options, http);
  ASSERT_TRUE(issuer) << issuer.error().message;
  EXPECT_EQ((*issuer)->issuer, "https://token.actions.githubusercontent.com");
  EXPECT_EQ((*issuer)->rules.at(0).repository, "me/engine");
  EXPECT_EQ((*issuer)->rules.at(1).ref, "refs/pull/*");
  for (const char* wrong :
       {"engine", "engine=me/engine", "engine=me@refs/heads/main", "engine=me/engine@main",
        "engine=me/engine/x@refs/heads/main", "=me/engine@refs/heads/main", "engine=@refs/*",
        "engine=me/engine@refs/heads/a\nb"}) {
    options.jobs = {wrong};
    EXPECT_FALSE(issuer_options(options, http)) << wrong;
  }
  options.jobs = {"engine=me/engine@refs/heads/main"};
  for (const char* wrong : {"http://token.actions.githubusercontent.com", "", "https://"}) {
    options.issuer = wrong;
    EXPECT_FALSE(issuer_options(options, http)) << wrong;
  }
}

TEST(ServeOptions, RequireTlsBeyondThisMachine) {
  sys::RealWorld real;
  Job job{real.world()};
  ServeOptions options;
  options.store.db = "/dev/null/history.db";
  for (const char* listen : {"0.0.0.0:0", "[::]:0", "10.1.2.3:0"}) {
    options.listen = listen;
    options.plain_http = false;
    const auto refused = serve_history(job, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::usage);
    EXPECT_THAT(refused.error().message, HasSubstr("--plain-http"));
    options.plain_http = true;  // goes on to the store
    EXPECT_THAT(serve_history(job, options).error().message, Not(HasSubstr("--plain-http")));
  }
}

verdict::GateVerdict failed_gate() {
  verdict::GateVerdict gate;
  gate.verdict = verdict::Outcome::fail;
  return gate;
}

class Posting : public testing::Test {
 protected:
  Posting() { github_.add_pull(7, std::string(40, 'a')); }
  // Posts what `say` announces, and waits for it.
  void post(const std::function<void(Poster&)>& say) {
    Poster poster(
        real_.world(), {{"engine", "o/r"}, {"nightly", "o/r"}},
        [this](const sys::Stop&) -> Result<std::unique_ptr<publish::Api>> {
          ++apis_created_;
          return std::make_unique<tests::StoreApi>(github_);
        },
        [this](const std::string& line) { lines_.push_back(line); }, 0);
    say(poster);
  }
  sys::RealWorld real_;
  tests::GithubStore github_;
  int apis_created_ = 0;
  std::vector<std::string> lines_;
};

TEST_F(Posting, SaysWhatWasJudgedWhereTheCommandLineSays) {
  post([](Poster& poster) { poster.announce({"engine", std::string(40, 'A'), 7}, failed_gate()); });
  EXPECT_EQ(apis_created_, 1);
  EXPECT_THAT(lines_,
              testing::UnorderedElementsAre("o/r: comment created", "o/r: check run created",
                                            "o/r: commit status created"));
}

TEST_F(Posting, OfAPassMakesNoCommentUnlessTheFoldersRulesSaySo) {
  verdict::GateVerdict passed;
  passed.verdict = verdict::Outcome::pass;
  passed.cells.emplace_back();
  passed.totals["pass"] = 1;
  post([&](Poster& poster) { poster.announce({"engine", std::string(40, 'a'), 7}, passed); });
  EXPECT_THAT(lines_, testing::UnorderedElementsAre("o/r: check run created",
                                                    "o/r: commit status created"));
  passed.comment = verdict::Comment::always;
  post([&](Poster& poster) { poster.announce({"nightly", std::string(40, 'a'), 7}, passed); });
  EXPECT_EQ(github_.comments(7).size(), 1U);
}

TEST_F(Posting, OfTwoProjectsNeverTakesTheOthersPlace) {
  verdict::GateVerdict passed;
  passed.verdict = verdict::Outcome::pass;
  post([&](Poster& poster) {
    poster.announce({"engine", std::string(40, 'a'), 7}, failed_gate());
    poster.announce({"nightly", std::string(40, 'a'), 7}, passed);
    poster.announce({"engine", std::string(40, 'a'), std::nullopt}, failed_gate());
  });
  std::vector<std::string> names, contexts;
  for (const Json& check_run : github_.check_runs()) names.push_back(check_run["name"]);
  for (const Json& status : github_.statuses(std::string(40, 'a')))
    contexts.push_back(status["context"]);
  EXPECT_THAT(names, testing::UnorderedElementsAre("weir: engine (main)", "weir: nightly (main)",
                                                   "weir: engine"));
  EXPECT_THAT(contexts, testing::UnorderedElementsAre("weir/engine (main #7)",
                                                      "weir/nightly (main #7)", "weir/engine"));
  EXPECT_EQ(github_.comments(7).size(), 2U);
}

// The commit of such a job is one that GitHub made, which no pull request shows.
TEST_F(Posting, OfAPullRequestsJobGoesToTheHeadThatItMeasured) {
  const std::string head(40, 'a'), merge(40, 'b'), stale(40, 'c');
  github_.set_parents(merge, {std::string(40, 'd'), head});
  github_.set_parents(stale, {std::string(40, 'd'), std::string(40, 'e')});
  post([&](Poster& poster) {
    poster.announce({"engine", stale, 7, true}, failed_gate());
    poster.announce({"engine", std::string(40, 'f'), 7, true}, failed_gate());  // nobody knows it
  });
  EXPECT_THAT(lines_, testing::Each(HasSubstr("o/r: not posted: ")));
  EXPECT_TRUE(github_.check_runs().empty());
  post([&](Poster& poster) { poster.announce({"engine", merge, 7, true}, failed_gate()); });
  ASSERT_EQ(github_.check_runs().size(), 1U);
  EXPECT_EQ(github_.check_runs()[0]["head_sha"], head);
  EXPECT_EQ(github_.statuses(head).size(), 1U);
  EXPECT_TRUE(github_.statuses(merge).empty());
}

TEST_F(Posting, LeavesOtherProjectsAndWhatNamesNothingAlone) {
  post([](Poster& poster) {
    poster.announce({"other", std::string(40, 'a'), 7}, failed_gate());
    poster.announce({"engine", std::nullopt, std::nullopt}, failed_gate());
  });
  EXPECT_EQ(apis_created_, 0);
}

TEST_F(Posting, SaysThatTheServiceEndsAndNotThatOthersWait) {
  const std::string ends = "engine: not posted: the service ends";
  std::set<std::string> lines;
  Poster* announcer = nullptr;
  {
    Poster poster(
        real_.world(), {{"engine", "o/r"}},
        [&](const sys::Stop&) -> Result<std::unique_ptr<publish::Api>> {
          while (!lines.contains(ends)) {
            announcer->announce({"engine", std::string(40, 'a'), 7}, failed_gate());
          }
          return fail(Code::unavailable, "no way");
        },
        [&](const std::string& line) { lines.insert(line); }, 0);
    announcer = &poster;
    poster.announce({"engine", std::string(40, 'a'), 7}, failed_gate());
  }
  EXPECT_THAT(lines, testing::Contains(ends));
}

TEST_F(Posting, TellsWhatFailedAndGoesOn) {
  int tries = 0;
  {
    Poster poster(
        real_.world(), {{"engine", "o/r"}},
        [&](const sys::Stop&) -> Result<std::unique_ptr<publish::Api>> {
          ++tries;
          return fail(Code::unavailable, "no way");
        },
        [this](const std::string& line) { lines_.push_back(line); }, 0);
    for (int i = 0; i < 3; ++i) poster.announce({"engine", std::string(40, 'a'), 7}, failed_gate());
  }
  EXPECT_EQ(tries, 3);
  EXPECT_THAT(lines_, testing::Each("o/r: not posted: no way"));
}

#endif

}  // namespace serve_test
}  // namespace weir::flow
