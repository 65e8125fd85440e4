// Tests that `private: true` redacts names, and that everything else stays unchanged.
#include "gate/config/redactor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/parse_text.hpp"

namespace weir::config {
namespace redactor_test {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::string k_config = R"(version: 1
engines:
  open: {command: [./open, '{model}', '{tokens}'], output: llama-bench}
  falcon: {command: [../bin/run-falcon, lib/falcon.so, '{model}', '{tokens}'],
           output: llama-bench, private: true}
models:
  public: public.gguf
  acme-13b: {path: ./weights/acme-secret.gguf, private: true}
backends: {cpu: {}}
prompts:
  decode: {tokens: 8}
  contract: {text: "Dear Ms Miller,\nyour offer of 5 million", tokens: 8, private: true}
)";

class Hiding : public testing::Test {
 protected:
  static Settings parse_valid(const std::string& config) {
    auto settings = parse_text(config);
    EXPECT_TRUE(settings) << settings.error().message;
    return std::move(*settings);
  }
  const Settings settings_ = parse_valid(k_config);
  const Redactor redactor_{settings_, "/home/us/project"};
};

TEST_F(Hiding, GivesEachPrivateNameAnAliasOfItsKind) {
  const std::string name = redactor_.cell_name("falcon/acme-13b/cpu/contract@d256");
  EXPECT_THAT(name,
              MatchesRegex("engine-[0-9a-f]{4}/model-[0-9a-f]{4}/cpu/prompt-[0-9a-f]{4}@d256"));
  EXPECT_EQ(redactor_.cell_name("open/public/cpu/decode"), "open/public/cpu/decode");
  EXPECT_TRUE(profile::CellKey::parse(name)) << "an alias is a name like any other";
}

TEST_F(Hiding, KeepsTheAliasWhereverTheEntryStands) {
  const Redactor second(parse_valid("version: 1\n"
                                    "engines: {e: {command: [e, '{model}', '{tokens}'],\n"
                                    "  output: llama-bench}}\n"
                                    "models: {z: {path: z, private: true}, a: a,\n"
                                    "         acme-13b: {path: elsewhere, private: true}}\n"
                                    "backends: {cpu: {}}\nprompts: {decode: {tokens: 8}}\n"),
                        "/other/place");
  profile::CellKey key;
  key.model = "acme-13b";
  EXPECT_EQ(second.cell(key).model, redactor_.cell(key).model);
}

TEST_F(Hiding, TakesNamesPathsAndPromptsOutOfText) {
  profile::CellKey key{"falcon", "default", "acme-13b", "cpu", "contract", {}, {}};
  key = redactor_.cell(key);
  struct Case {
    const char* text;
    std::string want;
  };
  const Case k_cases[] = {
      {"falcon/acme-13b/cpu/contract: exit 1",
       fmt::format("{}/{}/cpu/{}: exit 1", key.engine, key.model, key.prompt)},
      {"can't open '/home/us/project/weights/acme-secret.gguf'",
       fmt::format("can't open '{}'", key.model)},
      {"load ./weights/acme-secret.gguf", "load " + key.model},
      {"load weights/acme-secret.gguf", "load " + key.model},
      {"/mnt/cache/acme-secret.gguf is short", fmt::format("/mnt/cache/{} is short", key.model)},
      {"acme-secret-00001-of-00002", key.model + "-00001-of-00002"},
      {"/home/us/bin/run-falcon: not found", key.engine + ": not found"},
      {"run-falcon: lib/falcon.so: no", fmt::format("{0}: {0}: no", key.engine)},
      {"read: Dear Ms Miller,\nyour offer of 5 million", "read: " + key.prompt},
      {"> your offer of 5 million", "> " + key.prompt},
      {"contract_tokens and falcons and public.gguf",
       "contract_tokens and falcons and public.gguf"},
      {"ACME-13B and Acme-Secret.GGUF", fmt::format("{0} and {0}", key.model)},
      {"GET /v1?file=%2Fweights%2FAcme%2Dsecret.gguf HTTP",
       fmt::format("GET /v1?file=%2F{} HTTP", key.model)},
      {R"({"at":".\/weights\/acme\u002dsecret.gguf","n":1})",
       fmt::format(R"({{"at":"{}","n":1}})", key.model)},
      {R"(Dear Ms Miller,\nyour offer of 5 million)", fmt::format(R"({0}\n{0})", key.prompt)},
      {"%255Cacme%252d13b", "%255C" + key.model},
      {"100% of \\users", "100% of \\users"},
      {"", ""},
  };
  for (const Case& c : k_cases) {
    const std::string hidden = redactor_.text(c.text);
    EXPECT_EQ(hidden, c.want);
    EXPECT_EQ(redactor_.text(hidden), hidden) << "hidden twice is hidden once";
  }
}

TEST_F(Hiding, TakesEachStemOfAFileOutOfText) {
  const Redactor redactor(parse_valid("version: 1\nengines: {e: {command: [e, '{model}', "
                                      "'{tokens}'], output: llama-bench}}\nmodels: {m: {path: "
                                      "w/acme.q4.bin-00001-of-00003.gguf, private: true}}\n"
                                      "backends: {cpu: {}}\nprompts: {decode: {tokens: 8}}\n"),
                          "/home/us");
  profile::CellKey key;
  key.model = "m";
  const std::string alias = redactor.cell(key).model;
  for (const char* text : {"acme", "acme.q4", "acme.q4.bin", "acme.q4.bin-00001-of-00003",
                           "acme.q4.bin-00001-of-00003.gguf"}) {
    EXPECT_EQ(redactor.text(text), alias) << text;
  }
}

TEST_F(Hiding, HidesWhatEitherConfigurationHidesOnceTheyAreJoined) {
  const Redactor other(parse_valid("version: 1\nengines: {e: {command: [e, '{model}', "
                                   "'{tokens}'], output: llama-bench}}\n"
                                   "models: {heron: {path: heron.gguf, private: true}}\n"
                                   "backends: {cpu: {}}\n"
                                   "prompts: {contract: {tokens: 4, private: true}}\n"),
                       "/home/us/project");
  const std::string both = "heron and acme-13b at falcon: contract";
  Redactor joined = redactor_;
  joined.join(other);
  EXPECT_EQ(joined.text(both), redactor_.text(other.text(both)));
  EXPECT_EQ(joined.cell_name("e/heron/cpu/contract"), other.cell_name("e/heron/cpu/contract"));
  EXPECT_EQ(joined.text("Dear Ms Miller,\nyour offer of 5 million"), joined.text("contract"));
}

TEST_F(Hiding, GivesTwoNamesTwoAliases) {
  // More names than four digits tell apart with luck: by the birthday bound some pair meets.
  Settings settings;
  for (int i = 0; i < 600; ++i) {
    settings.models.push_back({fmt::format("m{}", i), "p", {}, true, ""});
  }
  const Redactor redactor(settings, "/");
  std::set<std::string> aliases;
  for (const ModelSettings& model : settings.models) {
    profile::CellKey key;
    key.model = model.name;
    aliases.insert(redactor.cell(key).model);
  }
  EXPECT_EQ(aliases.size(), 600U);
}

TEST(NothingPrivate, IsHidden) {
  EXPECT_FALSE(Redactor().hides());
  EXPECT_EQ(Redactor().text("model-1a2b"), "model-1a2b");
  EXPECT_EQ(Redactor().cell_name("a/b/c/d"), "a/b/c/d");
}

}  // namespace redactor_test
}  // namespace weir::config
