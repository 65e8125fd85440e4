// Writes a site of one of the tests' histories.
//   site_fixture PAGES OUT small|long|wide [NUMBER]
#include <cstdio>
#include <cstdlib>

#include "gate/site/site.hpp"
#include "gate/sys/files.hpp"

#include "tests/browser/site_scene.hpp"

int main(int count, char** words) {
  using namespace weir;
  const std::string scene = count > 3 ? words[3] : "";
  const std::size_t number = count > 4 ? std::strtoul(words[4], nullptr, 10) : 0;
  if (count < 4 || (scene != "small" && number == 0)) return 2;
  const site::Site site(scene == "small"  ? site::scene::small_scene()
                        : scene == "long" ? site::scene::long_scene(number)
                                          : site::scene::wide_scene(number));
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
