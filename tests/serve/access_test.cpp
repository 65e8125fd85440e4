// Tests tokens: who is let in, and how often.
#include "gate/serve/access.hpp"

#include <set>

#include <gmock/gmock.h>

#include "gate/base/encode.hpp"

namespace weir::serve {
namespace access_test {

NewToken create_token(const std::string& project, const std::string& scopes) {
  history::StoredToken wanted;
  wanted.project = project;
  wanted.scopes = scopes;
  return *make_token(wanted);
}

Caller find(Access& access, const std::string& text, double now = 0, double steady = 0,
            bool again = false) {
  return access.find(Credential{text, false}, now, steady, again);
}

TEST(Token, HasAFormThatSecretScannersFind) {
  const NewToken token = create_token("*", "read");
  EXPECT_THAT(token.text.reveal(), testing::MatchesRegex("weir_[0-9a-f]+_[0-9a-f]+"));
  EXPECT_EQ(token.text.reveal().size(), 5U + 12 + 1 + 48);  // 48 digits are 192 bits
  EXPECT_EQ(parse_token_id(token.text.reveal()), token.stored.id);
}

TEST(Token, IsAnotherEachTime) {
  std::set<std::string> ids, texts;
  for (int i = 0; i < 100; ++i) {
    const NewToken token = create_token("*", "read");
    ids.insert(token.stored.id);
    texts.insert(token.text.reveal());
  }
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_EQ(texts.size(), 100U);
}

TEST(Token, IsKeptAsItsHashAlone) {
  const NewToken token = create_token("*", "read");
  EXPECT_EQ(token.stored.hash, sha256_hex(token.text.reveal()));
  EXPECT_EQ(token.stored.hash.find(token.text.reveal().substr(18)), std::string::npos);
  // Example of FIPS 180-4.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Token, OfAnotherFormIsNone) {
  const std::string good = "weir_" + std::string(12, 'a') + "_" + std::string(48, 'b');
  ASSERT_TRUE(parse_token_id(good));
  for (const std::string& text :
       {std::string(), std::string("weir_"), good + "b", good.substr(1), "WEIR" + good.substr(4),
        good.substr(0, 17) + "-" + good.substr(18),
        "weir_" + std::string(12, 'A') + good.substr(17), good.substr(0, 65) + "\n",
        good.substr(0, 64) + std::string(2, '\0')}) {
    EXPECT_FALSE(parse_token_id(text)) << text;
  }
}

TEST(Token, AllowsWhatItsScopesAndProjectsSay) {
  struct Case {
    const char *project, *scopes;
    Scope scope;
    const char* requested_project;
    bool allowed;
  };
  for (const Case& c : std::vector<Case>{
           {"engine", "upload", Scope::upload, "engine", true},
           {"engine", "upload", Scope::read, "engine", false},
           {"engine", "upload", Scope::upload, "engine2", false},
           {"engine", "upload", Scope::upload, "Engine", false},
           {"engine-*", "read upload", Scope::read, "engine-b", true},
           {"engine-*", "read upload", Scope::read, "engine", false},
           {"*", "admin", Scope::upload, "any", true},
           {"a", "admin", Scope::read, "b", false},
           {"*", "", Scope::read, "a", false},
           {"*", "administrator reader", Scope::read, "a", false},
           {"", "read", Scope::read, "a", false},
       }) {
    history::StoredToken token;
    token.project = c.project;
    token.scopes = c.scopes;
    EXPECT_EQ(allows(token, c.scope, c.requested_project), c.allowed)
        << c.project << " " << c.scopes << " " << c.requested_project;
  }
}

TEST(Token, OfEveryProjectIsAStarAlone) {
  history::StoredToken token;
  token.scopes = "read";
  for (const auto& [project, all] : std::vector<std::pair<const char*, bool>>{
           {"*", true}, {"**", true}, {"", false}, {"a*", false}, {"engine", false}}) {
    token.project = project;
    EXPECT_EQ(allows_all(token, Scope::read), all) << project;
    EXPECT_FALSE(allows_all(token, Scope::upload)) << project;
  }
}

TEST(Credential, IsReadFromAnAuthorizationHeader) {
  const auto text = [](const std::string& header) {
    const auto credential = parse_credential(&header);
    return credential ? credential->text + (credential->basic ? " (basic)" : "")
                      : std::string("none");
  };
  EXPECT_EQ(text("Bearer abc"), "abc");
  EXPECT_EQ(text("bearer   abc"), "abc");
  EXPECT_EQ(text("Basic " + base64("somebody:a:b")), "a:b (basic)");
  for (const std::string& none :
       {std::string(), std::string("Basic"), std::string("Basic ***"), "Basic " + base64("nothing"),
        std::string("Digest abc"), "Bearer " + std::string(10'000, 'a')}) {
    EXPECT_EQ(text(none), "none") << none;
  }
  EXPECT_FALSE(parse_credential(nullptr));
}

TEST(Access, KnowsATokenByAllOfIt) {
  Access access({}, nullptr);
  const NewToken token = create_token("*", "read"), second = create_token("*", "admin");
  access.put({token.stored, second.stored});
  const Caller caller = find(access, token.text.reveal());
  ASSERT_EQ(caller.standing, Standing::identified);
  EXPECT_EQ(caller.token->id, token.stored.id);
  // Joins the id of one token and the rest of another; then changes each digit.
  std::string mixed = token.text.reveal().substr(0, 18) + second.text.reveal().substr(18);
  EXPECT_EQ(find(access, mixed).standing, Standing::unknown);
  for (std::size_t at = 18; at < 66; ++at) {
    std::string wrong = token.text.reveal();
    wrong[at] = wrong[at] == '0' ? '1' : '0';
    EXPECT_EQ(find(access, wrong).standing, Standing::unknown) << at;
  }
  EXPECT_EQ(access.find(std::nullopt, 0, 0, true).standing, Standing::anonymous);
}

TEST(Access, KnowsNoTokenThatIsOverOrRevoked) {
  Access access({}, nullptr);
  NewToken token = create_token("*", "read");
  token.stored.expires_at = 100;
  access.put({token.stored});
  EXPECT_EQ(find(access, token.text.reveal(), 99).standing, Standing::identified);
  EXPECT_EQ(find(access, token.text.reveal(), 100).standing, Standing::unknown);
  token.stored.revoked_at = 50;
  access.put({token.stored});
  EXPECT_EQ(find(access, token.text.reveal(), 99).standing, Standing::unknown);
}

// A token may be new, so the store is asked for it, but not on every request.
TEST(Access, AsksForATokenThatIsNotKnownOnceInAWhile) {
  Access access({}, nullptr);
  const std::string text = create_token("*", "read").text.reveal();
  EXPECT_EQ(find(access, text, 0, 10, true).standing, Standing::unverified);
  EXPECT_EQ(find(access, text, 0, 10.5, true).standing, Standing::unknown);
  EXPECT_EQ(find(access, text, 0, 11, false).standing, Standing::unknown);
  EXPECT_EQ(find(access, text, 0, 11, true).standing, Standing::unverified);
  EXPECT_EQ(find(access, "no token", 0, 99, true).standing, Standing::unknown);
}

TEST(Rates, RefillWithTime) {
  Rates rates({.burst = 2, .a_second = 0.5});
  EXPECT_EQ(rates.take("a", 0), std::nullopt);
  EXPECT_EQ(rates.take("a", 0), std::nullopt);
  EXPECT_EQ(rates.take("a", 0), 2);  // one in two seconds
  EXPECT_EQ(rates.take("b", 0), std::nullopt);
  EXPECT_EQ(rates.take("a", 1), 1);
  EXPECT_EQ(rates.take("a", 2), std::nullopt);
  EXPECT_EQ(rates.take("a", 1000), std::nullopt);
  EXPECT_EQ(rates.take("a", 1000), std::nullopt);  // never more than the burst
  EXPECT_EQ(rates.take("a", 1000), 2);
}

TEST(Rates, KeepABoundedNumberOfKeys) {
  Rates rates({.burst = 1, .a_second = 0.001, .keys = 3});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(rates.take(std::to_string(i), i * 0.001), std::nullopt);
  }
  EXPECT_NE(rates.take("99", 0.2), std::nullopt);  // the last ones are still stored
  EXPECT_EQ(rates.take("0", 0.2), std::nullopt);   // the first one was dropped
}

TEST(Rates, ForgetThoseThatWereNotAskedForLongest) {
  Rates rates({.burst = 1, .a_second = 1e-6, .keys = 80});
  for (int i = 0; i <= 80; ++i) EXPECT_EQ(rates.take(std::to_string(i), i), std::nullopt);
  for (int i = 80; i >= 10; --i) EXPECT_NE(rates.take(std::to_string(i), 100), std::nullopt) << i;
  EXPECT_EQ(rates.take("0", 100), std::nullopt);  // an eighth was dropped: 0 to 9
}

TEST(Access, CountsRefusalsOfAnIPv6NetworkTogether) {
  AccessLimits limits;
  limits.refusals = {.burst = 1, .a_second = 0.001};
  Access access(limits, nullptr);
  EXPECT_EQ(access.count_refusal("2001:db8::1", 0), std::nullopt);
  EXPECT_NE(access.count_refusal("2001:db8::ffff:2", 0), std::nullopt);
  EXPECT_EQ(access.count_refusal("2001:db8:0:1::1", 0), std::nullopt);
  EXPECT_EQ(access.count_refusal("192.0.2.1", 0), std::nullopt);
  EXPECT_EQ(access.count_refusal("192.0.2.2", 0), std::nullopt);
  EXPECT_EQ(access.count_refusal("nobody", 0), std::nullopt);
}

}  // namespace access_test
}  // namespace weir::serve
