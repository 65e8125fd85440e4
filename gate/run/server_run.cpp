#include "gate/run/server_run.hpp"

#include <algorithm>
#include <memory>

#include "gate/run/server_step.hpp"
#include "gate/run/starts.hpp"

namespace weir::run {

using profile::RunRecord;

Result<std::optional<RunRecord>> run_server(const Effects& effects, const std::string& folder,
                                            const ServerSlot& slot) {
  WEIR_TRY(auto records, run_on_one_server(effects, folder, std::span(&slot, 1), {}));
  if (records.empty()) return std::nullopt;
  return std::move(records.front());
}

Result<std::vector<RunRecord>> run_on_one_server(const Effects& effects, const std::string& folder,
                                                 std::span<const ServerSlot> slots,
                                                 const ServedSoFar& told) {
  const ServerSlot& first = slots.front();
  const double timeout = first.cell->cell.engine->timeout_seconds;
  ServerStart start(effects, folder, *first.cell, *first.step, first.attempt,
                    timeout * static_cast<double>(slots.size() - 1),
                    static_cast<std::int64_t>(slots.size()));
  WEIR_CHECK(start.make_place());
  std::vector<std::unique_ptr<ServerStep>> steps;
  for (const ServerSlot& slot : slots) {
    if (!steps.empty() && (start.is_gone() || effects.stop.requested())) break;
    if (told.begins) told.begins(*slot.step);
    ServerStep& step = *steps.emplace_back(
        std::make_unique<ServerStep>(effects, start, *slot.cell, *slot.step, slot.attempt));
    if (slots.size() > 1) step.record().start = first.step->order;
    if (!step.begin() || !step.warm_up() || !step.serve(slot.step->asked.repeats) ||
        !step.report()) {
      break;
    }
    if (&slot != &slots.back() && told.whole) told.whole(step.so_far());
  }
  WEIR_CHECK(start.end());
  using Place = ServerStart::Place;
  std::vector<RunRecord> records;
  for (const auto& step : steps) {
    const bool last = step == steps.back();
    auto record = step->end(slots.size() == 1 ? Place::alone
                            : last            ? Place::last_of_shared
                                              : Place::shared);
    if (record) records.push_back(std::move(*record));
  }
  return records;
}

bool serves_in_turns(const PreparedCell& cell) {
  const config::ServerSettings* server = server_to_start(cell);
  return server != nullptr && server->blocks > 0 && only_address(cell).empty();
}

std::vector<std::int64_t> blocks_of(const PreparedCell& cell, std::int64_t requests) {
  const std::int64_t at_once =
      cell.cell.rate ? 1 : std::max<std::int64_t>(1, cell.cell.concurrency);
  const std::int64_t count =
      std::clamp<std::int64_t>(requests / at_once, 1, cell.cell.engine->server->blocks);
  std::vector<std::int64_t> blocks;
  for (std::int64_t i = 0; i < count; ++i) {
    blocks.push_back(requests * (i + 1) / count - requests * i / count);
  }
  return blocks;
}

std::vector<std::size_t> turns_of(std::size_t blocks) {
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < blocks; ++i) {
    turns.push_back(i % 2);
    turns.push_back(1 - i % 2);
  }
  return turns;
}

namespace {

// Both servers of a pair.
class ServerPair {
 public:
  ServerPair(const Effects& effects, std::span<const ServerSlot, 2> slots)
      : effects_(effects),
        slots_(slots),
        blocks_(blocks_of(*slots[0].cell, slots[0].step->asked.repeats)),
        turns_(turns_of(blocks_.size())) {}

  Result<PairRecords> run(const std::string& folder) {
    for (const std::size_t slot : k_slots) WEIR_CHECK(make(folder, slot));
    for (const std::size_t slot : k_slots) {
      if (servers_.at(slot)->begin()) continue;
      WEIR_CHECK(end(slot));
      const auto& record = records_.at(slot);
      if (slots_[slot].attempt > 1 || !record || record->ended != profile::Ended::not_started)
        continue;
      records_.at(1 - slot).reset();  // the other one's, if it has ended already
      return records_;
    }
    for (const std::size_t slot : k_slots) {
      if (servers_.at(slot) && !servers_.at(slot)->warm_up()) WEIR_CHECK(end(slot));
    }
    serve();
    for (const std::size_t slot : k_slots) {
      if (!servers_.at(slot)) continue;
      if (goes_on_.at(slot)) (void)servers_.at(slot)->report();
      WEIR_CHECK(end(slot));
    }
    return effects_.stop.requested() ? PairRecords{} : std::move(records_);
  }

 private:
  static constexpr std::array<std::size_t, 2> k_slots{0, 1};

  Result<void> make(const std::string& folder, std::size_t slot) {
    const ServerSlot& mine = slots_[slot];
    const double waits = slots_[1 - slot].cell->cell.engine->timeout_seconds;
    auto& start = starts_.at(slot) = std::make_unique<ServerStart>(effects_, folder, *mine.cell,
                                                                   *mine.step, mine.attempt, waits);
    auto& server = servers_.at(slot) =
        std::make_unique<ServerStep>(effects_, *start, *mine.cell, *mine.step, mine.attempt);
    for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
      if (turns_[turn] == slot) server->record().turns.push_back(static_cast<std::int64_t>(turn));
    }
    return start->make_place();
  }

  void serve() {
    std::array<std::size_t, 2> served{};
    for (const std::size_t slot : turns_) {
      const std::size_t block = served.at(slot)++;
      if (!servers_.at(slot) || !goes_on_.at(slot)) continue;
      goes_on_.at(slot) =
          servers_.at(slot)->serve(blocks_[block], static_cast<std::int64_t>(block));
    }
  }

  Result<void> end(std::size_t slot) {
    WEIR_CHECK(starts_.at(slot)->end());
    records_.at(slot) = servers_.at(slot)->end(ServerStart::Place::alone);
    servers_.at(slot).reset();
    starts_.at(slot).reset();
    return {};
  }

  const Effects& effects_;
  std::span<const ServerSlot, 2> slots_;
  std::vector<std::int64_t> blocks_;
  std::vector<std::size_t> turns_;
  std::array<bool, 2> goes_on_{true, true};
  PairRecords records_;
  // Those that have not ended.
  std::array<std::unique_ptr<ServerStart>, 2> starts_;
  std::array<std::unique_ptr<ServerStep>, 2> servers_;
};

}  // namespace

Result<PairRecords> run_server_pair(const Effects& effects, const std::string& folder,
                                    std::span<const ServerSlot, 2> slots) {
  return ServerPair(effects, slots).run(folder);
}

}  // namespace weir::run
