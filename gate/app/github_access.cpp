#include "gate/app/github_access.hpp"

#include <algorithm>

#include "gate/app/version.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {

Result<Secret> token_of(const std::string& file, const sys::Files& files,
                        const std::string& without) {
  if (!file.empty()) {
    WEIR_TRY(const std::string text, files.read(file, 64 << 10));
    const std::string token(text::trim(text));
    if (token.empty()) return fail(Code::usage, "{}: no token in it", file);
    return Secret(token);
  }
  for (const char* name : {"WEIR_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"}) {
    const auto value = sys::environment_value(name);
    if (value && !text::trim(*value).empty()) return Secret(std::string(text::trim(*value)));
  }
  return fail(Code::usage,
              "this needs a token: in WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN, or in a file that "
              "--token-file names ({})",
              without);
}

Result<std::unique_ptr<GithubAccess>> GithubAccess::make(
    const std::string& api_url, const Secret& token, double total_seconds,
    std::function<void(const std::string&)> say) {
  std::unique_ptr<GithubAccess> made(new GithubAccess);
  made->masker_.add(token);
  publish::GithubSettings settings;
  settings.base_url = api_url;
  settings.token = token;
  settings.version = k_version;
  settings.say = [masker = made->masker_, say = std::move(say)](const std::string& line) {
    say(masker.mask(text::printable(line)));
  };
  settings.total_seconds = total_seconds;
  // So that after an answer that never comes there is time to look what became of the request.
  settings.each.total_seconds = std::min(settings.each.total_seconds, total_seconds / 4);
  WEIR_TRY(publish::GithubApi api,
           publish::GithubApi::make(std::move(settings), {made->http_, made->clock_, made->pause_,
                                                          made->coin_, made->interrupts_.stop()}));
  made->api_ = std::make_unique<publish::GithubApi>(std::move(api));
  return made;
}

}  // namespace weir::app
