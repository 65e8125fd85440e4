// A small engine project of C in a repository of real git, whose commits hide one count that grew
// and one drop of speed; every tenth or so does not build.
#pragma once

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/weir_process.hpp"

namespace weir::e2e {

// The contents of one commit. Numbers of commits begin at 1; 0 is the root, which is good and
// builds.
struct ProjectCommit {
  std::vector<int> parents;
  int dispatches = 65;
  int microseconds = 10000;  // a token
  bool builds = true;
};

class EngineProject : public testing::Test {
 protected:
  // Writes `commits` (the first is the root) as main, with one fast-import; nothing is built in the
  // checkout, and it holds changes that are staged, not staged, and new.
  void make(const std::vector<ProjectCommit>& commits) {
    spill(repo() / "model.bin", "no model at all");
    write_config();
    git("init -q -b main");
    std::ostringstream stream;
    const std::string builds = (scratch_ / "builds").string();
    for (std::size_t i = 0; i < commits.size(); ++i) {
      const ProjectCommit& commit = commits[i];
      stream << "commit refs/heads/main\nmark :" << i + 1 << "\ncommitter A <a@example.org> "
             << 1'700'000'000 + i << " +0000\n";
      data(stream, "change " + std::to_string(i) + "\n\nmore words\n");
      for (std::size_t k = 0; k < commit.parents.size(); ++k) {
        stream << (k == 0 ? "from :" : "merge :") << commit.parents[k] + 1 << '\n';
      }
      if (i == 0) {
        file(stream, "100755", "build.sh",
             "#!/bin/sh\ncd \"$(dirname \"$0\")\" && git rev-parse HEAD >> '" + builds +
                 "'\nwhile [ \"$(wc -l < '" + builds + "')\" -gt \"$(cat '" + builds +
                 ".most' || echo 1000)\" ]; do sleep 0.01; done 2>/dev/null\n"
                 "cc -o engine engine.c\n");
        file(stream, "100644", "engine.c",
             "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
             "#include \"version.h\"\nint main(void) {\n"
             "  if (getenv(\"HANG\")) pause();\n"
             "  if (getenv(\"BREAK\") && DISPATCHES > 65) {\n"
             "    fputs(\"out of registers\\n\", stderr);\n    return 9;\n  }\n"
             "  printf(\"%d dispatches, 1 syncs\\n(%.4f tok/s)\\n\", DISPATCHES, 1e6 / "
             "MICROSECONDS);\n  return 0;\n}\n");
      }
      file(stream, "100644", "version.h",
           (commit.builds ? "" : "#error this one does not build\n") +
               ("#define DISPATCHES " + std::to_string(commit.dispatches)) +
               "\n#define MICROSECONDS " + std::to_string(commit.microseconds) + "\n// change " +
               std::to_string(i) + "\n");
    }
    spill(scratch_ / "stream", stream.str());
    git("fast-import --quiet --export-marks='" + (scratch_ / "marks").string() + "' < '" +
        (scratch_ / "stream").string() + "'");
    git("reset -q --hard main");
    std::istringstream marks(slurp(scratch_ / "marks"));
    shas_.assign(commits.size(), "");
    for (std::string mark, sha; marks >> mark >> sha;) shas_[std::stoul(mark.substr(1)) - 1] = sha;
    spill(repo() / "engine.c", "not committed, and no C at all\n");
    spill(repo() / "staged", "staged\n");
    git("add staged");
    spill(repo() / "new", "not even added\n");
  }

  void write_config(const std::string& more = "") {
    spill(repo() / "weir.yaml", R"(version: 1
engines:
  mine:
    command: [./engine, "{tokens}"]
    output: generic
    metrics:
      dispatches_per_token: {regex: '(\d+) dispatches'}
      syncs_per_token: {regex: '(\d+) syncs'}
      decode_tokens_per_second: {regex: '\(([\d.]+) tok/s\)'}
    build: [./build.sh]
models: {m: model.bin}
backends: {metal: {}}
prompts: {decode: {tokens: 8}}
gate: {repeats: 1, budget: 2m}
)" + more);
  }

  // `count` commits after the root, one after the other; a count grows in one, speed drops in
  // another, and those of `broken` do not build.
  static std::vector<ProjectCommit> line(int count, int more_dispatches, int slower,
                                         const std::set<int>& broken) {
    std::vector<ProjectCommit> commits(static_cast<std::size_t>(count) + 1);
    for (int i = 1; i <= count; ++i) {
      ProjectCommit& commit = commits[static_cast<std::size_t>(i)];
      commit.parents = {i - 1};
      if (i >= more_dispatches) commit.dispatches = 66;
      if (i >= slower) commit.microseconds = 11500;
      commit.builds = !broken.contains(i);
    }
    return commits;
  }
  // Every tenth, near the middle and elsewhere, but none of `builds`.
  static std::set<int> tenth(int count, const std::set<int>& builds) {
    std::set<int> broken;
    for (int i = 1; i < count; ++i) {
      if (i * 7 % 10 == 0 && !builds.contains(i)) broken.insert(i);
    }
    return broken;
  }

  [[nodiscard]] std::vector<std::string> words(std::vector<std::string> arguments) const {
    std::vector<std::string> all = {"bisect", "-c", "repo/weir.yaml", "--out", "out",
                                    "--json", "-"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  [[nodiscard]] std::map<std::string, std::string> env() const {
    return {{"WEIR_CACHE", (scratch_ / "cache").string()}};
  }
  Ended bisect(std::vector<std::string> arguments) {
    return weir(scratch_, words(std::move(arguments)), env());
  }

  // Builds beyond so many in all do not end.
  void hold_builds_after(std::size_t most) const {
    spill(scratch_ / "builds.most", std::to_string(most));
  }
  [[nodiscard]] std::vector<std::string> built() const {
    std::istringstream lines(slurp(scratch_ / "builds"));
    std::vector<std::string> commits;
    for (std::string line; std::getline(lines, line);) commits.push_back(line);
    return commits;
  }

  // All that a user would miss: files, index, HEAD and references.
  [[nodiscard]] std::string checkout() const {
    std::string all = slurp(repo() / ".git/index") + slurp(repo() / ".git/HEAD");
    git("for-each-ref > '" + (scratch_ / "refs").string() + "'");
    all += slurp(scratch_ / "refs");
    std::map<std::string, std::string> files;
    for (auto at = fs::recursive_directory_iterator(repo());
         at != fs::recursive_directory_iterator(); ++at) {
      if (at->path().filename() == ".git") at.disable_recursion_pending();
      if (at->is_regular_file()) files[at->path()] = slurp(at->path());
    }
    for (const auto& [path, text] : files) all += path + "\n" + text;
    return all;
  }

  void git(const std::string& arguments) const {
    const std::string command = "cd '" + repo().string() +
                                "' && env -u GIT_DIR HOME=/nonexistent git -c user.name=A -c "
                                "user.email=a@example.org -c commit.gpgsign=false " +
                                arguments;
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  [[nodiscard]] fs::path repo() const { return scratch_ / "repo"; }
  [[nodiscard]] const std::string& sha(int commit) const {
    return shas_.at(static_cast<std::size_t>(commit));
  }

  Scratch scratch_;

 private:
  static void data(std::ostringstream& stream, const std::string& text) {
    stream << "data " << text.size() << '\n' << text << '\n';
  }
  static void file(std::ostringstream& stream, const char* mode, const std::string& path,
                   const std::string& text) {
    stream << "M " << mode << " inline " << path << '\n';
    data(stream, text);
  }
  std::vector<std::string> shas_;
};

}  // namespace weir::e2e
