// Where the two sides' programs are, and the paths they are started by.
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/source/base.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

// "build/x" for "/a/build/x" below "/a"; "" for "/a" itself.
std::optional<std::string> place_below(const std::string& path, const std::string& folder) {
  if (folder == "/") return path.substr(1);
  if (path == folder) return "";
  if (!path.starts_with(folder + "/")) return std::nullopt;
  return path.substr(folder.size() + 1);
}

tl::unexpected<Error> not_there(const BaseTree& base, const std::string& path) {
  std::string what_to_do;
  if (base.kind == BaseTree::Kind::folder) {
    what_to_do = "the folder has to hold the program at the place where the candidate has it";
  } else if (!base.built) {
    what_to_do =
        "the base is a fresh checkout: set `build:` of the engine in weir.yaml to the command that "
        "makes its program";
  } else {
    what_to_do =
        "the build command has to make it at the place where the candidate has it; does `build:` "
        "in "
        "weir.yaml belong to this program?";
  }
  return fail(Code::config, "{}: no such program in the base ({}); {}", text::printable(path),
              base.words, what_to_do);
}

}  // namespace

Result<std::string> program_in_base(const sys::Files& files, const BaseTree& base,
                                    const std::string& program) {
  const std::string clean = sys::absolute(program);
  auto place = place_below(clean, base.candidate_root);
  if (!place) place = place_below(clean, base.candidate_real_root);
  if (!place || place->empty()) {
    return fail(Code::config,
                "{}: outside {}, so the base ({}) has no program of its own in its place; give the "
                "base as a command: --against -- COMMAND…",
                text::printable(program), text::printable(base.candidate_root), base.words);
  }
  std::string path = sys::join_path(base.root, *place);
  if (files.kind(path) != sys::Kind::file || !files.executable(path)) return not_there(base, path);
  return path;
}

Result<std::string> through_equal_length_link(sys::Files& files, const std::string& out_folder,
                                              const std::string& root, const std::string& path,
                                              const std::string& name) {
  const auto place = place_below(path, root);
  if (!place) return fail(Code::internal, "{}: not below {}", path, root);
  const std::string folder = sys::join_path(sys::absolute(out_folder), "sides");
  WEIR_CHECK(files.make_dirs(folder));
  const std::string link =
      sys::join_path(folder, short_hash(name.empty() ? root : root + "\n" + name, 16));
  WEIR_CHECK(files.link(root, link));
  return place->empty() ? link : sys::join_path(link, *place);
}

}  // namespace weir::source
