// Posts a verdict: runs the posters of comment, check run and status.
#include "gate/publish/post.hpp"

#include <algorithm>

#include "gate/publish/parts.hpp"

namespace weir::publish {

std::string_view to_string(Part::Outcome outcome) {
  constexpr std::string_view k_names[] = {"created",    "edited",   "unchanged",
                                          "superseded", "left out", "failed"};
  return k_names[static_cast<std::size_t>(outcome)];
}

std::string check_name(const Marker& marker) {
  std::string name = "weir";
  if (marker.gate != k_default_gate) name += ": " + marker.gate;
  if (!marker.base.empty()) name += fmt::format(" ({})", marker.base);
  return name;
}

std::string status_context(const Marker& marker) {
  if (marker.base.empty()) return "weir/" + marker.gate;
  return fmt::format("weir/{} ({}{})", marker.gate, marker.base,
                     marker.pull_request ? fmt::format(" #{}", *marker.pull_request) : "");
}

// Posts comment, check and status, and returns each outcome. Checks again, up to three times, those
// that may not have settled: another job may post at the same time.
std::vector<Part> post(Api& api, const Target& target, const Texts& texts,
                       const PostOptions& options, const Wait& wait) {
  const Job job{api, target, texts, options};
  std::vector<std::unique_ptr<Poster>> posters;
  if (options.comment) posters.push_back(comment_poster(job));
  if (options.check) posters.push_back(check_poster(job));
  if (options.status) posters.push_back(status_poster(job));
  for (const auto& poster : posters) poster->start();
  // Each wait is twice as long as the one before, because lists mostly lag only shortly.
  for (const double weight : {1.0, 2.0, 4.0}) {
    const bool all_settled =
        std::ranges::none_of(posters, [](const auto& poster) { return poster->is_unsettled(); });
    if (all_settled) break;
    wait(options.settle_seconds * weight / 7);
    for (const auto& poster : posters) {
      if (poster->is_unsettled()) poster->look();
    }
  }
  std::vector<Part> parts;
  parts.reserve(posters.size());
  for (const auto& poster : posters) parts.push_back(poster->part());
  return parts;
}

}  // namespace weir::publish
