// Reads files and folders that hold profiles: weir's own, or those of engines and profilers.
#include "gate/flow/profile_files.hpp"

#include "gate/adapters/chrome_trace_reader.hpp"
#include "gate/adapters/json_pieces.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/sys/gunzip.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr std::uint64_t k_head = std::uint64_t{1} << 20;   // enough to recognise a format
constexpr std::uint64_t k_chunk = std::uint64_t{1} << 20;  // size of a piece of a large file

// Returns the schema of a text that is one JSON object; "" if it names none. Reads in pieces, and
// keeps no other members, which may be of any size.
std::string read_schema(std::string_view text) {
  constexpr adapters::JsonPieceLimits k_limits{.piece_bytes = 4096, .members_bytes = 64 << 10};
  std::string schema;
  adapters::JsonPieces pieces({},
                              {[](std::string_view, const Json&) {},
                               [&](const Json& members) {
                                 const Json& value = member_or_null(members, "schema");
                                 if (value.is_string()) schema = value.get<std::string>();
                               }},
                              k_limits);
  while (!text.empty() && pieces.losses().documents < 2) {
    pieces.feed(text.substr(0, k_chunk));
    text.remove_prefix(std::min<std::size_t>(text.size(), k_chunk));
  }
  pieces.finish();
  const adapters::JsonPieceLosses& losses = pieces.losses();
  return losses.documents == 1 && losses.broken == 0 && !losses.cut ? schema : "";
}

// Reads the profiles of a weir.profile/1 or weir.profiles/1 document.
Result<ProfileFile> read_weir_profiles(const Json& json, const std::string& schema) {
  ProfileFile file;
  if (schema == "weir.profile/1") {
    WEIR_TRY(file.profiles.emplace_back(), read_fields<profile::Profile>(json, "profile"));
    return file;
  }
  const Json& list = member_or_null(json, "profiles");
  if (!list.is_array()) return fail(Code::data, "it has no profiles");
  for (const Json& item : list)
    WEIR_TRY_SET(file.profiles.emplace_back(), read_fields<profile::Profile>(item, "profile"));
  return file;
}

// Removes the folder from the model's path, which is private.
observed::Observed without_folder(observed::Observed observed) {
  if (auto& model = observed.context.model) {
    while (model->size() > 1 && model->ends_with('/')) model->pop_back();
    model = model->substr(model->find_last_of("/\\") + 1);
  }
  return observed;
}

ProfileFile make_observed_file(observed::Observed observed) {
  return {{}, without_folder(std::move(observed))};
}

// Reads a text in UTF-8 of any known format. Fills `moments` (if not null) from a Chrome trace.
Result<ProfileFile> read_utf8(const std::string& path, const std::string& text,
                              observed::ObservedMoments* moments) {
  const std::string schema = text::trim(text).starts_with('{') ? read_schema(text) : "";
  if (schema == "weir.profile/1" || schema == "weir.profiles/1") {
    WEIR_TRY(const Json json, parse_json(text));
    return read_weir_profiles(json, schema);
  }
  if (schema.starts_with("weir.") && schema != "weir.observed/1" &&
      !schema.starts_with("weir.timeline/")) {
    return fail(Code::data,
                "it is {}, not a profile\n"
                "  Profiles are what weir run --json writes, and what engines and profilers do.",
                text::printable(schema.substr(0, 64)));
  }
  // All other text, and weir.observed/1, goes to the adapters.
  WEIR_TRY(observed::Observed observed, adapters::read_any({text, {}, path}));
  const bool is_trace = observed.format == "chrome-trace" && schema.empty();
  if (moments != nullptr && is_trace) {  // read again, now that the format is known
    adapters::ChromeTraceReader reader({}, moments);
    reader.feed(text);
    WEIR_TRY(observed, reader.finish());
  }
  return make_observed_file(std::move(observed));
}

Result<ProfileFile> read_text(const std::string& path, const std::string& text,
                              observed::ObservedMoments* moments) {
  const auto utf8 = text::decoded(text);
  return read_utf8(path, utf8 ? *utf8 : text, moments);
}

// Returns true if a text that begins with `head` is surely a Chrome trace.
bool is_chrome_trace(std::string_view head) {
  const std::string_view begin = text::trim(head);
  return (begin.starts_with('{') || begin.starts_with('[')) && adapters::begins_chrome_trace(head);
}

