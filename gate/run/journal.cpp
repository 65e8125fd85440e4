// Reads and writes run.jsonl, the journal of a run: a header, then records and added steps.
#include "gate/run/journal.hpp"

#include <array>
#include <tuple>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/run/merge.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"

namespace weir::sys {

static void fields(Fields& io, Machine& machine) {
  io("cpu_model", machine.cpu_model);
  io("physical_cores", machine.physical_cores);
  io("logical_cores", machine.logical_cores);
  io("usable_cores", machine.usable_cores);
  io("memory_bytes", machine.memory_bytes);
  io("os_release", machine.os_release);
  io("cpu_class", machine.cpu_class);
}

}  // namespace weir::sys

namespace weir::run {

using profile::RunRecord;

namespace {

constexpr std::string_view k_schema = "weir.run/1";

// Writes the four numbers of profile::Asked as one list.
struct AskedNumbers {
  profile::RunParameters& value;
  void put(Json& slot) const {
    slot = {value.prompt_tokens, value.tokens, value.repeats, value.depth};
  }
  void take(const Json& json, Fields& io, const char* key) const {
    std::vector<std::int64_t> numbers;
    io.take(json, key, numbers);
    if (numbers.size() != 4) return io.complain("should ask for 4 numbers");
    value = {numbers[0], numbers[1], numbers[2], numbers[3]};
  }
};

}  // namespace

// Fields of the header, the first line.

// Reads or writes a step of the plan as JSON, as `io` is set to read or to write.
static void fields(Fields& io, Step& step) {
  auto cell = static_cast<std::int64_t>(step.cell);
  io("cell", cell);
  io.check(cell >= 0, "names no cell");
  if (io.is_reading()) step.cell = static_cast<std::size_t>(cell);
  io("pass", profile::pass_field(step.pass, "names no pass"));
  io("asked", AskedNumbers{step.parameters});
  io.unless("counts", profile::counts_field(step.counts, "names no counts"),
            profile::Counts::device);
  io.optional("twin_fill", step.twin_fill);
  io.unless("side", profile::side_field(step.side, "names no side"), profile::Side::candidate);
  io.optional("pair", step.pair);
  io.check(!step.pair || *step.pair >= 0, "names no pair");
  io.optional("probed", step.with_probes);
}

// Reads or writes the "plan" object of the journal's header. When reading, also checks that cells
// are unique and that each step has its cell.
static void plan_fields(Fields& io, RunHeader& header) {
  constexpr std::size_t k_longest_path = 4096;  // each limit is named by it
  io("config_file", header.config_file);
  io.check(header.config_file.size() <= k_longest_path, "has a \"config_file\" that is too long");
  io("config_text", header.config_text);
  io("unavailable", header.unavailable);
  io("identity", header.identity);
  io.always("notes", header.notes);
  io("extra", header.extra);
  io("machine", header.machine);
  io("cells", header.cells, "cell");
  io.optional("base_cells", header.base_cells, "cell");
  if (io.is_reading() && !header.base_cells.empty() &&
      header.base_cells.size() != header.cells.size()) {
    io.refuse({Code::data, "base_cells are not as many as cells"});
  }
  io("steps", header.steps, "steps[]");
  if (!io.is_reading()) return;
  for (const auto* cells : {&header.cells, &header.base_cells}) {
    std::set<std::string> names;
    for (const profile::CellFacts& facts : *cells) {
      std::string name = facts.cell.str();
      if (names.contains(name)) {
        io.refuse({Code::data, fmt::format("its journal has the cell {} twice", name)});
      }
      names.insert(std::move(name));
    }
  }
  for (std::size_t i = 0; i < header.steps.size(); ++i) {
    header.steps[i].order = static_cast<std::int64_t>(i);
    if (header.steps[i].cell < header.cells.size()) continue;
    io.refuse({Code::data, fmt::format("steps[{}] names no cell", i)});
  }
}

static void fields(Fields& io, RunHeader& header) {
  io.write_only("schema", k_schema);
  io("weir_version", header.weir_version);
  io("started_at", header.started_at);
  io.object("plan", [&](Fields& plan) { plan_fields(plan, header); });
}

Json to_json(const sys::Machine& machine) { return write_fields(machine); }

Json to_json(const RunHeader& header) { return write_fields(header); }

namespace {

Result<RunHeader> header_from_json(const Json& json) {
  JsonReader reader(json, "run");
  const std::string schema = reader.string("schema");
  if (reader.problem()) return tl::unexpected(*reader.problem());
  if (schema != k_schema) {
    return fail(Code::data, "schema \"{}\", not \"{}\": made by another version of weir",
                text::printable(schema), k_schema);
  }
  return read_fields<RunHeader>(json, "run");
}

constexpr std::uint64_t k_max_bytes = std::uint64_t{1} << 30;
constexpr JsonLimits k_header_limits{.bytes = std::size_t{64} << 20, .depth = 64};
// A value takes up to 100 bytes of memory, however few it takes in the text.
constexpr JsonLimits k_record_limits{
    .bytes = std::size_t{16} << 20, .depth = 64, .values = 1'000'000};
constexpr std::size_t k_max_records = 1'000'000;

std::string journal_path(const std::string& folder) {
  return sys::join_path(folder, k_journal_name);
}

// Reads a journal line {"steps": […]}, which adds steps to the plan, and appends them to the
// header's. Fails if one names no cell or a missing base.
Result<void> read_added_steps(const Json& line, RunHeader& header) {
  if (!line["steps"].is_array()) return fail(Code::data, "\"steps\" is no list");
  std::vector<Step> added;
  for (const Json& json : line["steps"]) {
    const std::size_t order = header.steps.size() + added.size();
    if (order >= k_max_records) return fail(Code::data, "more than {} steps", k_max_records);
    const std::string path = fmt::format("steps[{}]", order);
    WEIR_TRY(Step step, read_fields<Step>(json, path));
    if (step.cell >= header.cells.size()) return fail(Code::data, "{} names no cell", path);
    step.order = static_cast<std::int64_t>(order);
    if (step.side == profile::Side::base && header.base_cells.empty()) {
      return fail(Code::data, "a step of a base program that is not there");
    }
    added.push_back(step);
  }
  header.steps.insert(header.steps.end(), added.begin(), added.end());
  return {};
}

// Reads the record of one process and checks that it matches its step of the plan. So no record
// counts for another cell.
Result<RunRecord> read_record(const Json& json, const RunHeader& header) {
  WEIR_TRY(RunRecord record, read_fields<profile::RunRecord>(json, "record"));
  const auto order = static_cast<std::uint64_t>(record.order);
  if (record.order < 0 || order >= header.steps.size()) {
    return fail(Code::data, "order {} is not in the plan", record.order);
  }
  const Step& step = header.steps[order];
  if (record.cell != header.cells[step.cell].cell.str() || record.pass != step.pass ||
      record.side != step.side || record.pair != step.pair ||
      record.with_probes != step.with_probes) {
    return fail(Code::data, "order {} belongs to another cell, pass or side", record.order);
  }
  return record;
}

// Index of the last record of each order, by order.
using RecordPlaces = std::vector<std::optional<std::size_t>>;

// Adds a record. It replaces an earlier record of the same order and attempt.
void add_record(std::vector<RunRecord>& records, RecordPlaces& places, RunRecord record) {
  std::optional<std::size_t>& place = places[static_cast<std::size_t>(record.order)];
  if (place && records[*place].attempt == record.attempt) {
    records[*place] = std::move(record);
    return;
  }
  place = records.size();
  records.push_back(std::move(record));
}

// Reads any line after the header: added steps or a record.
Result<void> read_line(const Json& json, RunFile& run, RecordPlaces& places) {
  if (json.is_object() && json.contains("steps")) {
    WEIR_CHECK(read_added_steps(json, run.header));
    run.ended = json["steps"].empty();
    places.resize(run.header.steps.size());
    return {};
  }
  WEIR_TRY(auto record, read_record(json, run.header));
  add_record(run.records, places, std::move(record));
  return {};
}

}  // namespace

RunHeader make_header(const Plan& plan) {
  RunHeader header;
  for (const PreparedCell& cell : plan.cells) {
    header.cells.push_back(cell.facts);
    if (cell.unavailable) header.unavailable[cell.cell.key.str()] = *cell.unavailable;
  }
  for (const PreparedCell& cell : plan.base_cells) header.base_cells.push_back(cell.facts);
  header.steps = plan.steps;
  header.identity = plan.identity;
  return header;
}

// Parses a journal line by line. A line that is no JSON is skipped with a warning, and so are later
// lines that do not fit. An incomplete last line is left out; `torn` tells it.
Result<RunFile> parse_run(std::string_view text) {
  RunFile run;
  RecordPlaces places;
  std::size_t line_number = 0, begin = 0, skipped = 0, first_skipped = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      run.torn = true;
      break;
    }
    const std::string_view line = text.substr(begin, end - begin);
    ++line_number;
    const auto place = with_prefix(fmt::format("line {}", line_number));
    if (line_number == 1) {
      WEIR_TRY(const Json json, parse_json(line, k_header_limits).map_error(place));
      WEIR_TRY(run.header, header_from_json(json).map_error(place));
      run.planned = run.header.steps.size();
      places.resize(run.header.steps.size());
    } else {
      if (line_number > k_max_records + 1) {
        return fail(Code::data, "more than {} records", k_max_records);
      }
      const auto json = parse_json(line, k_record_limits);
      const auto outcome = json ? read_line(*json, run, places) : Result<void>();
      // If a torn line declared steps, their records match no plan and are skipped too.
      if (!outcome && skipped == 0) return tl::unexpected(place(outcome.error()));
      if (!json || !outcome) {
        if (skipped == 0) first_skipped = line_number;
        ++skipped;
      }
    }
    begin = end + 1;
    run.whole_bytes = begin;
  }
  if (line_number == 0) {
    return fail(Code::data, "no run: it was ended before its first line was written");
  }
  if (skipped > 0) {
    run.warnings.push_back(fmt::format(
        "the journal's line {} is torn, as a full disk leaves one: {} skipped", first_skipped,
        skipped == 1 ? std::string("it was") : fmt::format("{} lines were", skipped)));
  }
  if (run.torn) run.warnings.emplace_back("the journal's last line was cut short and left out");
  return run;
}

