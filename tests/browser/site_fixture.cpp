// Writes a site of one of the tests' histories.
//   site_fixture PAGES OUT small|changes|long|wide [NUMBER]
#include <cstdio>
#include <cstdlib>

#include "gate/site/site.hpp"
#include "gate/sys/files.hpp"

#include "tests/browser/site_scene.hpp"

int main(int count, char** words) {
  using namespace weir;
  const std::string scene = count > 3 ? words[3] : "";
  const std::size_t number = count > 4 ? std::strtoul(words[4], nullptr, 10) : 0;
  const bool small = scene == "small" || scene == "changes";
  if (count < 4 || (!small && number == 0)) return 2;
  site::SiteModel model = small             ? site::scene::small_scene()
                          : scene == "long" ? site::scene::long_scene(number)
                                            : site::scene::wide_scene(number);
  if (scene == "changes") {
    model.repo_url = "https://github.com/me/engine";
    model.commit_changes = *site::read_commit_changes(site::scene::changes_lines());
  }
  const site::Site site(std::move(model));
  sys::RealFiles files;
  const auto written = site::write_site(files, words[1], site, words[2]);
  if (!written) {
    std::fprintf(stderr, "site_fixture: %s\n", written.error().message.c_str());
    return 1;
  }
  std::printf("%zu written, %zu the same, %zu removed\n", written->written, written->same,
              written->removed);
  return 0;
}
