// What the service answers without changing anything.
#include "gate/base/text.hpp"
#include "gate/serve/http.hpp"
#include "gate/serve/pages.hpp"
#include "gate/serve/service_state.hpp"

namespace weir::serve {
namespace {

// How many verdicts are looked through for one that has a cell.
constexpr std::size_t k_verdicts_for_badge = 10;

QueryKind query_of(Route route) {
  switch (route) {
    case Route::changes:
      return QueryKind::changes;
    case Route::verdicts:
      return QueryKind::verdicts;
    case Route::projects:
      return QueryKind::projects;
    default:
      return QueryKind::series;
  }
}

Result<BadgeState> newest_state(history::ServiceStore& store, const std::string& project,
                                const std::optional<std::string>& branch,
                                const BadgeWanted& wanted) {
  const bool part = !wanted.cell.empty() || !wanted.metric.empty();
  history::VerdictsWanted asked{
      .project = project, .branch = branch, .since = {}, .until = {}, .behind = {}};
  asked.most = 1;
  asked.texts = part;
  for (std::size_t i = 0; i < (part ? k_verdicts_for_badge : 1); ++i) {
    WEIR_TRY(const auto found, store.newest_verdicts(asked));
    if (found.empty()) break;
    const history::StoredVerdict& one = found.front();
    if (!part) {
      const auto outcome = verdict::parse_outcome(one.outcome);
      return outcome ? state_of(*outcome) : BadgeState::unknown;
    }
    const auto json = parse_json(one.text);
    const auto gate = json ? verdict::verdict_from_json(*json) : tl::unexpected(json.error());
    if (gate) {
      if (const auto state = state_of(*gate, wanted)) return *state;
    }
    asked.behind = history::VerdictPlace{one.time, one.kept_at, one.id, one.run};
  }
  return BadgeState::unknown;
}

class MetricsText {
 public:
  void add(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void value(std::string_view name, double value, std::string_view labels = "") {
    text_ += fmt::format("{}{} {}\n", name, labels, value);
  }
  void single(std::string_view name, std::string_view type, std::string_view help, double number) {
    add(name, type, help);
    value(name, number);
  }
  void append(const std::string& text) { text_ += text; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_traffic(MetricsText& out, const Traffic& traffic) {
  const auto count = [&](std::string_view name, std::string_view help, std::uint64_t number) {
    out.single(name, "counter", help, static_cast<double>(number));
  };
  count("weir_connections_total", "Connections that were accepted", traffic.connections);
  out.single("weir_connections_open", "gauge", "Connections now",
             static_cast<double>(traffic.open));
  count("weir_connections_refused_total", "Connections over the limit", traffic.refused);
  count("weir_requests_total", "Requests whose headers came", traffic.requests);
  count("weir_requests_malformed_total", "Requests that were none", traffic.malformed);
  count("weir_requests_timed_out_total", "Requests that came too slowly", traffic.timed_out);
  count("weir_requests_too_large_total", "Requests over a limit", traffic.too_large);
  count("weir_received_bytes_total", "Bytes that came", traffic.bytes_in);
  count("weir_sent_bytes_total", "Bytes that went", traffic.bytes_out);
}

void add_uploads(MetricsText& out, const Meters& meters) {
  out.add("weir_uploads_total", "counter", "Uploads by what became of them");
  const auto uploads = [&](const char* what, const Meters::Count& count) {
    out.value("weir_uploads_total", static_cast<double>(count.load()),
              fmt::format("{{result=\"{}\"}}", what));
  };
  uploads("kept", meters.uploads_kept);
  uploads("known", meters.uploads_known);
  uploads("refused", meters.uploads_refused);
  uploads("failed", meters.uploads_failed);
  out.add("weir_answers_total", "counter", "Answers by the first digit of their status");
  for (std::size_t i = 1; i < meters.answers.size(); ++i) {
    out.value("weir_answers_total", static_cast<double>(meters.answers[i].load()),
              fmt::format("{{status=\"{}xx\"}}", i));
  }
  out.single("weir_tokens_refused_total", "counter", "Requests with a token that is none",
             static_cast<double>(meters.tokens_refused.load()));
  out.single("weir_rates_exceeded_total", "counter", "Requests that came too often",
             static_cast<double>(meters.rates_exceeded.load()));
  out.single("weir_transactions_total", "counter", "Transactions that uploads were kept in",
             static_cast<double>(meters.transactions.load()));
  out.append(meters.store.text("weir_store_seconds", "How long transactions of uploads took"));
  out.append(meters.answer.text("weir_answer_seconds", "From a whole request to its answer"));
}

}  // namespace

Response Service::State::read(const Job& job, std::size_t thread) {
  const Target& target = job.request.head.target;
  switch (job.route) {
    case Route::page: {
      auto found = pages->find(target.path);
      return found ? *std::move(found) : error_answer(404, "there is no such page");
    }
    case Route::badge:
      return badge(job, thread);
    case Route::metrics:
      return metrics();
    default:
      break;
  }
  const auto query = parse_query(query_of(job.route), target);
  if (!query) return error_answer(400, query.error().message);
  const auto sees = [&](const std::string& project) {
    return may_see(job.caller, project, rules());
  };
  auto response = slots[thread]->with([&](history::ServiceStore& store) {
    return answer_query(store, *query, pages->order(), sees);
  });
  if (response) return *std::move(response);
  if (response.error().code == Code::usage) return error_answer(400, response.error().message);
  return store_trouble(response.error());
}

Response Service::State::badge(const Job& job, std::size_t thread) {
  const Target& target = job.request.head.target;
  for (const auto& [name, values] : target.query) {
    if ((name != "cell" && name != "metric" && name != "branch") || values.size() > 1 ||
        values.front().size() > 4 * history::k_longest_name) {
      return error_answer(400, "a badge takes cell, metric and branch, each once");
    }
  }
  const BadgeWanted wanted{target.one("cell").value_or(""), target.one("metric").value_or("")};
  const auto state = slots[thread]->with([&](history::ServiceStore& store) {
    return newest_state(store, badge_project(target.path), target.one("branch"), wanted);
  });
  if (!state) return store_trouble(state.error());
  const std::string& label = !wanted.metric.empty() ? wanted.metric
                             : !wanted.cell.empty() ? wanted.cell
                                                    : "weir";
  Response response = text_answer(200, "image/svg+xml", badge_svg(label, *state));
  // Proxies of images (GitHub's) ask again each time, and others may show it.
  set_header(response, "Cache-Control", "no-cache, max-age=0");
  set_header(response, "Cross-Origin-Resource-Policy", "cross-origin");
  return response;
}

// Answered without a reader: long queries do not make a service unwell.
Response Service::State::health() const {
  const auto plain = [](int status, const char* text) {
    Response response = text_answer(status, "text/plain; charset=utf-8", text);
    set_header(response, "Cache-Control", "no-store");
    return response;
  };
  if (stopping) return plain(503, "stopping\n");
  if (healthy) return plain(200, "ok\n");
  return plain(503, "the history can not be asked\n");
}

Response Service::State::metrics() {
  MetricsText out;
  out.add("weir_build_info", "gauge", "Which weir this is");
  out.value("weir_build_info", 1, fmt::format("{{version=\"{}\"}}", options.version));
  {
    const std::lock_guard lock(traffic_mutex);
    if (traffic) add_traffic(out, traffic());
  }
  add_uploads(out, meters);
  out.single("weir_uploads_waiting", "gauge", "Uploads that are to be written",
             static_cast<double>(intake->waiting()));
  out.single("weir_requests_waiting", "gauge", "Requests that wait for a thread",
             static_cast<double>(readers->waiting()));
  if (const auto made = pages->made_at()) {
    out.single("weir_pages_age_seconds", "gauge", "How old what the pages show is",
               clock.now() - *made);
  }
  Response response =
      text_answer(200, "text/plain; version=0.0.4; charset=utf-8", std::string(out.text()));
  set_header(response, "Cache-Control", "no-store");
  return response;
}

}  // namespace weir::serve
