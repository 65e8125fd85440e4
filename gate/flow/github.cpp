// GitHub's API for a verb: where it is, and the token for it.
#include "gate/base/text.hpp"
#include "gate/flow/post.hpp"
#include "gate/publish/url.hpp"

namespace weir::flow {

std::string without_slash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

Result<std::string> api_url_of(const Job& job, const std::string& given) {
  std::string url = given.empty() ? job.variable("GITHUB_API_URL") : given;
  if (url.empty()) return std::string("https://api.github.com");
  url = without_slash(std::move(url));
  const auto parsed = publish::parse_url(url);
  if (!parsed || parsed->target.find('?') != std::string::npos) {
    return fail(Code::usage, "--api \"{}\": no https address (GitHub Enterprise: {})", url,
                "https://HOST/api/v3");
  }
  return url;
}

Result<std::string> repository_of(const Job& job, const std::string& given) {
  if (!given.empty() && !publish::is_repository(given)) {
    return fail(Code::usage, "--repo \"{}\": no OWNER/NAME", given);
  }
  std::string name = given.empty() ? job.variable("GITHUB_REPOSITORY") : given;
  if (!publish::is_repository(name)) {
    return fail(Code::usage, "where to? Outside of GitHub's runners --repo OWNER/NAME says it");
  }
  return name;
}

Result<Secret> token_of(const Job& job, const std::string& file, const std::string& without) {
  if (!file.empty()) {
    WEIR_TRY(const std::string text, job.files().read(file, 64 << 10));
    const std::string token(text::trim(text));
    if (token.empty()) return fail(Code::usage, "{}: no token in it", file);
    return Secret(token);
  }
  for (const char* name : {"WEIR_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"}) {
    const std::string value(text::trim(job.variable(name)));
    if (!value.empty()) return Secret(value);
  }
  return fail(Code::usage,
              "this needs a token: in WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN, or in a file that "
              "--token-file names ({})",
              without);
}

Result<std::unique_ptr<publish::GithubApi>> github_api(sys::World& world,
                                                       publish::GithubSettings settings,
                                                       const sys::Stop& stop) {
  settings.version = k_version;
  WEIR_TRY(publish::GithubApi api,
           publish::GithubApi::make(std::move(settings),
                                    {world.http, world.clock, world.pause, world.coin, stop}));
  return std::make_unique<publish::GithubApi>(std::move(api));
}

Result<std::unique_ptr<Github>> Github::open(const Job& job, const GithubOptions& options,
                                             const std::string& without) {
  std::unique_ptr<Github> made(new Github(job.world));
  publish::GithubSettings settings;
  WEIR_TRY(settings.base_url, api_url_of(job, options.api_url));
  WEIR_TRY(settings.token, token_of(job, options.token_file, without));
  WEIR_TRY(made->limit_seconds_, unit::parse_duration_seconds(options.time_limit));
  made->masker_.add(settings.token);
  settings.say = [masker = made->masker_, &job](const std::string& line) {
    job.talk("weir: " + masker.mask(text::printable(line)));
  };
  settings.total_seconds = made->limit_seconds_;
  // So that after an answer that never comes there is time to look what became of the request.
  settings.each.total_seconds = std::min(settings.each.total_seconds, made->limit_seconds_ / 4);
  WEIR_TRY(made->api_, github_api(job.world, std::move(settings), made->stop()));
  return made;
}

publish::Wait Github::wait() const {
  return [this](double seconds) { (void)world_.pause.wait(seconds, stop()); };
}

}  // namespace weir::flow