Result<RunFile> read_run(const sys::Files& files, const std::string& run) {
  const std::string path = files.kind(run) == sys::Kind::folder ? journal_path(run) : run;
  WEIR_TRY(const std::string text, files.read(path, k_max_bytes));
  return parse_run(text).map_error(with_prefix(path));
}

std::vector<std::string> list_runs(const sys::Files& files, const std::string& out,
                                   std::string_view journal) {
  std::vector<std::string> runs;
  for (const std::string& name : files.list(out).value_or(std::vector<std::string>())) {
    std::string folder = sys::join_path(out, name);
    if (files.kind(sys::join_path(folder, journal)) == sys::Kind::file)
      runs.push_back(std::move(folder));
  }
  return runs;
}

tl::unexpected<Error> no_run(const std::string& out) {
  return fail(Code::usage, "{}: no run here; make one with \"weir run\" or \"weir gate\"", out);
}

bool named_before(const std::string& run, double time) {
  const std::string second = sys::file_time_of(time);
  const std::string name = sys::file_name_of(run).substr(0, second.size());
  const bool is_time =
      name.size() == second.size() && name.find_first_not_of("0123456789-") == std::string::npos;
  return is_time && name < second;
}

// Returns when the run in a folder began (Unix seconds), from the first line of its journal.
Result<double> read_started_at(const sys::Files& files, const std::string& run) {
  const std::string path = journal_path(run);
  // Most headers are short; of a long one all has to be read.
  for (const std::uint64_t bytes : {std::uint64_t{1} << 18, k_header_limits.bytes + 1}) {
    WEIR_TRY(const std::string text, files.read_prefix(path, bytes));
    const std::size_t end = text.find('\n');
    if (end == std::string::npos && text.size() >= bytes && bytes < k_header_limits.bytes) continue;
    WEIR_TRY(const RunFile file,
             parse_run(std::string_view(text).substr(0, end + 1)).map_error(with_prefix(path)));
    return file.header.started_at;
  }
  return fail(Code::internal, "{}: no header", path);
}

