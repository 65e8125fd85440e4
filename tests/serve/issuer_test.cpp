// Tests tokens of CI jobs: signature, audience, permissions. The issuer is a key that the test
// generates.
#include "gate/serve/issuer.hpp"

#include <algorithm>
#include <thread>

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "gate/history/json_lines.hpp"

#include "tests/serve/support.hpp"

namespace weir::serve {
namespace issuer_test {

std::string url64(std::string_view bytes) {
  std::string text = base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

class TestIssuer {
 public:
  explicit TestIssuer(unsigned bits = 2048) : key_(EVP_RSA_gen(bits), EVP_PKEY_free) {}

  // Returns a JSON Web Key, as GitHub publishes them.
  [[nodiscard]] Json jwk(const std::string& kid) const {
    const auto number = [&](const char* name) {
      BIGNUM* value = nullptr;
      EVP_PKEY_get_bn_param(key_.get(), name, &value);
      std::string bytes(static_cast<std::size_t>(BN_num_bytes(value)), '\0');
      BN_bn2bin(value, reinterpret_cast<unsigned char*>(bytes.data()));
      BN_free(value);
      return url64(bytes);
    };
    return {{"kty", "RSA"},     {"alg", "RS256"},   {"use", "sig"}, {"kid", kid},
            {"n", number("n")}, {"e", number("e")}, {"x5t", "?"}};
  }
  [[nodiscard]] std::string keys(const std::string& kid = "k1") const {
    return dump_json(Json{{"keys", {jwk(kid)}}});
  }
  [[nodiscard]] std::string sign(const Json& claims, const Json& header) const {
    const std::string text = url64(dump_json(header)) + "." + url64(dump_json(claims));
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          EVP_MD_CTX_free);
    std::string signature(512, '\0');
    std::size_t size = signature.size();
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get());
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                   text.size());
    signature.resize(size);
    return text + "." + url64(signature);
  }
  [[nodiscard]] std::string sign(const Json& claims) const {
    return sign(claims, {{"alg", "RS256"}, {"typ", "JWT"}, {"kid", "k1"}});
  }

 private:
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
};

const TestIssuer& github() {
  static const TestIssuer k_issuer;
  return k_issuer;
}

constexpr double k_now = 1'795'167'015;
const std::string k_commit(40, 'a');

Json claims(const Json& others = Json::object()) {
  Json all{{"iss", "https://token.actions.githubusercontent.com"},
           {"aud", "https://perf.example.org"},
           {"sub", "repo:me/engine:ref:refs/heads/main"},
           {"repository", "me/engine"},
           {"repository_id", "74"},
           {"ref", "refs/heads/main"},
           {"sha", k_commit},
           {"event_name", "push"},
           {"job_workflow_ref", "me/engine/.github/workflows/perf.yml@refs/heads/main"},
           {"iat", k_now - 10},
           {"nbf", k_now - 10},
           {"exp", k_now + 290}};
  all.update(others);
  return all;
}

IssuerOptions make_options(std::vector<IssuerRule> rules = {
                               {"engine", "me/engine", "refs/heads/main"}}) {
  IssuerOptions options;
  options.audience = "https://perf.example.org";
  options.rules = std::move(rules);
  options.fetch = [] { return Result<std::string>(github().keys()); };
  return options;
}

// Returns the reason of a refusal; "" if access is granted.
std::string refusal(const Json& claims, const IssuerOptions& options = make_options()) {
  const auto grant = find_grant(claims, options, k_now);
  return grant ? "" : grant.error().message;
}

TEST(IssuerToken, IsGrantedWhatItsRuleSays) {
  const auto keys = parse_issuer_keys(github().keys());
  ASSERT_TRUE(keys) << keys.error().message;
  const std::string token = github().sign(claims());
  EXPECT_EQ(value_of(parse_key_id(token)), "k1");
  const Json checked = value_of(verify_claims(token, *keys->at("k1")));
  const Grant grant = value_of(find_grant(checked, make_options(), k_now));
  EXPECT_EQ(grant.rule.project, "engine");
  EXPECT_EQ(grant.ref, "refs/heads/main");
  EXPECT_EQ(grant.commit, k_commit);
}

