// Reads and writes the journal of a bisection.
#include "gate/flow/bisect_journal.hpp"

#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr const char* k_schema = "weir.bisect.journal/1";
constexpr std::uint64_t k_journal_bytes = std::uint64_t{64} << 20;

std::string path_in(const std::string& folder) { return sys::join_path(folder, "bisect.jsonl"); }

}  // namespace

// Reads or writes the first line of a bisection's journal: the request, as `io` is set.
static void fields(Fields& io, BisectRequest& request) {
  io.schema(k_schema, "is no journal of a bisection");
  io("good", request.good);
  io("bad", request.bad);
  io("good_words", request.good_words);
  io("bad_words", request.bad_words);
  io.always("notes", request.notes);
  io.always("cells", request.cells);
  io("times", request.judges_by_times);
  io.optional("budget", request.budget);
  io("config", request.config_file);
  io("config_hash", request.config_hash);
}

void fields(Fields& io, BisectStep& step) {
  io("commit", step.commit);
  io("subject", step.subject);
  io("tried",
     Named{step.outcome, source::k_trial_outcomes, "\"tried\" is none of good, bad and skipped"});
  io("reason", step.reason);
  io("built", step.built);
  io("seconds", step.seconds);
  io("run", step.run);
}

// Parses a journal: the request in its first line, then one tried commit a line. The last line
// counts if it is complete.
Result<BisectState> parse_bisect(std::string_view text) {
  BisectState state;
  std::size_t line = 0;
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // a kill cuts off the last line
    ++line;
    const std::string place = fmt::format("bisect.jsonl, line {}", line);
    WEIR_TRY(const Json json, parse_json(text.substr(0, end)).map_error(with_prefix(place)));
    if (line == 1) {
      WEIR_TRY(state.request, read_fields<BisectRequest>(json, place));
    } else {
      WEIR_TRY(BisectStep step, read_fields<BisectStep>(json, place));
      // A commit may have been tried again.
      std::erase_if(state.steps,
                    [&](const BisectStep& earlier) { return earlier.commit == step.commit; });
      state.steps.push_back(std::move(step));
    }
    state.whole_bytes += end + 1;
    text.remove_prefix(end + 1);
  }
  if (line == 0) return fail(Code::data, "bisect.jsonl: nothing was asked for in it");
  return state;
}

Result<BisectJournal> begin_bisect(sys::Files& files, const std::string& folder,
                                   const BisectRequest& request) {
  WEIR_TRY(auto log, files.append_log(path_in(folder), 0));
  WEIR_CHECK(log->append(dump_json(write_fields(request))));
  return log;
}

Result<BisectJournal> resume_bisect(sys::Files& files, const std::string& folder,
                                    BisectState& state) {
  WEIR_TRY(const std::string text, files.read(path_in(folder), k_journal_bytes));
  WEIR_TRY(state, parse_bisect(text));
  return files.append_log(path_in(folder), state.whole_bytes);
}

}  // namespace weir::flow
