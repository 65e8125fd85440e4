// Answers requests that change nothing: pages, badges, queries, health and metrics.
#include "gate/history/documents.hpp"
#include "gate/serve/http.hpp"
#include "gate/serve/pages.hpp"
#include "gate/serve/service.hpp"

namespace weir::serve {
namespace {

// Number of verdicts to search for one that contains the badge's cell.
constexpr std::size_t k_verdicts_for_badge = 10;
// Bytes of a verdict's text; a badge of a part of a longer one is unknown. Large ones are parsed
// one at a time.
constexpr std::size_t k_longest_text_for_badge = std::size_t{4} << 20;
constexpr std::size_t k_large_text = std::size_t{128} << 10;

// Returns the state that a badge shows: that of the newest verdict, or, for a cell or metric, of
// the newest verdict that contains it. Returns `unknown` if none does. Holds `large_mutex` while a
// large verdict is in memory.
Result<BadgeState> newest_badge_state(history::ServiceStore& store, const std::string& project,
                                      const std::optional<std::string>& branch,
                                      const BadgeSubject& subject, std::mutex& large_mutex) {
  const bool is_for_part = !subject.cell.empty() || !subject.metric.empty();
  history::VerdictQuery query{
      .project = project, .branch = branch, .since = {}, .until = {}, .behind = {}};
  query.max_verdicts = 1;
  for (std::size_t i = 0; i < (is_for_part ? k_verdicts_for_badge : 1); ++i) {
    WEIR_TRY(const auto verdicts, store.newest_verdicts(query));
    if (verdicts.empty()) break;
    history::StoredVerdict stored = verdicts.front();
    if (!is_for_part) {
      const auto outcome = verdict::parse_outcome(stored.outcome);
      return outcome ? state_of(*outcome) : BadgeState::unknown;
    }
    std::unique_lock large(large_mutex, std::defer_lock);
    WEIR_CHECK(store.append_text(stored, stored.text));
    if (stored.text.size() > k_large_text) large.lock();
    if (stored.text.size() > k_longest_text_for_badge) return BadgeState::unknown;
    if (const auto gate = history::verdict_of(stored)) {
      if (const auto state = state_of(*gate, subject)) return *state;
    }
    query.behind = history::VerdictPlace{stored.time, stored.kept_at, stored.id, stored.run};
  }
  return BadgeState::unknown;
}

// Builds the text of /metrics in the Prometheus format.
class MetricsText {
 public:
  // Starts a metric; its values follow.
  void start_metric(std::string_view name, std::string_view type, std::string_view help) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void add_value(std::string_view name, const auto& number, std::string_view labels = "") {
    text += fmt::format("{}{} {}\n", name, labels, static_cast<double>(number));
  }
  void add_gauge(std::string_view name, std::string_view help, const auto& number) {
    start_metric(name, "gauge", help);
    add_value(name, number);
  }
  void add_counter(std::string_view name, std::string_view help, const auto& number) {
    start_metric(name, "counter", help);
    add_value(name, number);
  }

