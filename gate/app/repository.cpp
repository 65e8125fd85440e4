#include "gate/app/repository.hpp"

#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {

Result<std::shared_ptr<Repository>> Repository::around(const std::string& path) {
  std::shared_ptr<Repository> made(new Repository);
  std::string folder = path;
  while (made->files_.kind(folder) != sys::Kind::folder && folder != "/" && folder != ".") {
    folder = sys::folder_of(folder);
  }
  WEIR_TRY(source::Git git, source::Git::open(made->effects_, folder));
  made->git_ = std::move(git);
  return made;
}

Result<std::string> Repository::commit(const std::string& option, const std::string& ref) const {
  WEIR_TRY(const std::optional<std::string> commit, git_->commit(ref));
  if (commit) return *commit;
  const auto remote = git_->commit("origin/" + ref);
  return fail(Code::config, "{} {}: no commit that is known here; {}", option, text::printable(ref),
              remote && *remote ? fmt::format("did you mean origin/{}?", text::printable(ref))
                                : std::string("is it fetched? (`git fetch origin`)"));
}

}  // namespace weir::app
