// The cells of a matrix split for several machines.
#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/config/matrix.hpp"

namespace weir::config {
namespace {

// What must stay on one machine.
struct Piece {
  std::vector<std::size_t> cells;
  double seconds = 0;
};

// The machines that offer one kind of runner.
struct Kind {
  std::vector<std::string> runner;
  std::vector<Piece> pieces;
  double seconds = 0;
  std::size_t shards = 1;
};

std::vector<Kind> kinds_of(std::span<const Cell> cells, std::span<const double> seconds) {
  std::vector<Kind> kinds;
  std::map<std::string, std::pair<std::size_t, std::size_t>> places;  // line -> kind and piece
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto found = std::ranges::find(kinds, cells[i].runner, &Kind::runner);
    const auto kind = static_cast<std::size_t>(found - kinds.begin());
    if (found == kinds.end()) kinds.push_back({cells[i].runner, {}, 0, 1});
    const auto [place, fresh] =
        places.try_emplace(cells[i].key.line().str(), std::pair(kind, kinds[kind].pieces.size()));
    if (fresh) kinds[kind].pieces.emplace_back();
    Piece& piece = kinds[place->second.first].pieces[place->second.second];
    piece.cells.push_back(i);
    piece.seconds += seconds[i];
    kinds[kind].seconds += seconds[i];
  }
  return kinds;
}

// Each shard that is left goes where a shard has most to do.
void share_out(std::vector<Kind>& kinds, std::size_t count) {
  for (std::size_t left = count - kinds.size(); left > 0; --left) {
    Kind* busiest = nullptr;
    const auto load = [](const Kind& kind) {
      return kind.seconds / static_cast<double>(kind.shards);
    };
    for (Kind& kind : kinds) {
      if (kind.shards >= kind.pieces.size()) continue;
      if (busiest == nullptr || load(kind) > load(*busiest)) busiest = &kind;
    }
    if (busiest == nullptr) return;
    ++busiest->shards;
  }
}

std::vector<Shard> split(const Kind& kind) {
  std::vector<Shard> shards(kind.shards);
  std::vector<Piece> pieces = kind.pieces;
  std::ranges::stable_sort(pieces, std::greater(), &Piece::seconds);
  for (const Piece& piece : pieces) {
    Shard& least = *std::ranges::min_element(shards, {}, &Shard::seconds);
    least.cells.insert(least.cells.end(), piece.cells.begin(), piece.cells.end());
    least.seconds += piece.seconds;
  }
  for (Shard& shard : shards) {
    shard.runner = kind.runner;
    std::ranges::sort(shard.cells);
  }
  return shards;
}

}  // namespace

Result<std::vector<Shard>> make_shards(std::span<const Cell> cells, std::span<const double> seconds,
                                       std::size_t count) {
  std::vector<Kind> kinds = kinds_of(cells, seconds);
  if (kinds.size() > count) {
    const auto names = collect<std::string>(kinds, [](const Kind& kind) {
      return kind.runner.empty() ? std::string("any") : text::join(kind.runner, "+");
    });
    return fail(Code::usage, "{} shards are too few: cells need {} kinds of runners ({})", count,
                kinds.size(), text::join(names));
  }
  share_out(kinds, count);
  std::vector<Shard> shards;
  for (const Kind& kind : kinds) {
    for (Shard& shard : split(kind)) shards.push_back(std::move(shard));
  }
  return shards;
}

double guessed_seconds(const Cell& cell, const profile::Asked& asked) {
  constexpr double k_start = 0.5;
  const double each = static_cast<double>(asked.tokens) / 50 +
                      static_cast<double>(asked.prompt_tokens + asked.depth) / 1000;
  const auto times = static_cast<double>(asked.repeats);
  if (cell.engine == nullptr || !cell.engine->server) return k_start + times * each;
  // Of a server these are requests. Several at once take something between one after the other and
  // no longer than one alone.
  const double warm_up = static_cast<double>(cell.engine->server->warm_up) * each;
  const double load = cell.rate ? times / *cell.rate + each
                                : times * each /
                                      std::sqrt(static_cast<double>(std::max<std::int64_t>(
                                          1, std::min(cell.concurrency, asked.repeats))));
  return k_start + warm_up + load;
}

}  // namespace weir::config
