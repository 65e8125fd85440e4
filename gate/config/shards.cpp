// The cells of a matrix split for several machines.
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/matrix.hpp"

namespace weir::config {
namespace {

// Cells that must stay on one machine: the depths of one line.
struct Piece {
  std::vector<std::size_t> cells;
  double seconds = 0;
};

// One kind of runner, with the pieces that need it and its number of shards.
struct RunnerKind {
  std::vector<std::string> runner;
  std::vector<Piece> pieces;
  double seconds = 0;
  std::size_t shards = 1;
};

// Groups cells by the runner (CI machine) that they need, and within that in pieces that must stay
// together: cells that differ in depth alone. `seconds` are estimates of each cell.
std::vector<RunnerKind> group_by_runner(std::span<const Cell> cells,
                                        std::span<const double> seconds) {
  struct Place {
    std::size_t kind, piece;
  };
  std::vector<RunnerKind> kinds;
  std::map<std::string, Place> place_of_line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto match = std::ranges::find(kinds, cells[i].runner, &RunnerKind::runner);
    const auto kind = static_cast<std::size_t>(match - kinds.begin());
    if (match == kinds.end()) kinds.emplace_back().runner = cells[i].runner;
    const auto [entry, is_new] = place_of_line.try_emplace(
        cells[i].key.line().str(), Place{.kind = kind, .piece = kinds[kind].pieces.size()});
    if (is_new) kinds[kind].pieces.emplace_back();
    const Place& place = entry->second;
    Piece& piece = kinds[place.kind].pieces[place.piece];
    piece.cells.push_back(i);
    piece.seconds += seconds[i];
    kinds[kind].seconds += seconds[i];
  }
  return kinds;
}

// Gives each kind of runner one shard, and each spare one to the kind whose shards take longest. A
// kind gets no more shards than it has pieces.
void distribute_shards(std::vector<RunnerKind>& kinds, std::size_t count) {
  for (std::size_t spare = count - kinds.size(); spare > 0; --spare) {
    RunnerKind* busiest = nullptr;
    const auto seconds_per_shard = [](const RunnerKind& kind) {
      return kind.seconds / static_cast<double>(kind.shards);
    };
    for (RunnerKind& kind : kinds) {
      if (kind.shards >= kind.pieces.size()) continue;
      if (busiest == nullptr || seconds_per_shard(kind) > seconds_per_shard(*busiest))
        busiest = &kind;
    }
    if (busiest == nullptr) return;
    ++busiest->shards;
  }
}

// Splits the pieces of a kind among its shards: longest first, each to the shard with least work.
std::vector<Shard> split(const RunnerKind& kind) {
  std::vector<Shard> shards(kind.shards);
  std::vector<Piece> pieces = kind.pieces;
  std::ranges::stable_sort(pieces, std::greater(), &Piece::seconds);
  for (const Piece& piece : pieces) {
    Shard& shortest = *std::ranges::min_element(shards, {}, &Shard::seconds);
    shortest.cells.insert(shortest.cells.end(), piece.cells.begin(), piece.cells.end());
    shortest.seconds += piece.seconds;
  }
  for (Shard& shard : shards) {
    shard.runner = kind.runner;
    std::ranges::sort(shard.cells);
  }
  return shards;
}

}  // namespace

// Splits cells into at most `count` shards, groups for parallel CI jobs, of about the same time.
// Cells that need different runners never share a shard; fails if `count` is too small for that.
Result<std::vector<Shard>> make_shards(std::span<const Cell> cells, std::span<const double> seconds,
                                       std::size_t count) {
  std::vector<RunnerKind> kinds = group_by_runner(cells, seconds);
  if (kinds.size() > count) {
    const auto names = collect<std::string>(kinds, [](const RunnerKind& kind) {
      return kind.runner.empty() ? std::string("any") : text::join(kind.runner, "+");
    });
    return fail(Code::usage, "{} shards are too few: cells need {} kinds of runners ({})", count,
                kinds.size(), text::join(names));
  }
  distribute_shards(kinds, count);
  std::vector<Shard> shards;
  for (const RunnerKind& kind : kinds) {
    for (Shard& shard : split(kind)) shards.push_back(std::move(shard));
  }
  return shards;
}

// Estimates how long one process of a cell takes, in seconds: 0.5 to start, 50 tokens/s to
// generate, 1000/s of a prompt. Good enough to balance shards.
double guessed_seconds(const Cell& cell, const profile::RunParameters& parameters) {
  constexpr double k_start_seconds = 0.5;
  const double request_seconds =
      static_cast<double>(parameters.tokens) / 50 +
      static_cast<double>(parameters.prompt_tokens + parameters.depth) / 1000;
  const auto request_count = static_cast<double>(parameters.repeats);
  if (cell.engine == nullptr || !cell.engine->server)
    return k_start_seconds + request_count * request_seconds;
  // For a server, repeats are requests. n at once are assumed to take sqrt(n) times as long as one.
  const double warm_up_seconds =
      static_cast<double>(cell.engine->server->warm_up) * request_seconds;
  if (cell.rate)
    return k_start_seconds + warm_up_seconds + (request_count / *cell.rate + request_seconds);
  const std::int64_t at_once =
      std::max<std::int64_t>(1, std::min(cell.concurrency, parameters.repeats));
  return k_start_seconds + warm_up_seconds +
         request_count * request_seconds / std::sqrt(static_cast<double>(at_once));
}

}  // namespace weir::config
