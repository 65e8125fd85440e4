// Answers queries of the history: series, changes, verdicts and projects, page by page.
#include "gate/serve/queries.hpp"

#include <algorithm>
#include <map>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"
#include "gate/history/changes.hpp"
#include "gate/history/history.hpp"
#include "gate/sys/clock.hpp"

namespace weir::serve {

namespace {

struct ParameterRules {
  std::vector<std::string> parameters;
  std::size_t limit = 0, max_limit = 0;
};

ParameterRules parameter_rules(Route route) {
  if (route == Route::projects) return {};
  if (route == Route::verdicts) {
    return {{"project", "branch", "since", "until", "limit", "cursor", "full"}, 50, 500};
  }
  const bool changes = route == Route::changes;
  return {{"project", "cell", "metric", "machine", "branch", "since", "until", "limit", "cursor",
           changes ? "all" : "samples"},
          1000,
          changes ? 5000U : 10'000U};
}

// Decodes a cursor, the place at which the next page begins: base64 of a JSON array. `kinds` has a
// letter for each item: 's' string, 'n' number, 'u' count. Fails if they do not match.
Result<Json> parse_cursor(const std::string& cursor, std::string_view kinds) {
  const auto bytes = decode_base64(cursor);
  auto json = parse_json(bytes.value_or(""), {.bytes = 8192, .depth = 1, .values = 8});
  const auto fits = [](const Json& part, char kind) {
    if (kind == 's') return part.is_string();
    if (kind == 'n') return part.is_number();
    return part.is_number_unsigned();
  };
  if (json && json->is_array() &&
      std::equal(json->begin(), json->end(), kinds.begin(), kinds.end(), fits)) {
    return json;
  }
  return fail(Code::usage, "cursor: none of ours");
}

constexpr std::size_t k_max_full_verdicts = 20;  // verdicts with their documents
// Bytes of a page, about; one entry may be larger. And bytes that a query may read for it.
constexpr std::size_t k_max_page_bytes = std::size_t{2} << 20;
constexpr std::size_t k_max_read_bytes = std::size_t{16} << 20;

// Returns the value of a parameter, or nothing if it is absent. Fails if it is given twice.
Result<std::optional<std::string>> single_value(const Target& target, const std::string& name) {
  const auto parameter = target.query.find(name);
  if (parameter == target.query.end()) return std::nullopt;
  if (parameter->second.size() > 1) return fail(Code::usage, "{}: more than one", name);
  if (parameter->second.front().size() > 4 * history::k_longest_name) {
    return fail(Code::usage, "{}: too long", name);
  }
  return parameter->second.front();
}

Result<std::optional<double>> parse_time_parameter(const Target& target, const std::string& name) {
  WEIR_TRY(const auto text, single_value(target, name));
  if (!text) return std::nullopt;
  const auto time = history::parse_time(*text);
  if (time) return time;
  return fail(Code::usage, "{}: no time: 2026-11-20, 2026-11-20T09:30:15Z or Unix seconds", name);
}

Result<bool> parse_flag(const Target& target, const std::string& name) {
  WEIR_TRY(const auto text, single_value(target, name));
  if (!text || *text == "0") return false;
  if (*text == "1") return true;
  return fail(Code::usage, "{}: 0 or 1", name);
}

std::vector<std::string> glob_values(const Target& target, const char* name) {
  const auto parameter = target.query.find(name);
  return parameter == target.query.end() ? std::vector<std::string>() : parameter->second;
}

// Fails with Code::usage if a parameter of the query is not in the rules, or too long.
Result<void> check_parameters(const Target& target, const ParameterRules& rules) {
  for (const auto& [name, values] : target.query) {
    if (std::ranges::find(rules.parameters, name) == rules.parameters.end()) {
      return fail(Code::usage, "unknown parameter \"{}\"{}", text::printable(name.substr(0, 60)),
                  text::did_you_mean(name.substr(0, 60), rules.parameters));
    }
    for (const std::string& value : values) {
      if (value.size() > 4 * history::k_longest_name)
        return fail(Code::usage, "{}: too long", name);
    }
  }
  return {};
}

// Answers one page of the changes in the history, without acknowledged ones unless `query.all`. The
// cursor is the index of the page's first change; the next page's address is in the header "Link".
Result<Response> answer_changes(history::ServiceStore& store, const Query& query,
                                const history::CommitOrder& order) {
  history::Filter filter = query.filter;
  filter.samples = false;
  filter.max_bytes = k_max_read_bytes;
  WEIR_TRY(history::ChangedHistory result,
           history::read_changes(store.history(), filter, order, {}));
  if (!query.all) {
    std::erase_if(result.changes, [](const history::SeriesChange& change) {
      return change.acknowledgement.has_value();
    });
  }
  std::size_t first = 0;
  if (!query.cursor.empty()) {
    const auto number = text::to_int(query.cursor);
    if (!number || *number < 0) return fail(Code::usage, "cursor: none of ours");
    first = static_cast<std::size_t>(*number);
  }
  std::string text = "[";
  std::size_t next = first;
  while (next < result.changes.size() && next - first < query.limit &&
         text.size() < k_max_page_bytes) {
    if (next > first) text += ',';
    text += dump_json(history::change_json(result.history, result.changes[next]));
    ++next;
  }
  Response response = text_answer(200, "application/json", text + "]\n");
  // The body is an array, so the next page's address goes into a header.
  if (next > first && next < result.changes.size()) {
    set_header(response, "Link",
               fmt::format("<{}>; rel=\"next\"",
                           address_with_cursor(query.target, fmt::format("{}", next))));
  }
  return response;
}

// Appends a stored verdict to `text` as JSON. With `full`, copies its document as it is stored; a
// document that is no JSON becomes null.
Result<void> append_verdict(history::ServiceStore& store, const history::StoredVerdict& stored,
                            bool full, std::string& text) {
  const Json json{{"project", stored.project},
                  {"id", stored.id},
                  {"time", sys::time_of(stored.time)},
                  {"kept_at", sys::time_of(stored.kept_at)},
                  {"outcome", stored.outcome},
                  {"run", stored.run.empty() ? Json() : Json(stored.run)},
                  {"commit", optional_to_json(stored.commit)},
                  {"branch", optional_to_json(stored.branch)}};
  text += dump_json(json);
  if (!full) return {};
  text.back() = ',';  // in place of '}'
  text += "\"verdict\":";
  const std::size_t document_begin = text.size();
  WEIR_CHECK(store.append_text(stored, text));
  if (!is_json(std::string_view(text).substr(document_begin)))
    text.replace(document_begin, std::string::npos, "null");
  text += '}';
  return {};
}

// Makes the cursor that continues after this verdict.
std::string make_cursor(const history::StoredVerdict& verdict) {
  return base64(dump_json(Json{verdict.time, verdict.kept_at, verdict.id, verdict.run}));
}

// Answers one page of a project's stored verdicts, newest first. "next" is the next page's address,
// if there is one.
Result<Response> answer_verdicts(history::ServiceStore& store, const Query& query) {
  if (!query.filter.project) return fail(Code::usage, "project: name one");
  history::VerdictQuery selection{.project = *query.filter.project,
                                  .branch = query.filter.branch,
                                  .since = query.filter.since,
                                  .until = query.filter.until,
                                  .behind = {},
                                  .max_verdicts = query.limit + 1};
  if (!query.cursor.empty()) {
    WEIR_TRY(const Json place, parse_cursor(query.cursor, "nnss"));
    selection.behind = history::VerdictPlace{place[0], place[1], place[2], place[3]};
  }
  WEIR_TRY(const auto verdicts, store.newest_verdicts(selection));
  std::string text = "{\"schema\":\"weir.verdicts/1\",\"verdicts\":[";
  std::size_t count = 0;
  while (count < std::min(verdicts.size(), query.limit) && text.size() < k_max_page_bytes) {
    if (count > 0) text += ',';
    WEIR_CHECK(append_verdict(store, verdicts[count], query.full, text));
    ++count;
  }
  text += ']';
  if (count < verdicts.size()) {
    const std::string cursor = make_cursor(verdicts[count - 1]);
    text += ",\"next\":" + dump_json(Json(address_with_cursor(query.target, cursor)));
  }
  text += "}\n";
  return text_answer(200, "application/json", std::move(text));
}

// Lists the projects that the caller may read, with their number of series and points, and their
// first and last time.
Result<Response> answer_projects(history::ServiceStore& store,
                                 const std::function<bool(const std::string&)>& may_read) {
  struct Project {
    std::int64_t series = 0, points = 0;
    double first = 0, last = 0;
  };
  std::map<std::string, Project> projects;
  const auto add_series = [&](const history::SeriesSummary& summary) -> Result<void> {
    if (!may_read(summary.project)) return {};
    Project& project = projects[summary.project];
    project.first = project.series == 0 ? summary.first : std::min(project.first, summary.first);
    project.last = project.series == 0 ? summary.last : std::max(project.last, summary.last);
    ++project.series;
    project.points += summary.points;
    return {};
  };
  WEIR_CHECK(store.history().each_summary({}, add_series));
  Json list = Json::array();
  for (const auto& [name, project] : projects) {
    list.push_back({{"name", name},
                    {"series", project.series},
                    {"points", project.points},
                    {"first", sys::time_of(project.first)},
                    {"last", sys::time_of(project.last)}});
  }
  return json_answer(200, {{"schema", "weir.projects/1"}, {"projects", std::move(list)}});
}

constexpr std::size_t k_max_samples_per_page = 500'000;
constexpr std::size_t k_point_bytes = 128, k_sample_bytes = 4;  // of a page, at least
constexpr std::size_t k_cells_at_once = 32;
constexpr std::size_t k_max_rounds = 32;

// The sort key of series. Cells come first, so that a page touches few of them. Series whose metric
// is declared differently can have the same key; they share a place in the page.
struct SeriesKey {
  std::string cell, project, metric, machine;

  friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
};

struct SeriesPlace {
  SeriesKey key;
  std::size_t points = 0;  // points of the series with this key that earlier pages had
};

std::string make_cursor(const SeriesPlace& place) {
  const auto& [cell, project, metric, machine] = place.key;
  return base64(dump_json(Json{cell, project, metric, machine, place.points}));
}

// The series that a page contains, without their points.
struct Page {
  std::map<SeriesKey, std::size_t> wanted;  // number of points of each
  SeriesPlace from;
  std::optional<std::string> next_cell;  // the first that was not looked at
};

// Chooses the series of a page, from the cursor on. Stops after `query.limit` points, or after a
// number of cells without enough points; `next_cell` then names the first unread cell.
Result<Page> plan_page(history::Store& store, const Query& query) {
  Page page;
  if (!query.cursor.empty()) {
    WEIR_TRY(const Json place, parse_cursor(query.cursor, "ssssu"));
    page.from = SeriesPlace{{place[0], place[1], place[2], place[3]}, place[4]};
  }
  page.next_cell = page.from.key.cell;
  std::size_t points = 0;
  for (std::size_t round = 0; page.next_cell && round < k_max_rounds; ++round) {
    if (points > query.limit) break;
    WEIR_TRY(const history::CellPage cells,
             store.cells(query.filter, *page.next_cell, k_cells_at_once));
    page.next_cell = cells.next_name;
    if (cells.names.empty()) continue;
    history::Filter filter = query.filter;
    filter.max_bytes = k_max_read_bytes;
    filter.exact_cells = cells.names;
    std::map<SeriesKey, std::size_t> point_counts;
    WEIR_CHECK(
        store.each_summary(filter, [&](const history::SeriesSummary& summary) -> Result<void> {
          point_counts[{summary.cell, summary.project, summary.metric.name, summary.machine}] +=
              static_cast<std::size_t>(summary.points);
          return {};
        }));
    for (auto entry = point_counts.lower_bound(page.from.key); entry != point_counts.end();
         ++entry) {
      const std::size_t already_sent = entry->first == page.from.key ? page.from.points : 0;
      if (entry->second <= already_sent) continue;
      page.wanted.insert(*entry);
      points += entry->second - already_sent;
      if (points > query.limit) break;
    }
  }
  return page;
}

Json series_json(const history::Series& series) {
  Json json{{"project", series.project},
            {"cell", series.cell},
            {"metric", series.metric.name},
            {"machine", series.machine},
            {"points", Json::array()}};
  if (series.metric.unit) json["unit"] = unit::to_string(*series.metric.unit);
  if (series.metric.better) json["better"] = unit::to_string(*series.metric.better);
  return json;
}

// Writes the points of a page, and the places that they refer to by number.
class PageWriter {
 public:
  PageWriter(const history::History& history, const Query& query)
      : history_(history), query_(query) {}

  // Returns false if the page is full.
  bool add(Json& series, const history::SeriesPoint& point) {
    const std::size_t samples = point.samples.size();
    if (points_ == query_.limit || bytes_ >= k_max_page_bytes) return false;
    if (points_ > 0 && samples_ + samples > k_max_samples_per_page) return false;
    ++points_;
    samples_ += samples;
    const history::RunFacts& run = history_.run_of(point);
    bytes_ += k_point_bytes + run.id.size() + run.commit.value_or("").size() +
              run.branch.value_or("").size() + k_sample_bytes * samples;
    Json json{{"run", run.id},
              {"time", sys::time_of(run.time)},
              {"nature", profile::to_string(point.nature)},
              {"value", number_to_json(point.value)},
              {"place", place(point.place)}};
    if (run.commit) json["commit"] = *run.commit;
    if (run.branch) json["branch"] = *run.branch;
    if (run.dirty) json["dirty"] = true;
    if (point.exact) json["exact"] = rational_to_json(*point.exact);
    if (samples > 0) json["samples"] = point.samples;
    series["points"].push_back(std::move(json));
    return true;
  }
  [[nodiscard]] Json places() const { return places_; }

 private:
  std::size_t place(std::uint32_t number) {
    const auto [at, is_new] = numbers_.try_emplace(number, places_.size());
    if (is_new) places_.push_back(write_fields(history_.places[number]));
    return at->second;
  }

  const history::History& history_;
  const Query& query_;
  std::map<std::uint32_t, std::size_t> numbers_;
  Json places_ = Json::array();
  std::size_t points_ = 0, samples_ = 0, bytes_ = 0;
};

// Narrows the query's filter to the cells of the page.
history::Filter page_filter(const Query& query, const Page& page) {
  history::Filter filter = query.filter;
  filter.samples = query.samples;
  filter.max_bytes = k_max_read_bytes;
  std::vector<std::string>& cells = filter.exact_cells;
  for (const auto& [key, points] : page.wanted) {
    if (cells.empty() || cells.back() != key.cell) cells.push_back(key.cell);
  }
  return filter;
}

// Answers one page of series. Points are ordered by commit within a series, and a page may end
// within one. Points stored between two requests can shift the second page by their number.
Result<Response> answer_series(history::ServiceStore& store, const Query& query,
                               const history::CommitOrder& order) {
  WEIR_TRY(const Page page, plan_page(store.history(), query));
  history::History history;
  if (!page.wanted.empty()) {
    WEIR_TRY(history, store.history().history(page_filter(query, page)));
  }
  history::put_in_order(history, order);
  std::map<SeriesKey, std::vector<const history::Series*>> series_by_key;
  for (const history::Series& series : history.series) {
    const SeriesKey key{series.cell, series.project, series.metric.name, series.machine};
    if (page.wanted.contains(key)) series_by_key[key].push_back(&series);
  }
  Json list = Json::array();
  PageWriter writer(history, query);
  std::optional<SeriesPlace> next;
  if (page.next_cell) next = SeriesPlace{{*page.next_cell, "", "", ""}, 0};
  bool is_full = false;
  for (const auto& [key, same_key] : series_by_key) {
    SeriesPlace next_place{key, 0};
    const std::size_t already_sent = key == page.from.key ? page.from.points : 0;
    for (const history::Series* series : same_key) {
      Json json = series_json(*series);
      for (const history::SeriesPoint& point : series->points) {
        is_full = next_place.points >= already_sent && !writer.add(json, point);
        if (is_full) break;
        ++next_place.points;
      }
      if (!json["points"].empty()) list.push_back(std::move(json));
      if (is_full) break;
    }
    if (is_full) {
      next = next_place;
      break;
    }
  }
  Json json{{"schema", "weir.series/1"}, {"series", std::move(list)}, {"places", writer.places()}};
  if (next) json["next"] = address_with_cursor(query.target, make_cursor(*next));
  return json_answer(200, json);
}

}  // namespace

// Parses the parameters of a request to the API. Fails on unknown ones and on values that are out
// of range.
Result<Query> parse_query(Route route, const Target& target) {
  const ParameterRules rules = parameter_rules(route);
  WEIR_CHECK(check_parameters(target, rules));
  Query query;
  query.route = route;
  query.target = target;
  history::Filter& filter = query.filter;
  WEIR_TRY(filter.project, single_value(target, "project"));
  WEIR_TRY(filter.branch, single_value(target, "branch"));
  WEIR_TRY(filter.since, parse_time_parameter(target, "since"));
  WEIR_TRY(filter.until, parse_time_parameter(target, "until"));
  filter.cells = glob_values(target, "cell");
  filter.metrics = glob_values(target, "metric");
  filter.machines = glob_values(target, "machine");
  WEIR_TRY(query.samples, parse_flag(target, "samples"));
  WEIR_TRY(query.all, parse_flag(target, "all"));
  WEIR_TRY(query.full, parse_flag(target, "full"));
  WEIR_TRY(const auto cursor, single_value(target, "cursor"));
  query.cursor = cursor.value_or("");
  const std::size_t max_limit = query.full ? k_max_full_verdicts : rules.max_limit;
  query.limit = std::min(rules.limit, max_limit);
  WEIR_TRY(const auto limit, single_value(target, "limit"));
  if (limit) {
    const auto number = text::to_int(*limit);
    if (!number || *number < 1 || static_cast<std::size_t>(*number) > max_limit) {
      return fail(Code::usage, "limit: a number from 1 to {}", max_limit);
    }
    query.limit = static_cast<std::size_t>(*number);
  }
  return query;
}

Result<Response> answer_query(history::ServiceStore& store, const Query& query,
                              const history::CommitOrder& order,
                              const std::function<bool(const std::string&)>& sees) {
  if (query.route == Route::changes) return answer_changes(store, query, order);
  if (query.route == Route::verdicts) return answer_verdicts(store, query);
  if (query.route == Route::projects) return answer_projects(store, sees);
  return answer_series(store, query, order);
}

}  // namespace weir::serve
