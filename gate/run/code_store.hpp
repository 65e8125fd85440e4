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

  // What cannot be kept is gone: nothing depends on it but what is told of it later.
  void keep(sys::Files& files, const probes::RecordedKernels& recorded) const;
  void keep(sys::Files& files, const std::vector<std::string>& recordings) const;  // of these paths
  // The path of a recording of that code alone; "" where it is not kept.
  [[nodiscard]] std::string find(const sys::Files& files, const std::string& identity) const;

 private:
  std::string folder_;
};

}  // namespace weir::run
