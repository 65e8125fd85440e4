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

struct Takes {
  std::vector<std::string> parameters;
  std::size_t limit = 0, most = 0;
};

Takes takes_of(Route of) {
  if (of == Route::projects) return {};
  if (of == Route::verdicts) {
    return {{"project", "branch", "since", "until", "limit", "cursor", "full"}, 50, 500};
  }
  const bool changes = of == Route::changes;
  return {{"project", "cell", "metric", "machine", "branch", "since", "until", "limit", "cursor",
           changes ? "all" : "samples"},
          1000,
          changes ? 5000U : 10'000U};
}

// What a cursor is made of: for each part of it a letter, of a string, a number or a count.
Result<Json> parts_of_cursor(const std::string& cursor, std::string_view kinds) {
  const auto bytes = base64_decoded(cursor);
  auto json = parse_json(bytes.value_or(""), {.bytes = 8192, .depth = 1, .values = 8});
  const auto fits = [](const Json& part, char kind) {
    return kind == 's'   ? part.is_string()
           : kind == 'n' ? part.is_number()
                         : part.is_number_unsigned();
  };
  if (json && json->is_array() &&
      std::equal(json->begin(), json->end(), kinds.begin(), kinds.end(), fits)) {
    return json;
  }
  return fail(Code::usage, "cursor: none of ours");
}

constexpr std::size_t k_most_full = 20;  // verdicts with their documents

// The only value of a parameter that may stand once.
Result<std::optional<std::string>> single(const Target& target, const std::string& name) {
  const auto found = target.query.find(name);
  if (found == target.query.end()) return std::nullopt;
  if (found->second.size() > 1) return fail(Code::usage, "{}: more than one", name);
  if (found->second.front().size() > 4 * history::k_longest_name) {
    return fail(Code::usage, "{}: too long", name);
  }
  return found->second.front();
}

Result<std::optional<double>> time_of_parameter(const Target& target, const std::string& name) {
  WEIR_TRY(const auto text, single(target, name));
  if (!text) return std::nullopt;
  const auto time = history::parse_time(*text);
  if (time) return time;
  return fail(Code::usage, "{}: no time: 2026-11-20, 2026-11-20T09:30:15Z or Unix seconds", name);
}

Result<bool> flag(const Target& target, const std::string& name) {
  WEIR_TRY(const auto text, single(target, name));
  if (!text || *text == "0") return false;
  if (*text == "1") return true;
  return fail(Code::usage, "{}: 0 or 1", name);
}

std::vector<std::string> globs(const Target& target, const char* name) {
  const auto found = target.query.find(name);
  return found == target.query.end() ? std::vector<std::string>() : found->second;
}

// Code::usage where one is not known or too long.
Result<void> check_parameters(const Target& target, const Takes& takes) {
  for (const auto& [name, values] : target.query) {
    if (std::ranges::find(takes.parameters, name) == takes.parameters.end()) {
      return fail(Code::usage, "unknown parameter \"{}\"{}", text::printable(name.substr(0, 60)),
                  text::did_you_mean(name.substr(0, 60), takes.parameters));
    }
    for (const std::string& value : values) {
      if (value.size() > 4 * history::k_longest_name)
        return fail(Code::usage, "{}: too long", name);
    }
  }
  return {};
}

Result<Response> changes_of(history::ServiceStore& store, const Query& query,
                            const history::CommitOrder& order) {
  WEIR_TRY(history::ChangedHistory read,
           history::read_changes(store.history(), query.filter, order, {}));
  if (!query.all) {
    std::erase_if(read.changes,
                  [](const history::SeriesChange& one) { return one.known.has_value(); });
  }
  std::size_t from = 0;
  if (!query.cursor.empty()) {
    const auto number = text::to_int(query.cursor);
    if (!number || *number < 0) return fail(Code::usage, "cursor: none of ours");
    from = static_cast<std::size_t>(*number);
  }
  Json json = Json::array();
  for (std::size_t i = from; i < read.changes.size() && json.size() < query.limit; ++i) {
    json.push_back(history::change_json(read.history, read.changes[i]));
  }
  const std::size_t end = from + json.size();
  Response response = json_answer(200, json);
  // An array has no place for it.
  if (!json.empty() && end < read.changes.size()) {
    set_header(response, "Link",
               fmt::format("<{}>; rel=\"next\"",
                           address_with_cursor(query.target, fmt::format("{}", end))));
  }
  return response;
}

Json json_of(const history::StoredVerdict& one, bool full) {
  Json json{{"project", one.project},
            {"id", one.id},
            {"time", sys::time_of(one.time)},
            {"kept_at", sys::time_of(one.kept_at)},
            {"outcome", one.outcome},
            {"run", one.run.empty() ? Json() : Json(one.run)},
            {"commit", optional_to_json(one.commit)},
            {"branch", optional_to_json(one.branch)}};
  if (full) json["verdict"] = parse_json(one.text).value_or(Json());
  return json;
}

// A verdict's place in a list, as text.
std::string cursor_of(const history::StoredVerdict& one) {
  return base64(dump_json(Json{one.time, one.kept_at, one.id, one.run}));
}

Result<Response> verdicts_of(history::ServiceStore& store, const Query& query) {
  if (!query.filter.project) return fail(Code::usage, "project: name one");
  history::VerdictsWanted wanted{.project = *query.filter.project,
                                 .branch = query.filter.branch,
                                 .since = query.filter.since,
                                 .until = query.filter.until,
                                 .behind = {},
                                 .most = query.limit + 1,
                                 .texts = query.full};
  if (!query.cursor.empty()) {
    WEIR_TRY(const Json place, parts_of_cursor(query.cursor, "nnss"));
    wanted.behind = history::VerdictPlace{place[0], place[1], place[2], place[3]};
  }
  WEIR_TRY(std::vector<history::StoredVerdict> found, store.newest_verdicts(wanted));
  const bool more = found.size() > query.limit;
  if (more) found.resize(query.limit);
  Json list = Json::array();
  for (const history::StoredVerdict& one : found) list.push_back(json_of(one, query.full));
  Json json{{"schema", "weir.verdicts/1"}, {"verdicts", std::move(list)}};
  if (more) json["next"] = address_with_cursor(query.target, cursor_of(found.back()));
  return json_answer(200, json);
}

Result<Response> projects_of(history::ServiceStore& store,
                             const std::function<bool(const std::string&)>& sees) {
  struct Project {
    std::int64_t series = 0, points = 0;
    double first = 0, last = 0;
  };
  WEIR_TRY(const auto summaries, store.history().summaries({}));
  std::map<std::string, Project> projects;
  for (const history::SeriesSummary& one : summaries) {
    if (!sees(one.project)) continue;
    Project& project = projects[one.project];
    project.first = project.series == 0 ? one.first : std::min(project.first, one.first);
    project.last = project.series == 0 ? one.last : std::max(project.last, one.last);
    ++project.series;
    project.points += one.points;
  }
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

constexpr std::size_t k_most_samples_a_page = 500'000;
constexpr std::ptrdiff_t k_cells_at_once = 32;
constexpr int k_looks_at_some = 2;

// By which series stand in order: points lie by cell, so that a page looks at few of them. Metrics
// that two declarations use differently share a name, and then a place in a page.
struct SeriesKey {
  std::string cell, project, metric, machine;

  friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
};

struct SeriesPlace {
  SeriesKey key;
  std::size_t points = 0;  // of the series of this name that were given already
};

std::string cursor_of(const SeriesPlace& place) {
  const auto& [cell, project, metric, machine] = place.key;
  return base64(dump_json(Json{cell, project, metric, machine, place.points}));
}

// Which series a page begins and ends with, without their points.
struct Page {
  std::map<SeriesKey, std::size_t> wanted;  // and how many points of each are there
  SeriesPlace from;
};

Result<Page> plan_page(history::Store& store, const Query& query) {
  Page page;
  if (!query.cursor.empty()) {
    WEIR_TRY(const Json place, parts_of_cursor(query.cursor, "ssssu"));
    page.from = SeriesPlace{{place[0], place[1], place[2], place[3]}, place[4]};
  }
  WEIR_TRY(std::vector<std::string> cells, store.cells(query.filter));
  auto cell = std::lower_bound(cells.begin(), cells.end(), page.from.key.cell);
  std::size_t points = 0;
  for (int looks = 0; cell != cells.end() && points <= query.limit; ++looks) {
    // Some at once, as names: '*' in one matches more, which is left out. What few do not fill is
    // looked for among all that are left, in one go.
    const bool all = looks == k_looks_at_some;
    const auto end =
        all ? cells.end() : cell + std::min<std::ptrdiff_t>(k_cells_at_once, cells.end() - cell);
    history::Filter some = query.filter;
    if (!all) some.cells.assign(cell, end);
    WEIR_TRY(const auto summaries, store.summaries(some));
    std::map<SeriesKey, std::size_t> found;
    for (const history::SeriesSummary& one : summaries) {
      if (!std::binary_search(cell, end, one.cell)) continue;
      found[{one.cell, one.project, one.metric.name, one.machine}] +=
          static_cast<std::size_t>(one.points);
    }
    for (auto at = found.lower_bound(page.from.key); at != found.end(); ++at) {
      const std::size_t given = at->first == page.from.key ? page.from.points : 0;
      if (at->second <= given) continue;
      page.wanted.insert(*at);
      points += at->second - given;
      if (points > query.limit) break;
    }
    cell = end;
  }
  return page;
}

Json json_of(const history::Series& series) {
  Json json{{"project", series.project},
            {"cell", series.cell},
            {"metric", series.metric.name},
            {"machine", series.machine},
            {"points", Json::array()}};
  if (series.metric.unit) json["unit"] = unit::to_string(*series.metric.unit);
  if (series.metric.better) json["better"] = unit::to_string(*series.metric.better);
  return json;
}

// Writes points of a page, with the places that they name.
class PageWriter {
 public:
  PageWriter(const history::History& history, const Query& query)
      : history_(history), query_(query) {}

  // False where the page is full.
  bool add(Json& series, const history::SeriesPoint& point) {
    const std::size_t samples = query_.samples ? point.samples.size() : 0;
    if (points_ == query_.limit) return false;
    if (points_ > 0 && samples_ + samples > k_most_samples_a_page) return false;
    ++points_;
    samples_ += samples;
    const history::RunFacts& run = history_.run_of(point);
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
    const auto [at, fresh] = numbers_.try_emplace(number, places_.size());
    if (fresh) places_.push_back(write_fields(history_.places[number]));
    return at->second;
  }

  const history::History& history_;
  const Query& query_;
  std::map<std::uint32_t, std::size_t> numbers_;
  Json places_ = Json::array();
  std::size_t points_ = 0, samples_ = 0;
};

history::Filter filter_of_page(const Query& query, const Page& page) {
  history::Filter filter = query.filter;
  filter.cells.clear();
  for (const auto& [key, points] : page.wanted) {
    if (filter.cells.empty() || filter.cells.back() != key.cell) {
      filter.cells.push_back(key.cell);  // '*' in a name matches more, which is left out
    }
  }
  return filter;
}

// Points stand in the order of their commits within each series; a page ends within one where it
// has to. What comes between two pages may shift the second by that many points.
Result<Response> answer_series(history::ServiceStore& store, const Query& query,
                               const history::CommitOrder& order) {
  WEIR_TRY(const Page page, plan_page(store.history(), query));
  history::History history;
  if (!page.wanted.empty()) {
    WEIR_TRY(history, store.history().history(filter_of_page(query, page)));
  }
  history::put_in_order(history, order);
  std::map<SeriesKey, std::vector<const history::Series*>> found;
  for (const history::Series& one : history.series) {
    const SeriesKey key{one.cell, one.project, one.metric.name, one.machine};
    if (page.wanted.contains(key)) found[key].push_back(&one);
  }
  Json list = Json::array();
  PageWriter writer(history, query);
  std::optional<SeriesPlace> next;
  for (const auto& [key, several] : found) {
    SeriesPlace at{key, 0};
    const std::size_t given = key == page.from.key ? page.from.points : 0;
    for (const history::Series* one : several) {
      Json json = json_of(*one);
      for (const history::SeriesPoint& point : one->points) {
        if (at.points >= given && !writer.add(json, point)) {
          next = at;
          break;
        }
        ++at.points;
      }
      if (!json["points"].empty()) list.push_back(std::move(json));
      if (next) break;
    }
    if (next) break;
  }
  Json json{{"schema", "weir.series/1"}, {"series", std::move(list)}, {"places", writer.places()}};
  if (next) json["next"] = address_with_cursor(query.target, cursor_of(*next));
  return json_answer(200, json);
}

}  // namespace

Result<Query> parse_query(Route of, const Target& target) {
  const Takes takes = takes_of(of);
  WEIR_CHECK(check_parameters(target, takes));
  Query query;
  query.of = of;
  query.target = target;
  history::Filter& filter = query.filter;
  WEIR_TRY(filter.project, single(target, "project"));
  WEIR_TRY(filter.branch, single(target, "branch"));
  WEIR_TRY(filter.since, time_of_parameter(target, "since"));
  WEIR_TRY(filter.until, time_of_parameter(target, "until"));
  filter.cells = globs(target, "cell");
  filter.metrics = globs(target, "metric");
  filter.machines = globs(target, "machine");
  WEIR_TRY(query.samples, flag(target, "samples"));
  WEIR_TRY(query.all, flag(target, "all"));
  WEIR_TRY(query.full, flag(target, "full"));
  WEIR_TRY(const auto cursor, single(target, "cursor"));
  query.cursor = cursor.value_or("");
  const std::size_t most = query.full ? k_most_full : takes.most;
  query.limit = std::min(takes.limit, most);
  WEIR_TRY(const auto limit, single(target, "limit"));
  if (limit) {
    const auto number = text::to_int(*limit);
    if (!number || *number < 1 || static_cast<std::size_t>(*number) > most) {
      return fail(Code::usage, "limit: a number from 1 to {}", most);
    }
    query.limit = static_cast<std::size_t>(*number);
  }
  return query;
}

Result<Response> answer_query(history::ServiceStore& store, const Query& query,
                              const history::CommitOrder& order,
                              const std::function<bool(const std::string&)>& sees) {
  if (query.of == Route::changes) return changes_of(store, query, order);
  if (query.of == Route::verdicts) return verdicts_of(store, query);
  if (query.of == Route::projects) return projects_of(store, sees);
  return answer_series(store, query, order);
}

}  // namespace weir::serve
