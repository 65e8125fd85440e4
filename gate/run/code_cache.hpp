// Facts of compiled kernels that are kept: by compiler and identity, in files that many runs share.
#pragma once

#include <map>
#include <string>

#include "gate/profile/counts.hpp"
#include "gate/sys/files.hpp"

namespace weir::run {

using CodesByIdentity = std::map<std::string, profile::CodeFacts>;

// One file; where it is full it begins anew, with what was asked for since it was opened. Runs that
// write at the same time may lose what the other one found, never the file. Not thread-safe.
class CodeCache {
 public:
  // `folder`: "" keeps nothing. What cannot be read is as if it were not there.
  CodeCache(sys::Files& files, std::string folder, std::string compiler);

  // Null where there is none; until the next put().
  [[nodiscard]] const profile::CodeFacts* find(const std::string& identity);
  void put(const std::string& identity, const profile::CodeFacts& facts);
  [[nodiscard]] Result<void> save();

 private:
  [[nodiscard]] std::map<std::string, CodesByIdentity> read() const;  // by compiler

  sys::Files& files_;
  std::string folder_, compiler_, path_;
  CodesByIdentity stored_codes_, used_codes_;
  bool is_new_ = false;  // something in asked_
};

}  // namespace weir::run
