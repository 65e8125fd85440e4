#include "gate/app/known.hpp"

#include <algorithm>

#include "gate/adapters/adapter.hpp"
#include "gate/adapters/serving.hpp"
#include "gate/app/twins.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

std::vector<std::string> probe_names() {
  std::vector<std::string> names;
  for (const auto& [name, devices] : probes::probe_devices()) names.push_back(name);
  return names;
}

}  // namespace

config::Known known_now(const sys::Files& files, const std::string& config_file) {
  config::Known known;
  known.twins = known_twins(files, sys::absolute(sys::folder_of(config_file)));
  known.today = sys::date_of(sys::RealClock().now());
  known.adapters = adapters::names();
  for (const adapters::Adapter& adapter : adapters::table()) {
    using Counts = adapters::Adapter::Counts;
    if (adapter.counts == Counts::always) known.telling.emplace_back(adapter.name);
    if (adapter.counts == Counts::asked) known.telling_if_asked.emplace_back(adapter.name);
  }
  known.probes = probe_names();
  known.apis = adapters::serving::api_names();
  for (const adapters::serving::Api& api : adapters::serving::apis()) {
    config::Known::Sent& sent = known.sent[std::string(api.name)];
    sent.always = adapters::serving::members_sent(api, false);
    for (std::string& member : adapters::serving::members_sent(api, true)) {
      const auto& always = sent.always;
      if (std::find(always.begin(), always.end(), member) == always.end()) {
        sent.own.push_back(std::move(member));
      }
    }
  }
  return known;
}

}  // namespace weir::app
