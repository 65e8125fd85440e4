// Posts the commit status.
//
// GitHub keeps all statuses and shows the latest of a context. The URL of a status says which run
// it shows. So a late poster of an older run looks once more, and posts the newer run's status
// again.
#include "gate/publish/api.hpp"
#include "gate/publish/parts.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_max_statuses = 3000;  // GitHub takes 1000 of a commit and context

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
  // Statuses of this gate's context: the latest, which GitHub shows, and that of the newest run,
  // which it should show.
  struct Statuses {
    const Json *shown = nullptr, *newest = nullptr;
  };
  [[nodiscard]] RunNumber status_run(const Json& status) const {
    return parse_run_url(text_in(status, "target_url"), job_.target.repository);
  }
  [[nodiscard]] Statuses find_statuses(const Json& list) const {
    const std::string context = status_context(marker());
    Statuses statuses;
    for (const Json& json : list) {
      if (text_in(json, "context") != context) continue;
      const auto later = [&](const Json& than) {
        return number_in(json, "id") > number_in(than, "id");
      };
      if (statuses.shown == nullptr || later(*statuses.shown)) statuses.shown = &json;
      const bool first = statuses.newest == nullptr;
      if (first || status_run(*statuses.newest) < status_run(json) ||
          (status_run(json) == status_run(*statuses.newest) && later(*statuses.newest))) {
        statuses.newest = &json;
      }
    }
    return statuses;
  }

  // Posts the status, unless GitHub shows it already or shows a newer run. `last`: there is no
  // later look, so a lost answer is an error.
  Result<void> settle(bool last) {
    WEIR_TRY(const Json list,
             job_.api.list(at("/commits/{}/statuses", job_.target.sha), k_max_statuses));
    const auto [shown, newest] = find_statuses(list);
    const std::int64_t own_id = part_.id;
    if (newest != nullptr && is_superseded(status_run(*newest), number_in(*newest, "id"),
                                           link_in(*newest, "target_url"))) {
      // Post the newer run's status again if ours came later and hides it.
      if (own_id == 0 || own_id < number_in(*newest, "id")) return {};
      return create(text_in(*newest, "state"), text_in(*newest, "description"),
                    text_in(*newest, "target_url"), last);
    }
    const report::StatusText& status = job_.texts.status;
    if (shown != nullptr && text_in(*shown, "state") == status.state &&
        text_in(*shown, "description") == status.description &&
        text_in(*shown, "target_url") == job_.target.run_url) {
      if (own_id == 0) record_status(*shown, Part::Outcome::unchanged);
      return {};
    }
    // Nothing came after ours, which a list that lags may not have yet.
    if (own_id != 0 && (shown == nullptr || number_in(*shown, "id") < own_id)) return {};
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
    if (!is_success(*answer)) return refusal_error(*answer, " (the token needs statuses: write)");
    if (part_.outcome != Part::Outcome::superseded) {
      record_status(answer->body, Part::Outcome::created);
    }
    return {};
  }

  void record_status(const Json& json, Part::Outcome outcome) {
    take(number_in(json, "id"), link_in(json, "target_url"), outcome);
  }
};

}  // namespace

std::unique_ptr<Poster> status_poster(const Job& job) {
  return std::make_unique<StatusPoster>(job);
}

}  // namespace weir::publish
