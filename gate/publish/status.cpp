// The commit status. GitHub keeps all of them and shows the latest of a context; which run one
// shows is told by the URL that it points to. So a poster of an older run that came in late finds
// out by looking once more, and says the newer one's again.

#include "gate/publish/api.hpp"
#include "gate/publish/parts.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_most_statuses = 3000;  // GitHub takes 1000 of a commit and context

class StatusPoster final : public Poster {
 public:
  explicit StatusPoster(const Job& job) : Poster(job, "commit status") {}

  void start() override {
    if (job_.target.sha.empty()) {
      part_.reason = "no commit is known";
      return;
    }
    if (const auto settled = settle(/*last=*/false); !settled) fail_with(settled.error());
  }

  void look() override {
    unsettled_ = false;
    const auto looked = settle(/*last=*/true);
    if (!looked && part_.id == 0) fail_with(looked.error());
    if (!looked && part_.id != 0) part_.warnings.push_back(looked.error().message);
  }

 private:
  // Of this gate's context: the latest, which GitHub shows, and the one of the newest run, which it
  // should show.
  struct Statuses {
    const Json *shown = nullptr, *newest = nullptr;
  };
  [[nodiscard]] RunNumber run_of(const Json& status) const {
    return run_of_url(text_in(status, "target_url"), job_.target.repository);
  }
  [[nodiscard]] Statuses ours_in(const Json& list) const {
    const std::string context = status_context(marker());
    Statuses found;
    for (const Json& json : list) {
      if (text_in(json, "context") != context) continue;
      const auto later = [&](const Json& than) {
        return number_in(json, "id") > number_in(than, "id");
      };
      if (found.shown == nullptr || later(*found.shown)) found.shown = &json;
      const bool first = found.newest == nullptr;
      if (first || run_of(*found.newest) < run_of(json) ||
          (run_of(json) == run_of(*found.newest) && later(*found.newest))) {
        found.newest = &json;
      }
    }
    return found;
  }

  Result<void> settle(bool last) {
    WEIR_TRY(const Json list,
             job_.api.list(at("/commits/{}/statuses", job_.target.sha), k_most_statuses));
    const auto [shown, newest] = ours_in(list);
    const std::int64_t made = part_.id;
    if (newest != nullptr &&
        is_superseded(run_of(*newest), number_in(*newest, "id"), link_in(*newest, "target_url"))) {
      // Where ours came in between and hides it, it is said again.
      if (made == 0 || made < number_in(*newest, "id")) return {};
      return create(text_in(*newest, "state"), text_in(*newest, "description"),
                    text_in(*newest, "target_url"), last);
    }
    const report::StatusText& status = job_.texts.status;
    if (shown != nullptr && text_in(*shown, "state") == status.state &&
        text_in(*shown, "description") == status.description &&
        text_in(*shown, "target_url") == job_.target.run_url) {
      if (made == 0) take_status(*shown, Part::Outcome::unchanged);
      return {};
    }
    // Nothing came after ours, though lists may hide it still.
    if (made != 0 && (shown == nullptr || number_in(*shown, "id") < made)) return {};
    return create(status.state, status.description, job_.target.run_url, last);
  }

  Result<void> create(const std::string& state, const std::string& description,
                      const std::string& url, bool last) {
    Json body = {
        {"state", state}, {"description", description}, {"context", status_context(marker())}};
    if (!url.empty()) body["target_url"] = url;
    const auto answer = job_.api.send("POST", at("/statuses/{}", job_.target.sha), std::move(body));
    unsettled_ = !last;
    if (!answer) {
      if (last) return tl::unexpected(answer.error());
      return {};  // it may have been made: look() finds out
    }
    if (!fine(*answer)) return refused(*answer, " (the token needs statuses: write)");
    if (part_.outcome != Part::Outcome::superseded) {
      take_status(answer->body, Part::Outcome::created);
    }
    return {};
  }

  void take_status(const Json& json, Part::Outcome outcome) {
    take(number_in(json, "id"), link_in(json, "target_url"), outcome);
  }
};

}  // namespace

std::unique_ptr<Poster> status_poster(const Job& job) {
  return std::make_unique<StatusPoster>(job);
}

}  // namespace weir::publish
