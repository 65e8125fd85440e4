#include "gate/flow/bisect_journal.hpp"

#include "gate/sys/paths.hpp"

namespace weir::flow {
namespace {

constexpr const char* k_schema = "weir.bisect.journal/1";
constexpr std::uint64_t k_journal_bytes = std::uint64_t{64} << 20;

std::string path_in(const std::string& folder) { return sys::join_path(folder, "bisect.jsonl"); }

Json to_json(const BisectAsked& asked) {
  return {{"schema", k_schema},
          {"good", asked.good},
          {"bad", asked.bad},
          {"good_words", asked.good_words},
          {"bad_words", asked.bad_words},
          {"notes", asked.notes},
          {"cells", asked.cells},
          {"times", asked.times},
          {"config", asked.config_file},
          {"config_hash", asked.config_hash}};
}

Result<BisectAsked> asked_from(const Json& json) {
  JsonReader read(json, "bisect.jsonl, line 1");
  if (read.string("schema") != k_schema) read.complain("is no journal of a bisection");
  BisectAsked asked;
  asked.good = read.string("good");
  asked.bad = read.string("bad");
  asked.good_words = read.string("good_words");
  asked.bad_words = read.string("bad_words");
  asked.notes = read.strings("notes");
  asked.cells = read.strings("cells");
  asked.times = read.boolean("times");
  asked.config_file = read.string("config");
  asked.config_hash = read.string("config_hash");
  if (auto problem = read.problem()) return tl::unexpected(*std::move(problem));
  return asked;
}

Result<BisectStep> step_from(const Json& json, std::size_t line) {
  JsonReader read(json, fmt::format("bisect.jsonl, line {}", line));
  BisectStep step;
  step.commit = read.string("commit");
  step.subject = read.string("subject");
  const auto tried = source::parse_tried(read.string("tried"));
  if (!tried) read.complain("\"tried\" is none of good, bad and skipped");
  step.tried = tried.value_or(source::Tried::skipped);
  step.reason = read.string("reason");
  step.built = read.boolean("built");
  step.seconds = read.number("seconds");
  step.run = read.string("run");
  if (auto problem = read.problem()) return tl::unexpected(*std::move(problem));
  return step;
}

}  // namespace

Json to_json(const BisectStep& step) {
  return {{"commit", step.commit}, {"subject", step.subject}, {"tried", to_string(step.tried)},
          {"reason", step.reason}, {"built", step.built},     {"seconds", step.seconds},
          {"run", step.run}};
}

Result<BisectState> parse_bisect(std::string_view text) {
  BisectState state;
  std::size_t line = 0;
  // A last line without its end was cut off by a kill.
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    ++line;
    WEIR_TRY(const Json json, parse_json(text.substr(0, end)).map_error([&](Error error) {
      return with_context(fmt::format("bisect.jsonl, line {}", line), std::move(error));
    }));
    if (!json.is_object()) return fail(Code::data, "bisect.jsonl, line {}: no object", line);
    if (line == 1) {
      WEIR_TRY(state.asked, asked_from(json));
    } else {
      WEIR_TRY(BisectStep step, step_from(json, line));
      state.steps.push_back(std::move(step));
    }
    state.whole_bytes += end + 1;
    text.remove_prefix(end + 1);
  }
  if (line == 0) return fail(Code::data, "bisect.jsonl: nothing was asked for in it");
  return state;
}

Result<BisectJournal> BisectJournal::create(sys::Files& files, const std::string& folder,
                                            const BisectAsked& asked) {
  WEIR_TRY(auto log, files.append_log(path_in(folder), 0));
  WEIR_CHECK(log->append(dump_json(to_json(asked))));
  return BisectJournal(std::move(log));
}

Result<BisectJournal> BisectJournal::resume(sys::Files& files, const std::string& folder,
                                            BisectState& state) {
  WEIR_TRY(const std::string text, files.read(path_in(folder), k_journal_bytes));
  WEIR_TRY(state, parse_bisect(text));
  WEIR_TRY(auto log, files.append_log(path_in(folder), state.whole_bytes));
  return BisectJournal(std::move(log));
}

Result<void> BisectJournal::append(const BisectStep& step) {
  return log_->append(dump_json(to_json(step)));
}

}  // namespace weir::flow