// Makes a folder in `out` named after the time `now` and returns its path. A second one of that
// second gets a suffix.
Result<std::string> make_run_folder(sys::Files& files, const std::string& out, double now) {
  WEIR_CHECK(files.make_dirs(out));
  const std::string name = sys::file_time_of(now);
  // Two runs may begin within one second; the suffix sorts after the plain name.
  for (int number = 1; number < 1000; ++number) {
    std::string folder =
        sys::join_path(out, number == 1 ? name : fmt::format("{}-{:03}", name, number));
    if (files.exists(folder)) continue;
    WEIR_CHECK(files.make_dirs(folder));
    return folder;
  }
  return fail(Code::io, "{}: too many runs named {}", out, name);
}

std::string verb_of_run(const Json& extra) {
  constexpr std::array<std::string_view, 3> k_others{"run", "calibrate", k_accept_verb};
  JsonReader reader(extra, "extra");
  const std::string verb = reader.optional_string("verb").value_or("");
  return holds(k_others, verb) ? verb : "gate";
}

std::string resume_command(std::string_view verb, const std::string& folder, const Json& extra) {
  if (verb == k_accept_verb) return fmt::format("weir {}", verb);
  const auto shard = parse_shard_facts(extra);
  const bool is_shard = shard && *shard && (*shard)->index > 0;
  return fmt::format("weir {} --resume {}{}", verb, text::shell_word(folder),
                     is_shard ? " --shard " + (*shard)->name() : "");
}

