// The folder that processes of one side of a pair start in, and the files that their command lines
// mean.
//
// A base that started in the user's checkout would open the candidate's files there: what a script
// starts, a library, a module. So each side starts in a checkout of its own, in the folder that
// corresponds to the configuration's. A path into the user's checkout means the same file of the
// side's; the user's own where the side has none: a model that git does not know, or a virtual
// environment of Python.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/files.hpp"

namespace weir::source {

struct SideCheckout {
  std::vector<std::string> own_roots;  // absolute: all names of the top of the user's checkout
  std::string own_folder;              // absolute: the configuration's folder there
  std::string root;                    // absolute: the top of this side's checkout
  std::string link;                    // absolute: leads to `root`; as long for both sides
  // A file that this checkout lacks is the user's for this side as well, so that both sides get
  // words of one length. "": none.
  std::string other_root{};
  // Returns true if git holds a file at or below this path from the top, or cannot tell. Absent:
  // virtual environments of the user are not shared.
  std::function<bool(const std::string&)> is_tracked{};
};

class SidePaths {
 public:
  // `files` outlives this.
  SidePaths(const sys::Files& files, SideCheckout side) : files_(files), side_(std::move(side)) {}

  // The folder that corresponds to the configuration's, through the link.
  [[nodiscard]] std::string folder() const;
  // Returns a word of the command, or a value of its environment, for this side. Code::config for
  // code (a program, a library, a script) that is the user's alone: it is the candidate's.
  [[nodiscard]] Result<std::string> place(const std::string& word);
  // Shares the user's virtual environment at or above `path` with this side, which lacks it. False
  // if there is none, or git holds a part of it. Code::config, with the file, if modules in it may
  // be those of the user's checkout.
  [[nodiscard]] Result<bool> share_environment(const std::string& path);
  // Returns a value of weir's own environment for this side. Only absolute paths are replaced.
  [[nodiscard]] std::string place_inherited(const std::string& value) const;
  // Names files of the user's checkout that stand in for those that this side lacks.
  [[nodiscard]] const std::set<std::string>& shared() const { return shared_; }
  [[nodiscard]] bool shares_environment() const { return shares_environment_; }
  // How many paths so far meant files of this side's own.
  [[nodiscard]] std::size_t own_files() const { return own_files_; }

 private:
  [[nodiscard]] std::optional<std::string> inner_path(const std::string& path) const;
  [[nodiscard]] bool has(const std::string& inner) const;
  [[nodiscard]] std::optional<std::string> own_path(const std::string& path) const;

  const sys::Files& files_;
  SideCheckout side_;
  std::set<std::string> shared_;
  bool shares_environment_ = false;
  std::size_t own_files_ = 0;
};

}  // namespace weir::source