  std::string text;
};

void add_traffic(MetricsText& out, const Traffic& traffic) {
  out.add_counter("weir_connections_total", "Connections that were accepted", traffic.connections);
  out.add_gauge("weir_connections_open", "Connections now", traffic.open);
  out.add_counter("weir_connections_refused_total", "Connections over the limit", traffic.refused);
  out.add_counter("weir_requests_total", "Requests whose headers came", traffic.requests);
  out.add_counter("weir_requests_malformed_total", "Requests that were none", traffic.malformed);
  out.add_counter("weir_requests_timed_out_total", "Requests that came too slowly",
                  traffic.timed_out);
  out.add_counter("weir_requests_too_large_total", "Requests over a limit", traffic.too_large);
  out.add_counter("weir_received_bytes_total", "Bytes that came", traffic.bytes_in);
  out.add_counter("weir_sent_bytes_total", "Bytes that went", traffic.bytes_out);
}

// Adds the counters of uploads, answers, tokens and transactions to the text of /metrics.
void add_uploads(MetricsText& out, const Meters& meters) {
  out.start_metric("weir_uploads_total", "counter", "Uploads by what became of them");
  out.add_value("weir_uploads_total", meters.uploads_kept, "{result=\"kept\"}");
  out.add_value("weir_uploads_total", meters.uploads_known, "{result=\"known\"}");
  out.add_value("weir_uploads_total", meters.uploads_refused, "{result=\"refused\"}");
  out.add_value("weir_uploads_total", meters.uploads_failed, "{result=\"failed\"}");
  out.start_metric("weir_answers_total", "counter", "Answers by the first digit of their status");
  for (std::size_t i = 1; i < meters.answers.size(); ++i) {
    out.add_value("weir_answers_total", meters.answers[i], fmt::format("{{status=\"{}xx\"}}", i));
  }
  out.add_counter("weir_tokens_refused_total", "Requests with a token that is none",
                  meters.tokens_refused);
  out.add_counter("weir_rates_exceeded_total", "Requests that came too often",
                  meters.rates_exceeded);
  out.add_counter("weir_transactions_total", "Transactions that uploads were kept in",
                  meters.transactions);
  out.text += meters.transaction_times.prometheus_text("weir_store_seconds",
                                                       "How long transactions of uploads took");
  out.text += meters.answer_times.prometheus_text("weir_answer_seconds",
                                                  "From a whole request to its answer");
}

}  // namespace

// Answers a request that needs the store or the pages. `thread` is the number of this reader
// thread, which has a store connection of its own.
Response Service::read(const Job& job, std::size_t thread) {
  const Target& target = job.request.head.target;
  if (job.route == Route::page) {
    auto page = pages_->find(target.path);
    return page ? *std::move(page) : error_answer(404, "there is no such page");
  }
  if (job.route == Route::badge) return badge(job, thread);
  if (job.route == Route::metrics) return metrics();
  const auto query = parse_query(job.route, target);
  if (!query) return error_answer(400, query.error().message);
  const auto may_read = [&](const std::string& project) {
    return rules().is_public ||
           (job.caller.token && allows(*job.caller.token, Scope::read, project));
  };
  auto response = slots_[thread]->with([&](history::ServiceStore& store) {
    return answer_query(store, *query, pages_->order(), may_read);
  });
  if (response) return *std::move(response);
  if (response.error().code == Code::usage) return error_answer(400, response.error().message);
  return store_trouble(response.error());
}

// Draws the badge of a project, or of one of its cells or metrics, as SVG. Answers 400 on unknown
// or repeated parameters.
Response Service::badge(const Job& job, std::size_t thread) {
  const Target& target = job.request.head.target;
  for (const auto& [name, values] : target.query) {
    if ((name != "cell" && name != "metric" && name != "branch") || values.size() > 1 ||
        values.front().size() > 4 * history::k_longest_name) {
      return error_answer(400, "a badge takes cell, metric and branch, each once");
    }
  }
  const BadgeSubject subject{target.value("cell").value_or(""),
                             target.value("metric").value_or("")};
  const auto state = slots_[thread]->with([&](history::ServiceStore& store) {
    return newest_badge_state(store, badge_project(target.path), target.value("branch"), subject,
                              large_mutex_);
  });
  if (!state) return store_trouble(state.error());
  std::string label = "weir";
  if (!subject.cell.empty()) label = subject.cell;
  if (!subject.metric.empty()) label = subject.metric;
  Response response = text_answer(200, "image/svg+xml", badge_svg(label, *state));
  // Image proxies (GitHub's) must ask again each time, and other sites may show it.
  set_header(response, "Cache-Control", "no-cache, max-age=0");
  set_header(response, "Cross-Origin-Resource-Policy", "cross-origin");
  return response;
}

// Answers without a reader, so that long queries do not make the service look unhealthy.
Response Service::health() const {
  const auto plain = [](int status, const char* text) {
    Response response = text_answer(status, "text/plain; charset=utf-8", text);
    set_header(response, "Cache-Control", "no-store");
    return response;
  };
  if (stopping_) return plain(503, "stopping\n");
  if (healthy_) return plain(200, "ok\n");
  return plain(503, "the history cannot be asked\n");
}

// Answers /metrics in the Prometheus text format.
Response Service::metrics() {
  MetricsText out;
  out.start_metric("weir_build_info", "gauge", "Which weir this is");
  out.add_value("weir_build_info", 1, fmt::format("{{version=\"{}\"}}", options_.version));
  {
    const std::lock_guard lock(traffic_mutex_);
    if (read_traffic_) add_traffic(out, read_traffic_());
  }
  add_uploads(out, meters_);
  out.add_gauge("weir_uploads_waiting", "Uploads that are to be written", intake_->waiting());
  out.add_gauge("weir_requests_waiting", "Requests that wait for a thread", readers_->waiting());
  if (const auto made_at = pages_->made_at()) {
    out.add_gauge("weir_pages_age_seconds", "How old what the pages show is",
                  clock_.now() - *made_at);
    const Pages::LeftOut left_out = pages_->left_out();
    out.add_gauge("weir_pages_left_out_runs", "Runs that are too old for the pages", left_out.runs);
    out.add_gauge("weir_pages_left_out_verdicts", "Verdicts that are too old for the pages",
                  left_out.verdicts);
  }
  Response response =
      text_answer(200, "text/plain; version=0.0.4; charset=utf-8", std::move(out.text));
  set_header(response, "Cache-Control", "no-store");
  return response;
}

}  // namespace weir::serve