TEST(IssuerToken, IsRefusedWhereAClaimIsNotAsItShouldBe) {
  struct Case {
    Json claims;
    std::string words;
  };
  for (const Case& c : std::vector<Case>{
           {{{"iss", "https://evil.example"}}, "issuer"},
           {{{"iss", "https://token.actions.githubusercontent.com/"}}, "issuer"},
           {{{"aud", "https://other.example.org"}}, "audience"},
           {{{"aud", {"https://perf.example.org", "x"}}}, "aud"},
           {{{"repository", "me/engine2"}}, "no rule"},
           {{{"repository", "evil/engine"}}, "no rule"},
           {{{"ref", "refs/heads/feature"}}, "no rule"},
           {{{"ref", "refs/heads/main2"}}, "no rule"},
           {{{"ref", "refs/tags/main"}}, "no rule"},
           {{{"event_name", "pull_request_target"}}, "event"},
           {{{"event_name", "issue_comment"}}, "event"},
           {{{"event_name", "workflow_run"}}, "event"},
           {{{"event_name", "pull_request"}}, "event"},  // a merged pull request on refs/heads
           {{{"exp", k_now - 61}}, "expired"},
           {{{"nbf", k_now + 61}}, "not valid yet"},
           {{{"iat", k_now + 61}}, "not valid yet"},
           {{{"exp", "never"}}, "exp"},
           {{{"exp", nullptr}}, "exp"},
           {{{"ref", 7}}, "ref"},
       }) {
    EXPECT_THAT(refusal(claims(c.claims)), testing::HasSubstr(c.words)) << c.claims;
  }
  for (const char* name :
       {"iss", "aud", "exp", "iat", "repository", "repository_id", "ref", "sha", "event_name"}) {
    Json some = claims();
    some.erase(name);
    EXPECT_THAT(refusal(some), testing::HasSubstr(name));
  }
  EXPECT_NE(refusal(Json::array()), "");
}

TEST(IssuerToken, MayBeAMinuteLateOrEarly) {
  EXPECT_EQ(refusal(claims({{"exp", k_now - 59}})), "");
  EXPECT_EQ(refusal(claims({{"nbf", k_now + 59}, {"iat", k_now + 59}})), "");
}

TEST(IssuerToken, GoesByTheFirstRuleThatFits) {
  const IssuerOptions options = make_options({{"by-number", "74", "refs/heads/release/*"},
                                              {"pulls", "ME/Engine", "refs/pull/*"},
                                              {"rest", "me/engine", "refs/heads/*"}});
  const auto project = [&](const Json& others) {
    return value_of(find_grant(claims(others), options, k_now)).rule.project;
  };
  EXPECT_EQ(project({{"ref", "refs/heads/release/1"}}), "by-number");
  EXPECT_EQ(project({{"ref", "refs/heads/release/1"}, {"repository", "me/renamed"}}), "by-number");
  EXPECT_EQ(project({{"ref", "refs/pull/7/merge"}, {"event_name", "pull_request"}}), "pulls");
  EXPECT_EQ(project({{"ref", "refs/heads/main"}}), "rest");
  // A later repository has the same name.
  const IssuerOptions number = make_options({{"engine", "74", "refs/heads/main"}});
  EXPECT_NE(refusal(claims({{"repository_id", "75"}}), number), "");
  // A name is no number.
  EXPECT_NE(refusal(claims({{"repository", "74"}, {"repository_id", "75"}}), make_options()), "");
}

TEST(IssuerToken, IsRefusedWhereItsKeyDidNotSignIt) {
  const auto keys = value_of(parse_issuer_keys(github().keys()));
  evp_pkey_st& key = *keys.at("k1");
  const std::string token = github().sign(claims());
  ASSERT_TRUE(verify_claims(token, key));
  EXPECT_FALSE(verify_claims(TestIssuer().sign(claims()), key));
  // Changes any byte of the token.
  const std::size_t body = token.find('.') + 1, end = token.rfind('.');
  for (const std::size_t at : {std::size_t{3}, body + 5, end - 3, end + 7}) {
    std::string changed = token;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(verify_claims(changed, key)) << at;
  }
  EXPECT_FALSE(verify_claims(token.substr(0, end + 1), key));
  EXPECT_FALSE(verify_claims(token.substr(0, token.size() - 4), key));
}

