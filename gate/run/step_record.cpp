#include "gate/run/step_record.hpp"

#include <csignal>

#include <string.h>

#include "gate/base/text.hpp"

namespace weir::run {
namespace {

using profile::Ended;
using profile::RunRecord;

Ended ended_of(sys::HowEnded how) {
  switch (how) {
    case sys::HowEnded::exited:
      return Ended::exited;
    case sys::HowEnded::signaled:
      return Ended::signaled;
    case sys::HowEnded::timed_out:
      return Ended::timed_out;
    case sys::HowEnded::output_limit:
      return Ended::output_limit;
    case sys::HowEnded::not_started:
      return Ended::not_started;
    case sys::HowEnded::interrupted:
      break;
  }
  return Ended::interrupted;
}

}  // namespace

RunRecord begin_record(const Effects& effects, const PreparedCell& cell, const Step& step,
                       std::int64_t attempt) {
  RunRecord record;
  record.cell = cell.cell.key.str();
  record.pass = step.pass;
  record.instructions = step.instructions;
  record.twin_fill = step.twin_fill;
  record.order = step.order;
  record.side = step.side;
  record.pair = step.pair;
  record.asked = step.asked;
  record.attempt = attempt;
  record.started_at = effects.clock.now();
  record.machine.other_load = effects.load.load_average();
  return record;
}

void take_over(RunRecord& record, const sys::Finished& finished) {
  record.ended = ended_of(finished.ended);
  record.exit_code = finished.exit_code;
  record.signal = finished.signal;
  record.wall_seconds = finished.wall_seconds;
  record.cpu_seconds = finished.cpu_seconds;
  record.peak_rss_bytes = finished.peak_rss_bytes;
  record.machine.major_faults = finished.major_faults;
  if (finished.left_behind > 0) {
    record.warnings.push_back(fmt::format("the engine left {} running, which weir ended",
                                          finished.left_behind == 1
                                              ? std::string("a process")
                                              : fmt::format("{} processes", finished.left_behind)));
  }
}

std::string signal_words(int signal) {
  if (signal == SIGKILL) {
    return "was killed (SIGKILL): by the system when memory ran out, or by hand";
  }
#ifdef __GLIBC__
  const char* name = sigabbrev_np(signal);
  const char* words = sigdescr_np(signal);
  if (name != nullptr && words != nullptr) return fmt::format("crashed: SIG{} ({})", name, words);
#endif
  return fmt::format("crashed: signal {}", signal);
}

// Why a process measures nothing; nothing when it ended as it should.
std::optional<std::string> failure_of(const sys::Finished& finished, const sys::ProcessSpec& spec) {
  switch (finished.ended) {
    case sys::HowEnded::exited:
      if (finished.exit_code == 0) return std::nullopt;
      return fmt::format("exited with code {}", finished.exit_code);
    case sys::HowEnded::signaled:
      return signal_words(finished.signal);
    case sys::HowEnded::timed_out:
      return fmt::format("did not end within {:g} s and was stopped (timeout)",
                         spec.timeout_seconds);
    case sys::HowEnded::output_limit:
      return fmt::format("printed more than {:g} MiB and was stopped (output_limit)",
                         static_cast<double>(spec.output_limit) / (1 << 20));
    case sys::HowEnded::not_started:
      return fmt::format("could not be started: {}", finished.start_error);
    case sys::HowEnded::interrupted:
      break;
  }
  return "was interrupted";
}

std::string last_lines(std::string_view text) {
  constexpr std::size_t k_lines = 20, k_characters = 500, k_bytes = 16384;
  if (text.size() > k_bytes) text.remove_prefix(text.size() - k_bytes);
  std::vector<std::string> lines = text::lines(text::printable(text));
  while (!lines.empty() && text::trim(lines.back()).empty()) lines.pop_back();
  if (lines.size() > k_lines) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(k_lines));
  }
  for (std::string& line : lines) {
    if (line.size() <= k_characters) continue;
    std::size_t cut = k_characters;
    // Not within a character.
    while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80U) --cut;
    line.resize(cut);
    line += "…";
  }
  return text::join(lines, "\n");
}

}  // namespace weir::run
