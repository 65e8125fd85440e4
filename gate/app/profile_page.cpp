#include "gate/app/profile_page.hpp"

#include <ctime>

#include <fmt/chrono.h>

#include "gate/app/version.hpp"
#include "gate/site/site.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/machine.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::app {
namespace {

report::PageFacts facts_of(const ProfilePage& page, const observed::Timeline& timeline,
                           const sys::Files& files) {
  report::PageFacts out;
  out.title = page.title;
  if (out.title.empty() && !timeline.processes.empty()) {
    out.title = report::without_places(timeline.processes.front().name);
  }
  if (out.title.empty()) out.title = "profile";
  if (!page.command.empty()) {
    out.facts.emplace_back("command", report::shown_command(page.command, page.privacy));
    out.facts.emplace_back("machine", sys::read_machine(files).name());
    const auto now = static_cast<std::time_t>(sys::RealClock().now());
    out.facts.emplace_back("measured", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(now)));
  }
  out.facts.emplace_back("weir", k_version);
  return out;
}

}  // namespace

Result<std::string> page_template(const sys::Files& files) {
  constexpr std::uint64_t k_most = std::uint64_t{4} << 20;
  WEIR_TRY(const std::string pages, site::find_pages(files, sys::own_program()));
  return files.read(sys::join_path(pages, "profile.html"), k_most);
}

Result<void> write_profile_page(const ProfilePage& page, const std::string& frame,
                                const observed::Timeline& timeline, sys::Files& files) {
  report::PageFacts facts = facts_of(page, timeline, files);
  observed::Timeline shown = timeline;
  if (page.privacy == report::Private::hidden) {
    for (std::string& warning : shown.warnings) warning = report::without_places(warning);
    for (observed::Process& process : shown.processes) {
      process.name = report::without_places(process.name);
    }
  }
  const report::TimelineDocument document =
      report::timeline_document(shown, std::move(facts), page.by);
  WEIR_TRY(const std::string text, report::timeline_page(frame, document));
  return files.write_atomic(page.file, text);
}

Result<void> write_observed_page(const ProfilePage& page, observed::GroupBy by,
                                 const std::string& frame, const observed::Observed& observed,
                                 const observed::ObservedMoments* moments, sys::Files& files) {
  report::PageFacts around;
  around.title = page.title;
  around.facts.emplace_back("weir", k_version);
  WEIR_TRY(const std::string text,
           report::timeline_page(frame, report::observed_page(observed, moments, std::move(around),
                                                              {page.privacy, by})));
  return files.write_atomic(page.file, text);
}

}  // namespace weir::app
