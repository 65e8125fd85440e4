#include "gate/app/weir_engine.hpp"

#include <vector>

#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {

Result<std::string> find_weir_engine(const sys::Files& files, const std::string& given,
                                     const std::string& program, const std::string& who) {
  const auto is_one = [&](const std::string& path) {
    return files.executable(path) && files.kind(path) == sys::Kind::file;
  };
  if (!given.empty()) {
    const std::string path = sys::absolute(given);
    if (is_one(path)) return path;
    return fail(Code::usage, "--engine {}: no such program", given);
  }
  const std::string beside = sys::folder_of(program);
  std::vector<std::string> tried;
  for (const char* at :
       {"weir-engine", "libexec/weir/weir-engine", "../libexec/weir/weir-engine"}) {
    const std::string candidate = sys::absolute(sys::join_path(beside, at));
    if (is_one(candidate)) return candidate;
    tried.push_back(candidate);
  }
  return fail(Code::unavailable,
              "{} needs weir-engine, which is not here (looked for {})\n"
              "  It is built with weir where libhwy-dev, libvulkan-dev and glslc are: in weir's\n"
              "  repository, ci/setup && ci/build. --engine FILE names one that lies elsewhere.",
              who, text::join(tried));
}

}  // namespace weir::app
