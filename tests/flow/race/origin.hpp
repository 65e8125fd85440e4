// A repository of real git, its clones, and the refs that somebody who may push leaves in them.
//
// git answers for itself. Each question to one state of a clone is asked once and its answer
// remembered: a process takes milliseconds, and thousands of jobs ask the same.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "gate/sys/process.hpp"

#include "tests/flow/race/tree.hpp"
#include "tests/source/scene.hpp"

namespace weir::tests::race {

struct Commit {
  std::string id;
  Tree tree;
};

// The refs of a clone.
struct Refs {
  std::string text;      // of packed-refs
  std::string fetched;   // of FETCH_HEAD
  std::string replaced;  // names of those that replace a commit
  std::string key;       // the same for the same refs
};

class Origin {
 public:
  Origin();
  ~Origin();
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;

  // Commits `tree` on top of `parent`; both are names that the tests use. The first has no parent.
  void commit(const std::string& name, const Tree& tree, const std::string& parent = "");
  [[nodiscard]] const Commit& at(const std::string& name) const { return commits_.at(name); }
  [[nodiscard]] const std::string& id(const std::string& name) const { return at(name).id; }
  [[nodiscard]] const Tree& tree_of(const std::string& id) const;

  // Makes a clone of that name with the commit checked out; "": with no commit and no files.
  void clone(const std::string& name, const std::string& commit);
  // The folder that runners check out into, whichever clone it is.
  [[nodiscard]] std::string checkout() const { return folder("checkout"); }
  // Puts a clone there.
  void use(const std::string& clone);
  // A folder beside it.
  [[nodiscard]] std::string folder(const std::string& name) const { return root_ + "/" + name; }
  // Makes an empty file: weir asks the system, not its files, where paths lead.
  void touch(const std::string& path);

  // Returns the refs of a clone whose main is at `tip`, with the branches of these commits' names,
  // and with `pushed` at the commit "trap".
  [[nodiscard]] Refs refs(const std::string& tip, const std::vector<std::string>& branches,
                          const std::vector<std::string>& pushed) const;

  // Returns git's answer in a clone that has these refs.
  [[nodiscard]] const sys::Finished& git(const sys::ProcessSpec& spec, const std::string& clone,
                                         const Refs& refs);
  // The path of git.
  [[nodiscard]] const std::string& program() const { return program_; }

 private:
  void run(std::vector<std::string> arguments, const std::string& folder);
  void write(const std::string& folder, const Tree& tree);
  void set(const std::string& clone, const Refs& refs);

  std::deque<source::Variable> variables_;
  std::string root_, program_;
  sys::RealFiles files_;
  std::map<std::string, Commit> commits_;
  std::string used_;                        // the clone that is checkout()
  std::map<std::string, std::string> set_;  // clone -> key of the refs that it has
  std::map<std::string, sys::Finished> answers_;
};

}  // namespace weir::tests::race
