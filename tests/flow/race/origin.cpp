// Makes a repository of real git and clones of it, and remembers what git answered.
#include "tests/flow/race/origin.hpp"

#include <cstdio>
#include <filesystem>

#include <spawn.h>
#include <sys/wait.h>

#include "gate/base/hash.hpp"

namespace weir::tests::race {
namespace {

// Returns what git's answer to a question follows from, besides the objects that all clones share.
std::string sources_of(const std::vector<std::string>& words, const std::string& clone,
                       const Refs& refs) {
  const auto is_any = [](const std::string& word, std::initializer_list<std::string_view> list) {
    return std::ranges::find(list, word) != list.end();
  };
  const bool is_of_objects =
      is_any(words[0], {"cat-file", "for-each-ref", "ls-tree", "merge-base", "show"}) ||
      (words[0] == "rev-parse" && words[1] == "--verify");
  const auto end = std::ranges::find(words, "--");
  const bool has_head = std::any_of(
      words.begin(), end, [](const std::string& word) { return word.starts_with("HEAD"); });
  const std::string place = is_of_objects && !has_head ? "" : clone;
  if (is_any(words[0], {"config", "ls-files", "symbolic-ref"})) return place;
  if (words[0] == "rev-parse" &&
      (is_any(words[1], {"--git-common-dir"}) || words[1].starts_with("--is-") ||
       words[1].starts_with("--show-"))) {
    return place;
  }
  // Of objects that are named by ids, other refs than those of replaced ones decide nothing.
  const auto is_fixed = [](const std::string& word) {
    const std::size_t digits = word.find_first_not_of("0123456789abcdef");
    return word.starts_with("-") || word == "HEAD" || word == "blob" ||
           std::min(digits, word.size()) >= 40;
  };
  const bool is_by_id = words[0] != "for-each-ref" && std::all_of(words.begin() + 1, end, is_fixed);
  return place + "\n" + (is_by_id ? refs.replaced : refs.key);
}

// Starts git and waits for it. It leaves no process behind, so it needs no supervisor as
// sys::RealProcesses has, which takes longer than git itself.
sys::Finished run_quickly(const sys::ProcessSpec& spec) {
  std::vector<std::string> words = spec.argv, variables;
  words.insert(words.begin() + 1, {"-C", spec.folder});
  for (const auto& own : sys::own_environment()) {
    const bool is_replaced = std::ranges::any_of(
        spec.env, [&](const auto& variable) { return variable.first == own.first; });
    const bool is_unset = std::ranges::find(spec.unset, own.first) != spec.unset.end();
    if (!is_replaced && !is_unset) variables.push_back(own.first + "=" + own.second);
  }
  for (const auto& [name, value] : spec.env) variables.push_back(name + "=" + value);
  std::vector<char*> argv, environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) environment.push_back(variable.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::FILE* const outputs[] = {std::tmpfile(), std::tmpfile()};
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(outputs[0]), 1);
  posix_spawn_file_actions_adddup2(&actions, fileno(outputs[1]), 2);
  sys::Finished finished;
  pid_t child = 0;
  int status = 0;
  EXPECT_EQ(posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment.data()), 0);
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << text::join(spec.argv, " ");
  finished.exit_code = WEXITSTATUS(status);
  posix_spawn_file_actions_destroy(&actions);
  std::string* const texts[] = {&finished.out, &finished.err};
  for (int i = 0; i < 2; ++i) {
    char block[4096];
    std::rewind(outputs[i]);
    while (const std::size_t count = std::fread(block, 1, sizeof block, outputs[i]))
      texts[i]->append(block, count);
    std::fclose(outputs[i]);
  }
  return finished;
}

}  // namespace

Origin::Origin() {
  namespace fs = std::filesystem;
  std::string pattern = fs::canonical(fs::temp_directory_path()) / "weir-race-XXXXXX";
  root_ = mkdtemp(pattern.data());
  // The caller's shell, git and CI system must have no influence.
  for (const std::string& name : source::git_variables()) {
    variables_.emplace_back(name, "");
    unsetenv(name.c_str());
  }
  for (const char* name : {"GITHUB_REF", "GITHUB_SHA", "GITHUB_BASE_REF", "GITHUB_EVENT_PATH"}) {
    variables_.emplace_back(name, "");
  }
  variables_.emplace_back("HOME", root_);
  variables_.emplace_back("WEIR_CACHE", folder("cache"));
  variables_.emplace_back("GIT_CONFIG_NOSYSTEM", "1");
  variables_.emplace_back("GIT_CONFIG_GLOBAL", "/dev/null");
  for (const std::string who : {"AUTHOR", "COMMITTER"}) {
    variables_.emplace_back("GIT_" + who + "_NAME", "A");
    variables_.emplace_back("GIT_" + who + "_EMAIL", "a@example.org");
    variables_.emplace_back("GIT_" + who + "_DATE", "2026-01-01T00:00:00Z");
  }
  const std::string path = sys::environment_value("PATH").value_or("");
  program_ = sys::find_program(files_, "git", "/", path).value();
  const std::string origin = folder("origin");
  EXPECT_TRUE(files_.make_dirs(origin));
  EXPECT_TRUE(files_.make_dirs(folder("clones")));
  run({"init", "--quiet", "--initial-branch=main"}, origin);
}

Origin::~Origin() { (void)files_.remove_tree(root_); }