// Uses alg "none", and an HMAC with the public key as its secret, which everybody has.
TEST(IssuerToken, IsCheckedByRs256WhateverItSays) {
  for (const char* alg : {"none", "None", "HS256", "RS384", "PS256", "ES256", ""}) {
    const std::string token = github().sign(claims(), {{"alg", alg}, {"kid", "k1"}});
    EXPECT_FALSE(parse_key_id(token)) << alg;
    EXPECT_FALSE(parse_key_id(token.substr(0, token.rfind('.') + 1))) << alg;
  }
  EXPECT_FALSE(
      parse_key_id(github().sign(claims(), {{"alg", "RS256"}, {"kid", "k1"}, {"crit", {"b64"}}})));
  EXPECT_FALSE(parse_key_id(github().sign(claims(), {{"alg", "RS256"}})));
  EXPECT_FALSE(
      parse_key_id(github().sign(claims(), {{"alg", "RS256"}, {"kid", std::string(201, 'k')}})));
  const std::string good = github().sign(claims());
  for (const std::string& text :
       {std::string(), std::string(".."), std::string("a.b.c"), good + ".x", "=" + good,
        good + std::string(9000, 'A'), std::string(100'000, '.')}) {
    EXPECT_FALSE(parse_key_id(text)) << text.substr(0, 50);
  }
}

TEST(IssuerKeys, AreRsaOf2048BitsAtLeast) {
  Json set{{"keys", Json::array()}};
  const auto is_accepted = [&](const Json& key) {
    set["keys"] = Json::array({key});
    return parse_issuer_keys(dump_json(set)).has_value();
  };
  const Json good = github().jwk("k1");
  EXPECT_TRUE(is_accepted(good));
  EXPECT_FALSE(is_accepted(TestIssuer(1024).jwk("k1")));
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, Json>>{{"kty", "EC"},
                                                 {"kty", "oct"},
                                                 {"alg", "HS256"},
                                                 {"use", "enc"},
                                                 {"kid", ""},
                                                 {"kid", 7},
                                                 {"n", ""},
                                                 {"n", "!"},
                                                 {"n", std::string(2000, 'A')},
                                                 {"n", "_" + std::string(1400, '_')},
                                                 {"e", ""},
                                                 {"e", "AQABAQAB"}}) {
    Json changed = good;
    changed[name] = value;
    EXPECT_FALSE(is_accepted(changed)) << name << " " << value;
  }
  // Keys of another kind are left out, not refused.
  set["keys"] = {{{"kty", "EC"}, {"kid", "e"}}, good, 7};
  EXPECT_EQ(value_of(parse_issuer_keys(dump_json(set))).size(), 1U);
  for (const char* text : {"", "[]", "{}", "{\"keys\": 7}", "{\"keys\": []}"}) {
    EXPECT_FALSE(parse_issuer_keys(text)) << text;
  }
}

TEST(Issuer, FetchesKeysThatItDoesNotKnowOnceAMinute) {
  int fetched = 0;
  std::string kid = "k0";
  IssuerOptions options = make_options();
  options.fetch = [&]() -> Result<std::string> {
    ++fetched;
    if (kid.empty()) return fail(Code::unavailable, "no answer");
    return github().keys(kid);
  };
  Issuer issuer(options);
  const std::string token = github().sign(claims());
  EXPECT_TRUE(issuer.find(token, k_now, 0).wants_keys);
  EXPECT_EQ(fetched, 0);  // looking up does not wait
  ASSERT_TRUE(issuer.renew(0));
  EXPECT_FALSE(issuer.find(token, k_now, 59).wants_keys);
  kid = "k1";
  ASSERT_TRUE(issuer.renew(59));
  EXPECT_EQ(fetched, 1);
  EXPECT_TRUE(issuer.find(token, k_now, 60).wants_keys);
  ASSERT_TRUE(issuer.renew(60));
  EXPECT_EQ(fetched, 2);
  EXPECT_TRUE(issuer.find(token, k_now, 60).grant);
  // Keys stay if the issuer does not answer.
  kid = "";
  EXPECT_FALSE(issuer.renew(120));
  EXPECT_TRUE(issuer.find(token, k_now, 120).grant);
  EXPECT_FALSE(issuer.find(token, k_now + 1000, 120).grant);
  EXPECT_FALSE(issuer.find("weir_0.1.2", k_now, 500).wants_keys);
}

class JobUploads : public ServiceTest {
 protected:
  std::unique_ptr<Service> begin(std::vector<IssuerRule> rules) {
    ServiceOptions wanted = options();
    wanted.clock = &clock_;
    wanted.issuer = make_options(std::move(rules));
    wanted.judge = judge_;
    wanted.announcer = announcer_;
    auto service = start(std::move(wanted));
    // Keys are being fetched: a request in the meantime gets 503.
    while (ask(*service, {Method::get, "/api/v1/projects", github().sign(claims())}).status ==
           503) {
      std::this_thread::yield();
    }
    return service;
  }
  SetClock clock_;
  Judge* judge_ = nullptr;
  Announcer* announcer_ = nullptr;
};

TEST_F(JobUploads, AreKeptUnderWhatTheirTokenSaysAndNothingElse) {
  const auto service = begin({{"engine", "me/engine", "refs/heads/*"}});
  const std::string job = github().sign(claims());
  const auto status = [&](const std::string& query, const std::string& token) {
    return ask(*service, make_upload(token, profiles_text(65), "/api/v1/runs?" + query)).status;
  };
  EXPECT_EQ(status("project=engine", job), 201);
  history::Filter all;
  const history::History stored = value_of(store()->history().history(all));
  ASSERT_EQ(stored.runs.size(), 1U);
  EXPECT_EQ(stored.runs[0].commit, k_commit);
  EXPECT_EQ(stored.runs[0].branch, "main");
  EXPECT_EQ(status("project=engine&branch=main&commit=" + k_commit, job), 200);
  EXPECT_EQ(status("project=other", job), 403);
  EXPECT_EQ(status("project=engine&branch=other", job), 403);
  EXPECT_EQ(status("project=engine&commit=" + std::string(40, 'b'), job), 403);
  EXPECT_EQ(status("project=engine&commit=aaaa", job), 403);
  EXPECT_EQ(status("project=engine&pull=7", job), 403);
  EXPECT_EQ(status("project=engine&supersedes=r", job), 403);
  EXPECT_EQ(status("project=engine", github().sign(claims({{"repository", "evil/engine"}}))), 401);
  EXPECT_EQ(status("project=engine", TestIssuer().sign(claims())), 401);
  EXPECT_EQ(ask(*service, {Method::post, "/api/v1/runs?project=engine", job, "application/x-ndjson",
                           history::first_line() + "\n"})
                .status,
            403);
  // The token cannot read or remove anything, and it is no password.
  EXPECT_EQ(ask(*service, {Method::get, "/api/v1/series?project=engine", job}).status, 403);
  EXPECT_EQ(ask(*service, {Method::remove, "/api/v1/runs/r?project=engine", job}).status, 403);
  ClientRequest basic = make_upload("", profiles_text(65), "/api/v1/runs?project=engine");
  basic.headers = {{"authorization", "Basic " + base64("x:" + job)}};
  EXPECT_EQ(ask(*service, basic).status, 401);
  clock_.seconds = 1000;
  EXPECT_EQ(status("project=engine", job), 401);
}

TEST_F(JobUploads, OfAPullRequestAreOfThatOne) {
  const auto service = begin({{"engine", "me/engine", "refs/pull/*"}});
  const std::string job =
      github().sign(claims({{"ref", "refs/pull/7/merge"}, {"event_name", "pull_request"}}));
  const auto status = [&](const std::string& query) {
    return ask(*service, make_upload(job, profiles_text(65), "/api/v1/runs?project=engine" + query))
        .status;
  };
  EXPECT_EQ(status("&pull=7"), 201);
  EXPECT_EQ(status("&pull=8"), 403);
  EXPECT_EQ(status("&branch=main"), 403);
}

// Judges every upload and records the announcements.
class Pulls final : public Judge, public Announcer {
 public:
  Result<std::optional<verdict::GateVerdict>> judge(const Arrival&,
                                                    std::span<const profile::Profile>) override {
    return verdict::GateVerdict{};
  }
  void announce(const Arrival& arrival, verdict::GateVerdict) override {
    announced +=
        fmt::format("{}{} ", arrival.pull_request.value_or(0), arrival.is_merge ? "m" : "");
  }
  std::string announced;
};

// The upload may name the pull request or not: the token's commit is GitHub's merge commit.
TEST_F(JobUploads, OfAPullRequestAreAnnouncedAsItsMerge) {
  Pulls pulls;
  judge_ = &pulls;
  announcer_ = &pulls;
  auto service =
      begin({{"engine", "me/engine", "refs/pull/*"}, {"engine", "me/engine", "refs/heads/*"}});
  const auto send = [&](const Json& others) {
    return ask(*service, make_upload(github().sign(claims(others)), profiles_text(65),
                                     "/api/v1/runs?project=engine"))
        .status;
  };
  EXPECT_EQ(send({{"ref", "refs/pull/7/merge"}, {"event_name", "pull_request"}}), 201);
  EXPECT_EQ(send({{"ref", "refs/heads/main"}}), 201);
  service.reset();
  EXPECT_EQ(pulls.announced, "7m 0 ");
}

TEST_F(JobUploads, WaitForKeysAndAreRefusedWhereNoneCome) {
  ServiceOptions wanted = options();
  wanted.clock = &clock_;
  wanted.is_public = true;
  wanted.issuer = make_options();
  wanted.issuer->fetch = []() -> Result<std::string> { return fail(Code::unavailable, "none"); };
  const auto service = start(std::move(wanted));
  const Reply got = ask(*service, make_upload(github().sign(claims()), profiles_text(65),
                                              "/api/v1/runs?project=engine"));
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.header("Retry-After"), "2");
  EXPECT_EQ(ask(*service, {Method::get, "/api/v1/projects"}).status, 200);
}

}  // namespace issuer_test
}  // namespace weir::serve
