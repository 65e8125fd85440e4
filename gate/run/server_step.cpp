#include "gate/run/server_step.hpp"

#include <algorithm>
#include <utility>

#include "gate/base/text.hpp"
#include "gate/load/load.hpp"
#include "gate/profile/counts.hpp"
#include "gate/run/served_report.hpp"
#include "gate/sys/pause.hpp"

namespace weir::run {

using profile::Ended;
using profile::Pass;
using profile::ProbeCounts;
using profile::RunRecord;

namespace {

constexpr std::uint64_t k_largest_text = std::uint64_t{16} << 20;

}  // namespace

ServerStep::ServerStep(const Effects& effects, ServerStart& start, const PreparedCell& cell,
                       const Step& step, std::int64_t attempt)
    : effects_(effects),
      start_(start),
      cell_(cell),
      step_(step),
      settings_(*cell.cell.engine->server),
      probed_(step.pass == Pass::counted && !cell.probes.empty()),
      record_(begin_record(effects, cell, step, attempt)),
      begun_(effects.clock.steady()),
      used_(start.is_up() ? start.up_after() : 0) {}

bool ServerStep::begin() {
  const Turn turn(*this);
  ticks_ = effects_.load.ticks();
  if (!find_prompt()) return false;
  if (start_.is_up()) return true;
  auto failed = start_.begin(seconds_left());
  return !failed || give_up(std::move(failed->why), failed->ended);
}

bool ServerStep::warm_up() {
  const Turn turn(*this);
  streams_ = effects_.speaking.streams(effects_.clock);
  if (settings_.warm_up > 0 && !drive(settings_.warm_up, std::nullopt)) return false;
  requests_.clear();
  if (!settings_.metrics.empty()) metrics_before_ = ask_metrics();
  return !probed_ || read_counts(before_);
}

bool ServerStep::serve(std::int64_t requests, std::int64_t block) {
  const Turn turn(*this);
  return drive(requests, block);
}

bool ServerStep::report() {
  const Turn turn(*this);
  const auto most = settings_.most_different_outputs;
  if (const std::int64_t different = different_outputs(requests_); most && different > *most) {
    return give_up(
        fmt::format("{} of {} requests were answered otherwise than most of them "
                    "(max_different_outputs: {})",
                    different, requests_.size(), *most));
  }
  record_.report = served_report(cell_, requests_);
  report_metrics();
  if (start_.is_ours()) {
    record_.report->times.push_back({*unit::find_metric("load_seconds"), {start_.up_after()}});
  }
  // What counts would be divided by.
  if (probed_ && cell_.cell.sweep == profile::Sweep::overlapping &&
      !record_.report->generated_tokens) {
    return give_up("requests generated different numbers of tokens: there are no counts per token");
  }
  if (probed_) {
    std::vector<ProbeCounts> after;
    if (!read_counts(after)) return false;
    auto counted = profile::counts_between(before_, after);
    if (!counted) return give_up(counted.error().message);
    record_.probes = std::move(*counted);
  }
  ticks_after_ = effects_.load.ticks();
  record_.wall_seconds = effects_.clock.steady() - begun_;
  whole_ = true;
  return true;
}

std::optional<RunRecord> ServerStep::end(ServerStart::Place place) {
  if (!whole_) record_.wall_seconds = effects_.clock.steady() - begun_;
  start_.tell(record_, place);
  // What was whole before weir was stopped stays measured.
  if (effects_.stop.requested() && (!whole_ || place != ServerStart::Place::shared)) {
    return std::nullopt;
  }
  if (!ticks_after_) ticks_after_ = effects_.load.ticks();
  make_fit(record_);
  return std::move(record_);
}

RunRecord ServerStep::so_far() const {
  RunRecord record = record_;
  make_fit(record);
  return record;
}

void ServerStep::make_fit(RunRecord& record) const {
  if (ticks_ && ticks_after_) record.machine.steal_share = sys::steal_share(*ticks_, *ticks_after_);
  if (record.error) record.error = text::printable(*record.error);
  if (!start_.token().empty()) mask(record);
}

// A server may say in its words what it was asked with.
void ServerStep::mask(RunRecord& record) const {
  Masker masker;
  masker.add(start_.token());
  const auto mask = [&](std::string& text) { text = masker.mask_with_parts(text); };
  if (record.error) mask(*record.error);
  mask(record.stderr_tail);
  for (std::string& warning : record.warnings) mask(warning);
  if (!record.report) return;
  if (record.report->engine_build) mask(*record.report->engine_build);
  for (std::string& warning : record.report->warnings) mask(warning);
  for (profile::ServerFigure& figure : record.report->server) mask(figure.name);
}

bool ServerStep::give_up(std::string why, Ended ended) {
  record_.ended = ended;
  record_.error = std::move(why);
  return false;
}

double ServerStep::seconds_left() const {
  return cell_.cell.engine->timeout_seconds - used_ - (effects_.clock.steady() - since_);
}

bool ServerStep::find_prompt() {
  if (cell_.cell.text) {
    prompt_ = *cell_.cell.text;
  } else if (cell_.cell.prompt_file) {
    auto text = effects_.files.read(cell_.prompt_file, k_largest_text);
    if (!text) return give_up(text.error().message, Ended::not_started);
    prompt_ = std::move(*text);
  } else {
    prompt_ = made_up_prompt(step_.asked.prompt_tokens);
  }
  return true;
}

// Sends the warm-up, or the load. False where that measures nothing.
bool ServerStep::drive(std::int64_t requests, std::optional<std::int64_t> block) {
  load::LoadPlan plan;
  plan.url = start_.url();
  plan.api = settings_.api;
  plan.model = settings_.model_name;
  plan.prompts = {{cell_.cell.key.prompt, prompt_, step_.asked.tokens}};
  plan.seed = cell_.cell.seed;
  plan.own_fields = settings_.own_fields;
  plan.token = start_.token();
  if (!settings_.extra_body.empty()) {
    auto more = parse_json(settings_.extra_body);
    if (!more) return give_up(more.error().message);
    plan.more = std::move(*more);
  }
  plan.requests = requests;
  const bool warm_up = !block;
  if (block && cell_.cell.rate) {
    plan.loop =
        load::OpenLoop{*cell_.cell.rate, static_cast<std::uint64_t>(cell_.cell.seed + *block)};
  } else {
    plan.loop = load::ClosedLoop{warm_up ? 1 : cell_.cell.concurrency};
  }
  plan.limits.load_seconds = std::max(seconds_left(), 0.1);
  auto load = load::drive(plan, *streams_, effects_.clock, start_.over());
  if (!load) return give_up(load.error().message);
  const auto failures = served_failures(load->requests);
  profile::append_block(requests_, std::move(load->requests));
  if (!failures && load->not_sent == 0) return true;
  // A server that dies takes its connections along first.
  constexpr double k_until_seen = 0.5;
  if (start_.is_ours()) (void)sys::RealPause().wait(k_until_seen, start_.over());
  const std::string in = warm_up ? "warm-up: " : "";
  if (start_.is_gone()) return give_up(in + "the server ended while it served");
  if (load->out_of_time) {
    return give_up(fmt::format("{}the requests were not answered within {} (timeout)", in,
                               unit::show_duration(cell_.cell.engine->timeout_seconds)),
                   Ended::timed_out);
  }
  return give_up(in + failures.value_or("not all requests were sent"));
}

}  // namespace weir::run
