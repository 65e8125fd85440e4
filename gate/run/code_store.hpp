// The code that kernels ran, each piece once by its identity, in weir's cache: what two runs' code
// differs in can be told as long as it is there.
#pragma once

#include <optional>
#include <string>

#include "gate/probes/read/read_kernels.hpp"
#include "gate/sys/files.hpp"

namespace weir::run {

// Thread-safe, also between processes: files are written whole, and are the same whoever writes.
class CodeStore {
 public:
  // "": nothing is kept.
  explicit CodeStore(std::string folder) : folder_(std::move(folder)) {}

  // Stores code that is not stored yet. Failures are ignored: only later comparisons need it.
  void store(sys::Files& files, const probes::RecordedKernels& recorded) const;
  void store(sys::Files& files,
             const std::vector<std::string>& recordings) const;  // by path
  // The path of a recording of that code alone; "" where it is not kept.
  [[nodiscard]] std::string find(const sys::Files& files, const std::string& identity) const;

 private:
  std::string folder_;
};

}  // namespace weir::run
