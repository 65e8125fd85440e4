// weir calibrate with an engine that reports the same times whatever the machine does
// (tests/flow/calibrate_test.cpp has times that vary).
#include <gmock/gmock.h>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {
namespace calibrate_test {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string k_fake = WEIR_BINARY_DIR "/tests/fake_engines/fake_engine";
const std::string k_arguments =
    "-m, '{model}', -p, '{prompt_tokens}', -n, '{tokens}', -r, '{repeats}'";

class Calibrate : public testing::Test {
 protected:
  void write_config(const std::string& program = k_fake, const std::string& limits = "",
                    const std::string& more = "") {
    spill(scratch_ / "model.bin", "no model at all");
    spill(scratch_ / "weir.yaml",
          "version: 1\nengines:\n  fake: {command: [" + program + ", ok, " + k_arguments +
              "], output: llama-bench, timeout: 10m}\n" + "models: {m: {path: model.bin" + more +
              "}}\nbackends: {cpu: {}}\nprompts: {decode: {prompt_tokens: 0, tokens: 8}}\n" +
              limits + "gate: {repeats: 1, budget: 2h}\n");
  }
  Ended run(const std::vector<std::string>& words) {
    return weir(scratch_, words, {{"WEIR_CACHE", (scratch_ / "cache").string()}});
  }
  [[nodiscard]] std::vector<fs::path> saved_cells() const {
    std::vector<fs::path> files;
    const fs::path folder = scratch_ / "cache/calibration";
    if (!fs::exists(folder)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  Scratch scratch_;
};

TEST_F(Calibrate, SaysThatTheMachineHoldsTheLimitAndKeepsThat) {
  write_config();
  const Ended ended = run({"calibrate", "--pairs", "20", "--replays", "200", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("This machine can hold 5 %"));
  const Json json = json_of(ended);
  EXPECT_EQ(json["schema"], "weir.calibration/1");
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["replays"], 200);
  EXPECT_GE(json["cells"].at(0)["pairs"], 20);
  EXPECT_EQ(json["cells"].at(0)["metrics"].at(0)["noise"], 0);
  ASSERT_EQ(saved_cells().size(), 1U);
  EXPECT_EQ((*parse_json(slurp(saved_cells()[0])))["schema"], "weir.calibrated_cell/1");
  // Both sides ran the same program, by two paths of one length.
  std::vector<std::string> links;
  for (const auto& entry : fs::directory_iterator(scratch_ / "cache/sides")) {
    links.push_back(entry.path().filename());
  }
  EXPECT_EQ(links.size(), 2U);
}

TEST_F(Calibrate, IsToldBesideTimedVerdictsAndInThePlan) {
  write_config();
  const std::vector<std::string> gate{"gate", "--against", "--", k_fake, "ok"};
  const auto with_arguments = [&](std::vector<std::string> words) {
    for (const char* word :
         {"-m", "{model}", "-p", "{prompt_tokens}", "-n", "{tokens}", "-r", "{repeats}"}) {
      words.emplace_back(word);
    }
    return words;
  };
  const Ended before = run(with_arguments(gate));
  EXPECT_EQ(before.exit_code, 0) << before.err;
  EXPECT_THAT(before.out, HasSubstr("it has not run here yet"));
  ASSERT_EQ(run({"calibrate", "-q", "--pairs", "16", "--replays", "50"}).exit_code, 0);
  const Ended after = run(with_arguments(gate));
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_THAT(after.out, HasSubstr("on this machine: 5 % takes about"));
  EXPECT_THAT(after.out, Not(HasSubstr("it has not run here yet")));
  EXPECT_THAT(after.err, HasSubstr(" here ("));
  // Another limit is another question.
  write_config(k_fake, "limits: [{metrics: '*tokens_per_second', max_drop: 20%}]\n");
  EXPECT_THAT(run(with_arguments(gate)).out, HasSubstr("it has not run here yet"));
}

TEST_F(Calibrate, OfTwoBuildsTellsWhatTheyDifferBy) {
  const std::string script = "#!/bin/sh\nexec " + k_fake + " \"$@\"\n";
  spill_program(scratch_ / "one/engine", script);
  spill_program(scratch_ / "two/one/engine",
                "#!/bin/sh\nFAKE_ENGINE_NS=14000000 exec " + k_fake + " \"$@\"\n");
  // The candidate is the faster one: 40 % is beyond any doubt within a few pairs.
  write_config("./one/engine");
  const Ended ended = run({"calibrate", "--pairs", "24", "--replays", "50", "--against",
                           (scratch_ / "two").string(), "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const Json json = json_of(ended);
  EXPECT_EQ(json["two_builds"], true);
  EXPECT_EQ(json["seen_failed"], 0);
  EXPECT_THAT(ended.err, HasSubstr("two builds"));
  fs::rename(scratch_ / "one/engine", scratch_ / "fast");
  fs::copy(scratch_ / "two/one/engine", scratch_ / "one/engine");
  fs::copy(scratch_ / "fast", scratch_ / "two/one/engine", fs::copy_options::overwrite_existing);
  const Ended slower = run({"calibrate", "--pairs", "24", "--replays", "50", "--against",
                            (scratch_ / "two").string(), "--json"});
  EXPECT_EQ(json_of(slower)["seen_failed"], 50);
  EXPECT_EQ(json_of(slower)["failed"], 0);
}

TEST_F(Calibrate, RefusesWhatCanNotBeCalibrated) {
  struct Case {
    std::vector<std::string> words;
    std::string limits, message;
  };
  const Case cases[] = {
      {{"calibrate"},
       "limits: [{metrics: '*tokens_per_second', mode: report}]\n",
       "no cell has a limit on a time that gates"},
      {{"calibrate", "--budget", "nonsense"}, "", "nonsense"},
      {{"calibrate", "--against"}, "", "--against takes another build"},
      {{"calibrate", "--", "x"}, "", "--against -- COMMAND"},
      {{"calibrate", "--budget", "1ms"}, "", "--pairs asks for"},
      {{"calibrate", "--pairs", "3"}, "", "--pairs"},
  };
  for (const Case& c : cases) {
    write_config(k_fake, c.limits);
    const Ended ended = run(c.words);
    EXPECT_EQ(ended.exit_code, 2) << c.message << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(c.message));
  }
  EXPECT_TRUE(saved_cells().empty());
}

TEST_F(Calibrate, ShowsNoPrivateName) {
  write_config(k_fake, "", ", private: true");
  const Ended ended = run({"calibrate", "--pairs", "16", "--replays", "20", "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("model.bin")));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("/m/")));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(" m /")));
}

TEST_F(Calibrate, ACellThatFailsIsSaidAndNotKept) {
  write_config("/bin/false");
  const Ended ended = run({"calibrate", "--pairs", "16", "--replays", "20"});
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("error fake / m / cpu / decode"));
  EXPECT_TRUE(saved_cells().empty());
}

}  // namespace calibrate_test
}  // namespace weir::e2e
