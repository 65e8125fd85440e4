// What a pull request commits where weir writes, or where tools leave their results.
#include <gmock/gmock.h>

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace committed_test {

using testing::HasSubstr;

class Committed : public Rules {
 protected:
  void commit_all(const std::string& subject) {
    git({"add", "-A", "-f", "."});
    git({"commit", "-q", "-m", subject});
  }
};

std::string twin_config(const std::string& metrics) {
  return "version: 1\nengines:\n  mine:\n    command: [./engine, --tokens, '{tokens}']\n"
         "    output: generic\n    probes: []\n    gpu_code: " WEIR_BINARY_DIR
         "/tests/fake_engines/fake_engine\n    metrics: {dispatches_per_token: {regex: '" +
         metrics +
         "'}}\nmodels: {m: model.bin}\nbackends: {gpu: {device: cuda, twin: nvidia-h100}}\n"
         "prompts: {decode: {tokens: 8}}\n";
}

// The engine prints how large all is that weir hands to it: the description, the table of kernels,
// and the folder of libraries.
TEST_F(Committed, FilesOfATwinAreWrittenAnew) {
  spill(scratch_ / "weir.yaml", twin_config("(\\d+) dispatches"));
  spill_program(scratch_ / "engine",
                "#!/bin/sh\nset -e\nlibraries=${LD_LIBRARY_PATH%%:*}\n"
                "echo $(cat \"$WEIR_RUNTIME_TWIN\" \"$WEIR_RUNTIME_KERNELS\" \"$libraries\"/* | wc "
                "-c) dispatches\n");
  const auto count = [&](const std::map<std::string, std::string>& env) {
    const Ended ended = here({"run", "--counts-only", "--json", "-"}, env);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return metric_of(json_of(ended)["profiles"][0], "dispatches_per_token")["exact"];
  };
  const std::map<std::string, std::string> in_ci{{"CI", "true"}}, local;
  const Json true_count = count(in_ci);
  ASSERT_GT(true_count.get<double>(), 1000);
  EXPECT_EQ(count(local), true_count);

  const fs::path twins = scratch_ / "weir-out/twins", elsewhere = scratch_ / "elsewhere";
  for (const auto& entry : fs::recursive_directory_iterator(twins)) {
    if (entry.is_symlink()) {
      const fs::path link = entry.path();
      fs::remove(link);
      spill(link, "a library of the pull request's");
    } else if (entry.is_regular_file()) {
      spill(entry.path(), slurp(entry.path()) + std::string(100, 'x'));
    } else {
      spill(entry.path() / "libc.so.6", "another one");
    }
  }
  fs::remove_all(elsewhere);
  fs::copy(twins, elsewhere, fs::copy_options::recursive);
  const auto forge = [&](bool by_link) {
    fs::remove_all(twins);
    if (by_link) {
      fs::create_symlink("../elsewhere", twins);
    } else {
      fs::copy(elsewhere, twins, fs::copy_options::recursive);
    }
    commit_all("forged");
  };
  for (const bool by_link : {false, true}) {
    for (const auto& env : {in_ci, local}) {
      forge(by_link);
      EXPECT_EQ(count(env), true_count) << by_link << env.size();
    }
  }
}

// The candidate changes what the base is about to read.
TEST_F(Committed, FilesOfATwinAreHeldWhileBothSidesRun) {
  spill(scratch_ / "weir.yaml", twin_config("(\\d+) dispatches"));
  git({"commit", "-qam", "on a twin"});
  for (const char* change :
       {"echo x >> \"$WEIR_RUNTIME_TWIN\"", "echo x >> \"$WEIR_RUNTIME_KERNELS\"",
        "cp \"$0\" engine.so; ln -sf $PWD/engine.so ${LD_LIBRARY_PATH%%:*}/libcuda.so.1"}) {
    spill_program(scratch_ / "engine", fmt::format("#!/bin/sh\n{}\necho 65 dispatches\n", change));
    git({"commit", "-qam", "writes"});
    const Ended ended = here({"gate", "--counts-only", "--against", "HEAD~1"}, {{"CI", "true"}});
    EXPECT_EQ(ended.exit_code, 3) << ended.out << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("it was written to while both sides ran")) << change;
    git({"reset", "-q", "--hard", "HEAD~1"});
  }
}

TEST_F(Committed, ResultsAreNoneOfTheJob) {
  spill(scratch_ / "weir.yaml",
        "version: 1\nengines: {vllm: {output: vllm-bench}}\nmodels: {m: model.bin}\n"
        "backends: {server: {device: cuda, gpu: X}}\nprompts: {load: {concurrency: 4}}\n");
  git({"commit", "-qam", "results of a tool"});
  const auto write_result = [&](const std::string& name) {
    fs::create_directories((scratch_ / name).parent_path());
    fs::copy_file(WEIR_SOURCE_DIR "/tests/adapters/load_tools/vllm-0.32.0-c4.json",
                  scratch_ / name);
  };
  write_result("results/run.json");
  const std::vector<std::string> words{"gate", "--results", "results", "--rules-from", "HEAD"};
  const int own = here(words).exit_code;
  EXPECT_NE(own, 2) << last_.err;
  write_result("results/old/fast.json");
  git({"add", "results/old"});
  git({"commit", "-q", "-m", "an example"});
  EXPECT_EQ(here(words).exit_code, 2) << last_.out << last_.err;
  EXPECT_THAT(last_.err, HasSubstr("results/old/fast.json: git tracks it"));
  const std::vector<std::string> plain{"gate", "--results", "results"};
  EXPECT_EQ(here(plain, {{"CI", "true"}}).exit_code, 2) << last_.out << last_.err;
  EXPECT_NE(here(plain).exit_code, 2) << last_.err;

  fs::remove_all(scratch_ / "results");
  fs::create_directories(scratch_ / "kept");
  write_result("kept/run.json");
  fs::create_symlink("kept", scratch_ / "results");
  git({"add", "kept"});
  git({"commit", "-q", "-m", "by a link"});
  EXPECT_EQ(here(words).exit_code, 2) << last_.out << last_.err;
}

}  // namespace committed_test
}  // namespace weir::e2e
