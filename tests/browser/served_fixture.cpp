// Writes what shows figures of a verdict: a trend site, and beside it pages of gates.
//   served_fixture PAGES OUT     OUT/index.html, OUT/gate.html, OUT/ratios.html, OUT/hostile.html
#include <cstdio>

#include "gate/report/html.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/files.hpp"

#include "tests/browser/served_scene.hpp"
#include "tests/report/paired_fixtures.hpp"

namespace {

using namespace weir;

// Two cells of a server and a metric of pairs, all of which hostile text names.
verdict::GateVerdict hostile_gate() {
  verdict::GateVerdict gate = report::fixtures::beside_fail();
  verdict::Judgement& metric = gate.cells[1].judgements[5];
  metric.metric = unit::custom_metric(site::scene::k_hostile, unit::Kind::time,
                                      unit::Unit::tokens_per_second, unit::Better::higher);
  const verdict::GateVerdict served = site::scene::served_gate();
  for (std::size_t i = 0; i < 2; ++i) {
    gate.cells.push_back(served.cells[i]);
    gate.cells.back().cell.model = site::scene::k_hostile;
  }
  return gate;
}

Result<void> write(const std::string& pages, const std::string& out) {
  sys::RealFiles files;
  WEIR_CHECK(site::write_site(files, pages, site::Site(site::scene::served_scene()), out));
  WEIR_TRY(const std::string figures, files.read(pages + "/report.html", 1 << 20));
  const auto page = [&](const char* name, const verdict::GateVerdict& gate) {
    return files.write_atomic(fmt::format("{}/{}.html", out, name), report::html(gate, figures));
  };
  WEIR_CHECK(page("gate", site::scene::served_gate()));
  WEIR_CHECK(page("ratios", report::fixtures::beside_fail()));
  return page("hostile", hostile_gate());
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const auto written = write(words[1], words[2]);
  if (written) return 0;
  std::fprintf(stderr, "served_fixture: %s\n", written.error().message.c_str());
  return 1;
}