// Starts the journal of a new run in the folder and writes its header. Fails if the folder has a
// run already, and says how to resume it.
Result<Journal> Journal::create(sys::Files& files, const std::string& folder,
                                const RunHeader& header) {
  const std::string path = journal_path(folder);
  if (files.exists(path)) {
    const auto existing_run = read_run(files, folder);
    const Json& extra = existing_run ? existing_run->header.extra : header.extra;
    return fail(Code::usage,
                "{}: there is a run already\n  {} and the options that it was begun with go on "
                "with it",
                path, resume_command(verb_of_run(extra), folder, extra));
  }
  WEIR_TRY(auto log, files.append_log(path, 0));
  WEIR_CHECK(log->append(dump_json(to_json(header))));
  return Journal(folder, std::move(log));
}

// Continues a run's journal: checks that the plan is the same, cuts off an incomplete last line,
// and takes over the records.
Result<Journal> Journal::resume(sys::Files& files, const std::string& folder, const Plan& plan) {
  WEIR_TRY(RunFile unlocked_run, read_run(files, folder));
  WEIR_CHECK(
      check_same_plan(unlocked_run.header.identity, plan.identity).map_error(with_prefix(folder)));
  const std::string path = journal_path(folder);
  // Opening locks it. Read again: another weir may have appended since the first reading.
  WEIR_TRY(auto log, files.append_log(path, k_max_bytes));
  WEIR_TRY(RunFile run, read_run(files, folder));
  if (run.torn) {
    log.reset();
    WEIR_TRY(log, files.append_log(path, run.whole_bytes));
  }
  Journal journal(folder, std::move(log));
  journal.earlier_records_ = std::move(run.records);
  const auto& steps = run.header.steps;
  journal.added_steps_.assign(steps.begin() + static_cast<std::ptrdiff_t>(run.planned),
                              steps.end());
  return journal;
}

Result<void> Journal::declare(std::span<const Step> steps) {
  Json line = {{"steps", Json::array()}};
  for (const Step& step : steps) line["steps"].push_back(write_fields(step));
  return log_->append(dump_json(line));
}

Result<void> Journal::append(const RunRecord& record) {
  return log_->append(dump_json(write_fields(record)));
}

// Returns, for each cell with missing records, how many processes were planned and how many lack a
// record. Passes that were given up after an error lack nothing.
std::map<std::string, Unfinished> unfinished(const RunFile& run) {
  std::set<std::int64_t> recorded;
  // Passes that were given up, counted separately as in Tally. Pairs are never given up one by one.
  std::set<std::tuple<std::string, profile::Pass, profile::Counts, profile::Side>> given_up;
  for (const RunRecord& record : run.records) {
    recorded.insert(record.order);
    if (!record.error || record.pair || record.with_probes) continue;
    given_up.insert({record.cell, record.pass, record.counts, record.side});
  }
  std::map<std::string, Unfinished> result;
  for (const Step& step : run.header.steps) {
    const std::string cell = run.header.cells.at(step.cell).cell.str();
    Unfinished& counts = result[cell];
    const bool counted = step.pass == profile::Pass::counted;
    if (counted) {
      ++counts.counted_planned;
    } else {
      ++counts.timed_planned;
    }
    if (recorded.contains(step.order) ||
        given_up.contains({cell, step.pass, step.counts, step.side}))
      continue;
    if (counted) {
      ++counts.counted;
    } else {
      ++counts.timed;
    }
  }
  std::erase_if(
      result, [](const auto& item) { return item.second.counted == 0 && item.second.timed == 0; });
  return result;
}

}  // namespace weir::run
