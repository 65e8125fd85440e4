#include "gate/serve/queries.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"
#include "gate/history/changed.hpp"
#include "gate/history/changes_text.hpp"
#include "gate/history/iso_time.hpp"
#include "gate/serve/answers.hpp"
#include "gate/serve/query_series.hpp"
#include "gate/sys/clock.hpp"

namespace weir::serve {
namespace {

struct Takes {
  std::vector<std::string> parameters;
  std::size_t limit = 0, most = 0;
};

Takes takes_of(QueryKind kind) {
  switch (kind) {
    case QueryKind::series:
      return {{"project", "cell", "metric", "machine", "branch", "since", "until", "limit",
               "cursor", "samples"},
              1000,
              10'000};
    case QueryKind::changes:
      return {{"project", "cell", "metric", "machine", "branch", "since", "until", "limit",
               "cursor", "all"},
              1000,
              5000};
    case QueryKind::verdicts:
      return {{"project", "branch", "since", "until", "limit", "cursor", "full"}, 50, 500};
    case QueryKind::projects:
      return {{}, 0, 0};
  }
  return {};
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
    if (std::find(takes.parameters.begin(), takes.parameters.end(), name) ==
        takes.parameters.end()) {
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
           history::read_changes(store.history(), query.filter, order, {}, history::Looks::known));
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
            {"outcome", one.outcome}};
  json["run"] = one.run.empty() ? Json() : Json(one.run);
  json["commit"] = one.commit ? Json(*one.commit) : Json();
  json["branch"] = one.branch ? Json(*one.branch) : Json();
  if (full) json["verdict"] = parse_json(one.text).value_or(Json());
  return json;
}

// A verdict's place in a list, as text, and back.
std::string cursor_of(const history::StoredVerdict& one) {
  return base64(dump_json(Json{one.time, one.kept_at, one.id, one.run}));
}
Result<history::VerdictPlace> place_of_cursor(const std::string& cursor) {
  const auto bytes = base64_decoded(cursor);
  const auto json = parse_json(bytes.value_or(""), {.bytes = 8192, .depth = 1, .values = 8});
  if (!json || !json->is_array() || json->size() != 4 || !(*json)[0].is_number() ||
      !(*json)[1].is_number() || !(*json)[2].is_string() || !(*json)[3].is_string()) {
    return fail(Code::usage, "cursor: none of ours");
  }
  return history::VerdictPlace{(*json)[0], (*json)[1], (*json)[2], (*json)[3]};
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
    WEIR_TRY(wanted.behind, place_of_cursor(query.cursor));
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

}  // namespace

Result<Query> parse_query(QueryKind kind, const Target& target) {
  const Takes takes = takes_of(kind);
  WEIR_CHECK(check_parameters(target, takes));
  Query query;
  query.kind = kind;
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
  switch (query.kind) {
    case QueryKind::series:
      return answer_series(store, query, order);
    case QueryKind::changes:
      return changes_of(store, query, order);
    case QueryKind::verdicts:
      return verdicts_of(store, query);
    case QueryKind::projects:
      return projects_of(store, sees);
  }
  return fail(Code::internal, "no such query");
}

}  // namespace weir::serve
