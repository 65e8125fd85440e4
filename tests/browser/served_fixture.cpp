// Writes what shows latency against load: a trend site, and beside it the page of a gate.
//   served_fixture PAGES OUT     OUT/index.html, OUT/gate.html
#include <cstdio>

#include "gate/report/html.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/files.hpp"

#include "tests/browser/served_scene.hpp"

int main(int count, char** words) {
  using namespace weir;
  if (count < 3) return 2;
  sys::RealFiles files;
  const site::Site site(site::scene::served_scene());
  const auto written = site::write_site(files, words[1], site, words[2]);
  const auto page = files.write_atomic(std::string(words[2]) + "/gate.html",
                                       report::html(site::scene::served_gate()));
  if (written && page) return 0;
  std::fprintf(stderr, "served_fixture: %s\n",
               (written ? page.error() : written.error()).message.c_str());
  return 1;
}
