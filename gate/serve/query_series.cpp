#include "gate/serve/query_series.hpp"

#include <algorithm>
#include <map>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"
#include "gate/serve/answers.hpp"
#include "gate/sys/clock.hpp"

namespace weir::serve {
namespace {

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

Result<SeriesPlace> place_of_series_cursor(const std::string& cursor) {
  const auto bytes = base64_decoded(cursor);
  const auto json = parse_json(bytes.value_or(""), {.bytes = 8192, .depth = 1, .values = 8});
  const bool whole =
      json && json->is_array() && json->size() == 5 && (*json)[4].is_number_unsigned();
  if (!whole || !std::all_of(json->begin(), json->begin() + 4,
                             [](const Json& one) { return one.is_string(); })) {
    return fail(Code::usage, "cursor: none of ours");
  }
  return SeriesPlace{{(*json)[0], (*json)[1], (*json)[2], (*json)[3]}, (*json)[4]};
}

// Which series a page begins and ends with, without their points.
struct Page {
  std::map<SeriesKey, std::size_t> wanted;  // and how many points of each are there
  SeriesPlace from;
};

Result<Page> plan_page(history::Store& store, const Query& query) {
  Page page;
  if (!query.cursor.empty()) {
    WEIR_TRY(page.from, place_of_series_cursor(query.cursor));
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

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

Json json_of(const history::Place& place) {
  Json json = Json::object();
  put(json, "device_class", place.device_class);
  put(json, "device_name", place.device_name);
  put(json, "machine_class", place.machine_class);
  put(json, "machine_name", place.machine_name);
  put(json, "engine_build", place.engine_build);
  return json;
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
    if (fresh) places_.push_back(json_of(history_.places[number]));
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

}  // namespace

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

}  // namespace weir::serve