// Reads a packed file, or one of more than `max_whole_bytes` bytes, which must be a Chrome trace.
// The limit counts unpacked bytes. A trace is read in pieces: little may unpack to much.
Result<ProfileFile> read_pieces(const std::string& path, std::uint64_t max_whole_bytes,
                                observed::ObservedMoments* moments) {
  WEIR_TRY(sys::UnpackedReader file, sys::UnpackedReader::open(path));
  WEIR_TRY(std::string chunk, file.read(k_head));
  const bool may_be_whole = file.packed() && !is_chrome_trace(chunk);
  if (may_be_whole && chunk.size() <= max_whole_bytes) {
    WEIR_TRY(const std::string rest, file.read(max_whole_bytes + 1 - chunk.size()));
    chunk += rest;
  }
  if (may_be_whole && chunk.size() <= max_whole_bytes) {
    const bool is_gz_name = path.ends_with(".gz");
    return read_text(is_gz_name ? path.substr(0, path.size() - 3) : path, chunk, moments);
  }
  if (!adapters::begins_chrome_trace(std::string_view(chunk).substr(0, k_head))) {
    // Results of load tools may be larger, too. They are known by their beginning.
    const std::string head = chunk.substr(0, k_head);
    const auto formats = adapters::find_formats(adapters::Printed({head, {}, path}));
    const bool is_result = std::ranges::any_of(formats, [](const adapters::Format* format) {
      return format->adapter.counts == adapters::Counts::results;
    });
    if (is_result && chunk.size() <= adapters::k_max_result_bytes) {
      WEIR_TRY(const std::string rest, file.read(adapters::k_max_result_bytes + 1 - chunk.size()));
      chunk += rest;
      return read_text(path, chunk, moments);
    }
    return fail(Code::data,
                "it is larger than {} MiB{}, which only a Chrome trace or a load tool's result may "
                "be,\n  and it does not begin as one",
                max_whole_bytes >> 20, file.packed() ? " unpacked" : "");
  }
  adapters::ChromeTraceReader reader({}, moments);
  while (!chunk.empty()) {
    reader.feed(chunk);
    WEIR_TRY_SET(chunk, file.read(k_chunk));
  }
  WEIR_TRY(observed::Observed observed, reader.finish());
  return make_observed_file(std::move(observed));
}

}  // namespace

Result<ProfileFile> read_profile_file(const std::string& path, const sys::Files& files,
                                      std::uint64_t max_whole_bytes,
                                      observed::ObservedMoments* moments) {
  const auto size = files.size(path);
  const auto head = files.read_prefix(path, 2);
  if ((size && *size > max_whole_bytes) || (head && sys::begins_gzip(*head))) {
    return read_pieces(path, max_whole_bytes, moments).map_error(with_prefix(path));
  }
  WEIR_TRY(const std::string text, files.read(path, max_whole_bytes));
  return read_text(path, text, moments).map_error(with_prefix(path));
}

Result<observed::Observed> read_printed(const std::string& out, const std::string& err) {
  WEIR_TRY(observed::Observed observed, adapters::read_any({out, err}));
  return without_folder(std::move(observed));
}

bool holds_run(const std::string& path, const sys::Files& files) {
  if (files.kind(path) == sys::Kind::folder) {
    return files.kind(sys::join_path(path, run::k_journal_name)) == sys::Kind::file;
  }
  if (!path.ends_with(".jsonl")) return false;
  // Engines write JSON lines too, so we look for the schema in the first line.
  const auto begin = files.read_prefix(path, std::uint64_t{1} << 20);
  return begin && begin->substr(0, begin->find('\n')).find("\"weir.run/") != std::string::npos;
}

// Reads the profiles of a run, of a folder of probe files, or of a file. Sets `measured` for a run.
Result<ProfileFile> read_profiles(const Job& job, const std::string& path,
                                  std::optional<MeasuredRun>& measured) {
  if (holds_run(path, job.files())) {
    Job all_cells_job = job;
    all_cells_job.selection.cells.clear();
    WEIR_TRY(MeasuredRun run, read_measured(all_cells_job, path));
    redact_profiles(run);
    measured = std::move(run);
    return ProfileFile{measured->profiles, {}};
  }
  if (job.files().kind(path) == sys::Kind::folder) {
    WEIR_TRY(observed::Timeline timeline, probes::collect_timeline(job.files(), path));
    if (timeline.processes.empty()) {
      return fail(Code::usage, "{}: neither a run (no {}) nor what weir profile --keep leaves",
                  path, run::k_journal_name);
    }
    observed::align(timeline);
    return ProfileFile{{}, observed::to_observed(timeline)};
  }
  return read_profile_file(path, job.files());
}

CellPairs cell_pairs(const ProfileFile& a, const ProfileFile& b, const Job& job) {
  CellPairs pairs;
  const bool compares_single_cells = a.profiles.size() == 1 && b.profiles.size() == 1;
  for (const profile::Profile& after : b.profiles) {
    if (!job.selection.wants(after.cell.str())) continue;
    for (const profile::Profile& before : a.profiles) {
      if (compares_single_cells || before.cell == after.cell) pairs.emplace_back(&before, &after);
    }
  }
  return pairs;
}

}  // namespace weir::flow
