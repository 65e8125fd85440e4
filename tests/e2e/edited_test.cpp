// weir gate --rules-from: a pull request that edits how a cell is measured is not judged in it.
#include <gmock/gmock.h>

#include "gate/base/text.hpp"

#include "tests/e2e/rules_scene.hpp"

namespace weir::e2e {
namespace edited_test {

using ::testing::Contains;
using ::testing::HasSubstr;

class Edited : public Rules {
 protected:
  const std::string k_other = "mine/m/metal/other";

  int here_counts_are_accepted() { return here({"baseline", "accept", "--counts-only"}).exit_code; }
  // Changes the first character, or adds a line to a program. A link or an absent file is a new
  // one.
  void edit_file(const std::string& file) {
    if (fs::is_symlink(scratch_ / file)) fs::remove(scratch_ / file);
    const bool is_new = !fs::exists(scratch_ / file);
    std::string text = is_new ? "* -text\n" : slurp(scratch_ / file);
    if (text.starts_with("#!")) {
      text += "# more\n";
    } else if (!is_new) {
      text[0] = '#';
    }
    spill(scratch_ / file, text);
  }
  void commit_base_without_baselines() {
    fs::remove_all(scratch_ / "baselines");
    git({"add", "-A"});
    git({"commit", "-q", "-m", "base"});
    git({"branch", "-f", "main"});
  }
  // Why the cell is not judged; "" if it is.
  std::string reason(int exit_code) {
    const Json cell = cell_of(gate({"--rules-from", "main"}, exit_code), k_cell);
    return exit_code == 0 ? "" : metric_of(cell, "cell")["reason"].get<std::string>();
  }
  void replace_in_config(const std::string& from, const std::string& to) {
    std::string text = slurp(scratch_ / "weir.yaml");
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    spill(scratch_ / "weir.yaml", text.replace(at, from.size(), to));
  }
};

TEST_F(Edited, ACellWhoseKeysThePullRequestEditsIsNotJudged) {
  const struct {
    const char *from, *to, *listed;
  } cases[] = {
      {"{metal: {}}", "{metal: {gpu: other}}", "backends.metal.gpu: added, other: not judged"},
      {"    metrics:\n", "    ok_exit_codes: [139]\n    metrics:\n",
       "engines.mine.ok_exit_codes: added, [\"139\"]: not judged"},
      {"    metrics:\n", "    timeout: 2h\n    metrics:\n", "engines.mine.timeout: added, 2h"},
      {"(\\d+) dispatches", "([0-9]+) dispatches",
       "engines.mine.metrics.dispatches_per_token.regex: (\\d+) dispatches → ([0-9]+) dispatches"},
      {"'{tokens}']", "'{tokens}', --fast]", "engines.mine.command"},
      {"    metrics:\n", "    counted_env: {FAST: \"1\"}\n    metrics:\n",
       "engines.mine.counted_env.FAST: added, 1"},
  };
  for (const auto& [from, to, listed] : cases) {
    write_config();
    replace_in_config(from, to);
    for (const auto& options : {std::vector<std::string>{"--rules-from", "main"},
                                {"--rules-from", "main", "--against", "main"},
                                {"--from", "--rules-from", "main", "--counts-only"}}) {
      const Json verdict = gate(options, 3);
      EXPECT_EQ(verdict["verdict"], "error") << to;
      EXPECT_TRUE(verdict["unjudged"].is_string()) << to;
      EXPECT_THAT(proposal_texts(verdict), Contains(HasSubstr(listed))) << to;
      const Json judgement = metric_of(cell_of(verdict, k_cell), "cell");
      EXPECT_EQ(judgement["verdict"], "error") << to;
      EXPECT_THAT(judgement["reason"].get<std::string>(), HasSubstr("not judged: "));
    }
    EXPECT_THAT(last_.err, HasSubstr("rules ")) << last_.err;
  }
}

TEST_F(Edited, OnlyTheCellsThatTheEditTouchesAreNotJudged) {
  write_config("", "{decode: {tokens: 8, args: [-x]}, other: {tokens: 9}}");
  const Json verdict = gate({"--rules-from", "main"}, 3);
  EXPECT_EQ(cell_of(verdict, k_cell)["verdict"], "error");
  EXPECT_EQ(cell_of(verdict, k_other)["verdict"], "pass");
  EXPECT_EQ(verdict["unjudged"], "the pull request edits how 1 of 2 cells are measured");
}

TEST_F(Edited, ARedOfAnEditedCellStaysRed) {
  write_engine(77);
  replace_in_config("    metrics:\n", "    timeout: 2h\n    metrics:\n");
  EXPECT_EQ(cell_of(gate({"--rules-from", "main"}, 1), k_cell)["verdict"], "fail");
}

TEST_F(Edited, AModelFileThatThePullRequestExchangesIsAnEdit) {
  spill(scratch_ / "model.bin", "another model of another size");
  const Json tracked = gate({"--rules-from", "main"}, 3);
  EXPECT_THAT(metric_of(cell_of(tracked, k_cell), "cell")["reason"].get<std::string>(),
              HasSubstr("than the base does: file model.bin"));
  EXPECT_THAT(proposal_texts(tracked), Contains(HasSubstr("file model.bin: ")));
  // One that git does not know is told by its size and its beginning.
  git({"checkout", "-q", "model.bin"});
  spill(scratch_ / ".gitignore", slurp(scratch_ / ".gitignore") + "model.bin\n");
  git({"rm", "-q", "--cached", "model.bin"});
  git({"commit", "-qam", "a model of no commit"});
  git({"branch", "-f", "main"});
  spill(scratch_ / "model.bin", "another model of another size");
  const Json untracked = gate({"--rules-from", "main"}, 3);
  EXPECT_THAT(metric_of(cell_of(untracked, k_cell), "cell")["reason"].get<std::string>(),
              HasSubstr("than the base does: model"));
}

// The first file that a command names is the program, all others say what it works on.
TEST_F(Edited, AFileThatTheCommandNamesBesideItsProgramIsAnEdit) {
  const std::string here = scratch_.path().string();
  struct Case {
    std::string command, file;  // the command of the base, and what the pull request edits
    bool is_judged = false;
  };
  const Case cases[] = {
      {"./engine, cfg.json", "cfg.json"},
      {"./engine, --cfg=cfg.json", "cfg.json"},
      {"./engine, -fcfg.json", "cfg.json"},
      {"./engine, '@data/../cfg.json'", "cfg.json"},
      {"./engine, " + here + "/cfg.json", "cfg.json"},
      {"./engine, link.json", "cfg.json"},
      {"./engine, link.json", "link.json"},
      {"./engine, linked/a.txt", "data/a.txt"},
      {"./engine, data", "data/a.txt"},
      {"./engine, 'linked/*.txt'", "data/a.txt"},
      {"./engine, 'linked/*.txt'", "data/b.txt"},
      {"./engine, '*/sub/*.txt'", "far/near/sub/a.txt"},
      {"./engine, 'linked/*.json'", "data/a.txt", true},
      {"./engine, set", "far/a.json"},
      {"./engine, set", "far/more/new.json"},
      {"./engine, set", "far/near/sub/a.txt"},
      {"./engine, set", "deep/w.json"},
      {"./engine, set", "set/one"},
      {"./engine, set/", "far/a.json"},
      {"./engine, 'se*'", "far/a.json"},
      {"./engine, --in=set", "far/a.json"},
      {"./engine, set", "cfg.json", true},
      {"./engine, set", "far/README.md", true},
      {"./engine, set", "engine", true},
      {"./engine, 'data/{tokens}.txt'", "data/8.txt"},
      {"./engine, 'data/{tokens}.txt'", "data/a.txt", true},
      {"./engine, new.json", "new.json"},
      {"./engine, module/cfg.json", "module"},
      {"./engine, cfg.json", ".gitattributes"},
      {"./engine, '{model}'", "model.bin"},
      {"sh, ./engine, cfg.json", "cfg.json"},
      {"sh, -c, './engine --cfg cfg.json'", "cfg.json"},
      {"taskset, '1', build/engine, cfg.json", "cfg.json"},
      {"build/python3.11, engine, cfg.json", "cfg.json"},
      {"build/python3.11, engine, cfg.json", "engine", true},
      {"sh, -c, 'echo \"65 dispatches, 1 syncs\"', cfg.json", "cfg.json"},
      {"./engine, cfg.json", "engine", true},
      {"./engine, cfg.json, .", "engine", true},
      {"./engine, cfg.json", "readme", true},
      {"sh, ./engine, cfg.json", "engine", true},
      {"sh, -c, './engine --cfg cfg.json'", "engine", true},
  };
  const std::string engine = slurp(scratch_ / "engine"), config = slurp(scratch_ / "weir.yaml");
  spill(scratch_ / ".gitignore", slurp(scratch_ / ".gitignore") + "build\n");
  for (const char* file : {"build/engine", "build/python3.11"})
    spill_program(scratch_ / file, engine);
  for (const char* file : {"cfg.json", "data/a.txt", "data/8.txt", "readme"})
    spill(scratch_ / file, "1");
  fs::create_symlink("cfg.json", scratch_ / "link.json");
  fs::create_directory_symlink("data", scratch_ / "linked");
  // A folder whose links lead to a file, to a folder with a link in it, around and out.
  for (const char* file : {"far/a.json", "far/more/b.json", "far/near/sub/a.txt", "far/README.md",
                           "deep/w.json", "set/own.json"})
    spill(scratch_ / file, "1");
  fs::create_symlink("../far/a.json", scratch_ / "set/one");
  fs::create_directory_symlink("../far", scratch_ / "set/all");
  fs::create_directory_symlink("../set", scratch_ / "set/again");
  fs::create_directory_symlink("..", scratch_ / "set/above");
  fs::create_directory_symlink("../engine", scratch_ / "set/program");
  fs::create_directory_symlink("/usr/share", scratch_ / "set/outside");
  fs::create_directory_symlink("../deep", scratch_ / "far/down");
  fs::create_directory_symlink("far/near", scratch_ / "near");
  fs::remove_all(scratch_ / "baselines");
  fs::create_directories(scratch_ / "module");
  const auto use_module = [&](char digit) {
    git({"update-index", "--add", "--cacheinfo", "160000," + std::string(40, digit) + ",module"});
  };
  use_module('a');
  for (const auto& [command, file, is_judged] : cases) {
    spill(scratch_ / "weir.yaml", config);
    replace_in_config("./engine", command);
    git({"add", "-A"});
    git({"commit", "-q", "--allow-empty", "-m", "base"});
    git({"branch", "-f", "main"});
    const std::string said = command + " with another " + file;
    if (file == "module") {
      use_module('b');
    } else {
      edit_file(file);
    }
    const int exit_code = is_judged ? 0 : 3;
    std::vector<Json> verdicts;
    if (file == "cfg.json") verdicts.push_back(gate({"--rules-from", "main"}, exit_code));
    git({"add", "-A"});
    git({"commit", "-q", "-m", "edited"});
    verdicts.push_back(gate({"--rules-from", "main"}, exit_code));
    verdicts.push_back(gate({"--from", "--rules-from", "main", "--counts-only"}, exit_code));
    for (const Json& verdict : verdicts) {
      const Json cell = cell_of(verdict, k_cell);
      EXPECT_EQ(cell["verdict"], is_judged ? "new" : "error") << said;
      if (is_judged) continue;
      EXPECT_THAT(metric_of(cell, "cell")["reason"].get<std::string>(),
                  HasSubstr("than the base does: file "))
          << said;
    }
    git({"reset", "-q", "--hard", "main"});
  }
}

// A pull request may edit texts for people, and settings that change no content, beside inputs.
TEST_F(Edited, WhatIsNoInputBesideInputsIsNoEdit) {
  const struct {
    const char *command, *file, *text;
    bool is_judged = false;
    const char* env = "{}";
  } cases[] = {
      {"./engine, cfg.json", ".gitattributes", "*.gen diff\n*.c diff=cpp\n", true},
      {"./engine, cfg.json", ".gitattributes", "*.gen diff\n*.json eol=crlf\n"},
      {"./engine, cfg.json", ".gitattributes", "*.gen diff\n*.json macro\n"},
      {"./engine, cfg.json", ".gitattributes", "*.gen diff\n*.png binary\n", true},
      {"./engine, in", ".gitattributes", "*.gen diff\n*.png binary\n", true},
      {"./engine, in", ".gitattributes", "*.gen diff\nin/**/*.json text\n"},
      {"./engine, in", "in/.gitattributes", "# more\n", true},
      {"./engine, in", "in/.gitattributes", "*.png binary\n", true},
      {"./engine, in", "in/.gitattributes", "w.json text\n"},
      {"./engine, -t, in", "in/README.md", "2", true},
      {"./engine, -t, in", "in/deep/LICENSE", "2", true},
      {"./engine, -t, in", "in/guide.rst", "2", true},
      {"./engine, -t, in/README.md", "in/README.md", "2"},
      {"./engine, -t, 'in/R*.md'", "in/README.md", "2"},
      {"./engine, -t, in", "in/w.json", "2"},
      {"./engine", "in/w.json", "2", true},
      {"./engine", "in/w.json", "2", false, "{DATA_DIR: in}"},
      {"./engine", "in/w.json", "2", false, "{HF_HOME: ./in}"},
      {"./engine", "in/w.json", "2", false, "{LIST: 'x:in'}"},
      {"./engine", "in/w.json", "2", true, "{PYTHONPATH: in}"},
      {"./engine", "in/code.py", "2", true, "{DATA_DIR: in}"},
      {"./engine, w.json", "in/w.json", "2", false, "{DATA_DIR: in}"},
      {"./engine, --prefix, in/w", "in/w.json", "2"},
      {"./engine, --prefix=in/w", "in/w_2.json", "2"},
      {"./engine, --prefix, in/w", "in/width.json", "2", true},
      {"./engine, --prefix, in/w", "in/w.gz", "2"},
      {"./engine, --prefix, 'in/t{tokens}'", "in/t8.json", "2"},
      {"./engine, --prefix, 'in/t{tokens}'", "in/t8_a.json", "2"},
      {"./engine, --prefix, 'in/t{tokens}'", "in/t8a.json", "2", true},
      {"./engine, -m, m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "2"},
      {"./engine, -m, m-00001-of-00002.gguf", "m-00001-of-00003.gguf", "2", true},
      {"./engine, -m, m.gguf.index.json", "m-00002-of-00002.gguf", "2"},
      {"./engine, --prefix, in/code", "in/code.py", "2", true},
      {"./engine, --name, weir", "weir.yaml", nullptr, true},
      {"./engine, -o, json", "json_schema.json", "2", true},
      {"./engine, --set, json", "json_2.json", "2"},
      {"./engine, --set, cfg", "cfg.json", "2"},
  };
  const std::string config = slurp(scratch_ / "weir.yaml");
  spill(scratch_ / ".gitattributes", "*.gen diff\n");
  for (const char* file :
       {"cfg.json", "json_schema.json", "json_2.json", "in/w.json", "in/w_2.json", "in/width.json",
        "in/code.py", "in/README.md", "in/deep/LICENSE", "in/guide.rst", "in/.gitattributes",
        "in/w.gz", "in/t8.json", "in/t8_a.json", "in/t8a.json", "m-00001-of-00002.gguf",
        "m-00002-of-00002.gguf", "m-00001-of-00003.gguf"})
    spill(scratch_ / file, "#\n");
  fs::remove_all(scratch_ / "baselines");
  for (const auto& [command, file, text, is_judged, env] : cases) {
    spill(scratch_ / "weir.yaml", config);
    replace_in_config("./engine", command);
    replace_in_config("    output: generic\n",
                      "    output: generic\n    env: " + std::string(env) + "\n");
    git({"add", "-A"});
    git({"commit", "-q", "--allow-empty", "-m", "base"});
    git({"branch", "-f", "main"});
    spill(scratch_ / file, text != nullptr ? text : slurp(scratch_ / file) + "# more\n");
    const std::string said = std::string(command) + " " + env + " with another " + file;
    const int exit_code = is_judged ? 0 : 3;
    const auto expect = [&](const Json& verdict) {
      EXPECT_EQ(cell_of(verdict, k_cell)["verdict"], is_judged ? "new" : "error") << said;
    };
    git({"commit", "-qam", "edited"});
    expect(gate({"--rules-from", "main"}, exit_code));
    expect(gate({"--from", "--rules-from", "main", "--counts-only"}, exit_code));
    git({"reset", "-q", "--hard", "main"});
  }
}

// A commit has the pointer, a checkout the content: no filter is run to tell if they agree.
TEST_F(Edited, AnInputInGitLfsIsItsContent) {
  // The hash of "10\n".
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:"
      "917df3320d778ddbaa5c5c7742bc4046bf803c36ed2b050f30844ed206783469\nsize 3\n";
  replace_in_config("./engine", "./engine, in/w.dat");
  spill(scratch_ / "in/w.dat", pointer);
  spill(scratch_ / ".gitattributes", "*.dat filter=lfs diff=lfs merge=lfs -text\n");
  commit_base_without_baselines();
  EXPECT_THAT(reason(3), HasSubstr("file in/w.dat (a Git LFS pointer: git lfs pull fetches it)"));
  spill(scratch_ / "in/w.dat", "10\n");
  EXPECT_EQ(reason(0), "");
  spill(scratch_ / "in/w.dat", "20\n");
  EXPECT_THAT(reason(3), HasSubstr("file in/w.dat"));
  spill(scratch_ / "in/w.dat", "10\n");
  spill(scratch_ / ".lfsconfig", "[lfs]\n\tfetchexclude = in/w.dat\n");
  git({"add", ".lfsconfig"});
  EXPECT_THAT(reason(3), HasSubstr("file .lfsconfig"));
}

TEST_F(Edited, AnInputInASubmoduleIsThatOfItsCommit) {
  const std::string data = (scratch_ / "cache/data").string();
  spill(scratch_ / "cache/data/w.dat", "10\n");
  spill(scratch_ / "cache/data/run.sh", "echo 65 dispatches\n");
  for (const auto& words :
       {std::vector<std::string>{"init", "-q"}, {"add", "-A"}, {"commit", "-qm", "data"}}) {
    std::vector<std::string> all{"-C", data};
    all.insert(all.end(), words.begin(), words.end());
    git(all);
  }
  git({"-c", "protocol.file.allow=always", "submodule", "--quiet", "add", data, "data"});
  // The first cells have their program there; those of "mine" an input.
  replace_in_config(
      "engines:\n",
      "engines:\n  first: {command: [sh, data/run.sh, data], output: generic, metrics: "
      "{dispatches_per_token: {regex: '(\\d+) dispatches'}}}\n");
  replace_in_config("./engine", "./engine, data");
  commit_base_without_baselines();
  EXPECT_EQ(reason(0), "");
  spill(scratch_ / "data/w.dat", "20\n");
  EXPECT_THAT(reason(3), HasSubstr("file data/w.dat"));
  spill(scratch_ / "data/w.dat", "10\n");
  const std::string modules = slurp(scratch_ / ".gitmodules");
  spill(scratch_ / ".gitmodules", modules + "\tupdate = none\n");
  EXPECT_THAT(reason(3), HasSubstr("file .gitmodules"));
  spill(scratch_ / ".gitmodules", modules);
  git({"submodule", "--quiet", "deinit", "--force", "data"});
  EXPECT_THAT(reason(3), HasSubstr("file data (a submodule that is not checked out at "));
}

// What an interpreter, a shell or a tool of the command reads is seen by its words. The program is
// none of them.
TEST_F(Edited, AWordMeansItsFileWhoeverReadsIt) {
  const std::string here = scratch_.path().string();
  const std::string commands[] = {
      "python3, -m, pk.bench, --data, data.bin",
      "python3, -m, pk.bench, --data, data",
      "python3, scripts, --data, data.bin",
      "python3, -c, 'open(\"data.bin\")'",
      "node, ., data.bin",
      "'cd in && ../bench --data 1.bin'",
      "'cd in; ./bench --data one.json'",
      "'cd build/x && ../../engine ../../data.bin'",
      "env, -C, in, ./bench, --data, one.json",
      "make, -C, in, DATA=one.json",
      "'./engine --data $PWD/data.bin'",
      "'./engine --data \"${{ROOT}}/data.bin\"'",
      "'./engine --data $(pwd)/data.bin'",
      "'./engine data/*.txt'",
      "'./engine data/{a,b}.txt'",
      "'for i in a b; do ./engine data/$i.txt; done'",
      "'./engine --data file://" + here + "/data.bin'",
      "'./engine \"my data.bin\"'",
      "'cd $SET && ../engine a.txt'",
      "podman, run, -v, '.:/mnt', engine, --data, /mnt/data.bin",
      "'cat data.bin | ./engine'",
      "./engine, data/linked.txt",
      "'./engine ${{CFG:-data.bin}}'",
      "'./engine ${{CFG-data.bin}}'",
      "'F=data.bin.old; ./engine ${{F%.old}}'",
      "'./engine my\\ data.bin'",
      "./engine, '$URL'",
      "./engine, '$MANY'",
      "./engine, '$SUM'",
      "./engine, '$OPTIONS'",
      "python3, -m, pk.bench, -f, LICENSE",
      "python3, -m, pk.bench, -f, requirements.txt",
      "./engine, -t, texts",
  };
  const std::pair<std::string, std::string> variables[] = {{"SET", "data"},
                                                           {"URL", "file:data.bin?mode=ro"},
                                                           {"MANY", "in/o*.json"},
                                                           {"SUM", "data.bin+data/a.txt"},
                                                           {"OPTIONS", "--cfg 'my data.bin'"}};
  std::string config = "version: 1\nengines:\n";
  for (std::size_t i = 0; i < std::size(commands); ++i) {
    std::string environment;
    for (const auto& [name, value] : variables) {
      if (commands[i].find('$' + name) != std::string::npos)
        environment += fmt::format("{}: \"{}\"", name, value);
    }
    config += fmt::format(
        "  e{}:\n    command: [sh, -c, 'echo 65 dispatches', '{{tokens}}', {}]\n    env: {{{}}}\n"
        "    output: generic\n    metrics: {{dispatches_per_token: {{regex: '(\\d+) "
        "dispatches'}}}}\n",
        i, commands[i], environment);
  }
  spill(scratch_ / "weir.yaml",
        config + "models: {m: model.bin}\nbackends: {metal: {}}\nprompts: {p: {tokens: 8}}\n");
  fs::remove_all(scratch_ / "baselines");
  const char* inputs[] = {"data.bin",    "data/a.txt", "in/1.bin",         "in/one.json",
                          "my data.bin", "LICENSE",    "requirements.txt", "texts/history.txt"};
  const char* others[] = {"pk/bench.py", "scripts/run.py", "scripts/README.md", "package.json",
                          "texts/a.md",  "pk/sizes.json",  "index.js"};
  for (const char* file : inputs) spill(scratch_ / file, "10");
  for (const char* file : others) spill(scratch_ / file, "10");
  for (const char* file : {"bench", "in/bench"}) spill_program(scratch_ / file, "#!/bin/sh\n");
  fs::create_symlink("a.txt", scratch_ / "data/linked.txt");
  git({"add", "-A"});
  git({"commit", "-qm", "base"});
  git({"branch", "-f", "main"});
  const auto expect_all = [&](int exit_code, const char* expected) {
    const Json verdict = gate({"--rules-from", "main"}, exit_code);
    for (std::size_t i = 0; i < std::size(commands); ++i) {
      EXPECT_EQ(cell_of(verdict, "e" + std::to_string(i) + "/m/metal/p")["verdict"], expected)
          << commands[i];
    }
  };
  for (const char* file : others) edit_file(file);
  for (const char* file : {"engine", "bench", "in/bench"}) edit_file(file);
  git({"commit", "-qam", "programs"});
  expect_all(0, "new");
  git({"reset", "-q", "--hard", "main"});
  for (const char* file : inputs) edit_file(file);
  git({"commit", "-qam", "inputs"});
  expect_all(3, "error");
}

TEST_F(Edited, TheDescriptionOfASimulatedGpuIsAnInput) {
  const std::string file = "configs/devices/amd-rx-7900-xtx.json";
  replace_in_config("{metal: {}}", "{metal: {device: vulkan, twin: amd-rx-7900-xtx}}");
  fs::remove_all(scratch_ / "baselines");
  const auto commit_base = [&] {
    git({"add", "-A"});
    git({"commit", "-q", "--allow-empty", "-m", "base"});
    git({"branch", "-f", "main"});
  };
  const auto write_description = [&](const std::string& title) {
    ASSERT_EQ(here({"device", "show", "amd-rx-7900-xtx", "--json", "weir-gpu.json"}).exit_code, 0)
        << last_.err;
    Json description = Json::parse(slurp(scratch_ / "weir-gpu.json"));
    description["title"] = title;
    fs::create_directories((scratch_ / file).parent_path());
    spill(scratch_ / file, description.dump());
  };
  const auto edits = [&](bool is_committed = true) {
    if (is_committed) {
      git({"add", "-A"});
      git({"commit", "-q", "-m", "edited"});
    }
    for (const auto& options : {std::vector<std::string>{"--rules-from", "main"},
                                {"--rules-from", "main", "--against", "main"},
                                {"--from", "--rules-from", "main", "--counts-only"}}) {
      EXPECT_THAT(proposal_texts(gate(options, 3)), Contains(HasSubstr("file " + file + ": ")))
          << text::join(options);
    }
  };
  commit_base();
  write_description("added");
  edits(/*is_committed=*/false);
  edits();
  commit_base();
  write_description("edited");
  edits();
  fs::remove(scratch_ / file);
  edits();
}

TEST_F(Edited, AnAdditionACommentAndAnotherOrderAreNoEdits) {
  write_config(
      "# a comment\nlimits: [{match: {prompt: third}, metrics: syncs_per_token, max: 9}]\n",
      "{third: {tokens: 10}, other: {tokens: 9}, decode: {tokens: 8}}");
  replace_in_config("    metrics:\n",
                    "    metrics:\n      mine: {regex: '(\\d+) syncs', unit: ms, better: lower}\n");
  const Json verdict = gate({"--rules-from", "main"}, 0);
  EXPECT_EQ(cell_of(verdict, k_cell)["verdict"], "pass");
  EXPECT_EQ(cell_of(verdict, "mine/m/metal/third")["verdict"], "new");
}

TEST_F(Edited, WhoMayMergeCanAcceptAnEditAndNoOtherOne) {
  replace_in_config("    metrics:\n", "    timeout: 2h\n    metrics:\n");
  (void)gate({"--rules-from", "main"}, 3);
  std::string run;
  for (const auto& entry : fs::directory_iterator(scratch_ / "weir-out")) {
    if (fs::exists(entry.path() / "verdict.json")) run = entry.path().string();
  }
  ASSERT_EQ(here({"waive", "--pr", "12", "--who", "ada", "--reason", "slow runner", run}).exit_code,
            0)
      << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("cell of " + k_other + ": 1 → edited "));
  const std::vector<std::string> with{"--rules-from",   "main", "--waivers-ref",
                                      "perf-baselines", "--pr", "12"};
  EXPECT_EQ(gate(with, 0)["verdict"], "waived");
  replace_in_config("timeout: 2h", "timeout: 3h");
  EXPECT_EQ(gate(with, 3)["verdict"], "error");
  // At merge the stored counts stay.
  replace_in_config("timeout: 3h", "timeout: 2h");
  ASSERT_EQ(here({"baseline", "accept", "--waivers", "12"}).exit_code, 0) << last_.err;
  EXPECT_EQ(gate({"--cell", k_cell}, 0)["verdict"], "pass");
}

}  // namespace edited_test
}  // namespace weir::e2e