void Origin::run(std::vector<std::string> arguments, const std::string& folder) {
  sys::ProcessSpec spec;
  spec.argv = std::move(arguments);
  spec.argv.insert(spec.argv.begin(), program_);
  spec.folder = folder;
  const sys::Finished finished = run_quickly(spec);
  EXPECT_EQ(finished.exit_code, 0) << text::join(spec.argv, " ") << ": " << finished.err;
}

void Origin::write(const std::string& folder, const Tree& tree) {
  for (const auto& [path, file] : tree) {
    const std::string full = folder + "/" + path;
    EXPECT_TRUE(files_.make_dirs(sys::folder_of(full)));
    if (file.kind == TreeFile::Kind::link) {
      EXPECT_TRUE(files_.link(file.text, full));
    } else {
      EXPECT_TRUE(files_.write_unsynced(full, file.text));
    }
    if (file.kind == TreeFile::Kind::program) {
      EXPECT_TRUE(files_.set_mode(full, 0755));
    }
  }
}

void Origin::commit(const std::string& name, const Tree& tree, const std::string& parent) {
  const std::string folder = this->folder("origin"), head = folder + "/.git/HEAD";
  // Without a branch, HEAD is the commit itself.
  if (!parent.empty()) {
    EXPECT_TRUE(files_.write_unsynced(head, id(parent) + "\n"));
  }
  const std::vector<std::string> entries = files_.list(folder).value();
  for (const std::string& entry : entries) {
    if (entry == ".git") continue;
    EXPECT_TRUE(files_.remove_tree(folder + "/" + entry));
  }
  write(folder, tree);
  run({"add", "--all", "--force"}, folder);
  run({"commit", "--quiet", "--allow-empty", "-m", name}, folder);
  if (parent.empty()) run({"checkout", "--quiet", "--detach"}, folder);
  commits_[name] = {std::string(text::trim(files_.read(head, 100).value())), tree};
}

const Tree& Origin::tree_of(const std::string& id) const {
  for (const auto& [name, commit] : commits_) {
    if (commit.id == id) return commit.tree;
  }
  throw std::out_of_range(id);
}

void Origin::touch(const std::string& path) {
  EXPECT_TRUE(files_.make_dirs(sys::folder_of(path)));
  EXPECT_TRUE(files_.write_unsynced(path, ""));
}

void Origin::clone(const std::string& name, const std::string& commit) {
  const std::string folder = this->folder("clones/" + name);
  run({"clone", "--quiet", "--shared", "--no-checkout", this->folder("origin"), folder}, root_);
  if (commit.empty()) {
    run({"symbolic-ref", "HEAD", "refs/heads/none"}, folder);
  } else {
    run({"checkout", "--quiet", "--detach", id(commit)}, folder);
  }
  for (const std::string refs : {"heads", "remotes", "tags"}) {
    EXPECT_TRUE(files_.remove_tree(folder + "/.git/refs/" + refs));
  }
}

Refs Origin::refs(const std::string& tip, const std::vector<std::string>& branches,
                  const std::vector<std::string>& pushed) const {
  std::map<std::string, std::string> all;
  const auto add = [&](const std::string& branch, const std::string& commit) {
    all["refs/remotes/origin/" + branch] = id(commit);
    all["refs/heads/" + branch] = id(commit);  // as `git fetch origin main:main` leaves it
  };
  add("main", tip);
  add("next", "main");
  for (const std::string& branch : branches) add(branch, branch);
  for (const std::string& name : pushed) all[name] = id("trap");
  Refs refs;
  refs.text = "# pack-refs with: peeled fully-peeled sorted \n";
  refs.fetched = id(tip) + "\t\tbranch 'main' of o/r\n";
  for (const auto& [name, commit] : all) {
    refs.text += commit + " " + name + "\n";
    if (name.starts_with("refs/replace/")) refs.replaced += name + "\n";
  }
  refs.key = short_hash(refs.text + refs.fetched, 16);
  return refs;
}

void Origin::use(const std::string& clone) {
  if (used_ == clone) return;
  if (!used_.empty()) std::filesystem::rename(checkout(), folder("clones/" + used_));
  std::filesystem::rename(folder("clones/" + clone), checkout());
  used_ = clone;
}

void Origin::set(const std::string& clone, const Refs& refs) {
  use(clone);
  std::string& key = set_[clone];
  if (key == refs.key) return;
  EXPECT_TRUE(files_.write_unsynced(checkout() + "/.git/packed-refs", refs.text));
  EXPECT_TRUE(files_.write_unsynced(checkout() + "/.git/FETCH_HEAD", refs.fetched));
  key = refs.key;
}

const sys::Finished& Origin::git(const sys::ProcessSpec& spec, const std::string& clone,
                                 const Refs& refs) {
  std::vector<std::string> words(spec.argv.begin() + 1, spec.argv.end());
  while (!words.empty() && words[0].starts_with("-")) {
    words.erase(words.begin(), words.begin() + (words[0] == "-c" ? 2 : 1));
  }
  const std::string key =
      spec.folder + "\n" + text::join(words, "\n") + "\n" + sources_of(words, clone, refs);
  const auto known = answers_.find(key);
  if (known != answers_.end()) return known->second;
  set(clone, refs);
  return answers_[key] = run_quickly(spec);
}

}  // namespace weir::tests::race
