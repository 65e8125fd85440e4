// Counts alone: batches, waits, sums of dispatches, barriers, splits, copies, what grows with
// context, the fixed part, and what is left.
#include <cctype>

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

std::string capitalized(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

// The counts themselves, how much they are together, and without bytes: those are no work.
struct Counts {
  std::vector<Amount> amounts;
  double units = 0;
};
Counts counts_in(const std::map<std::string, Rational>& counts, double weight = 1,
                 const std::string& words = "") {
  Counts made;
  for (const auto& [base, delta] : counts) {
    made.amounts.push_back({plain(base) + words, delta});
    if (!base.ends_with("_bytes")) made.units += weight * size_of(delta);
  }
  return made;
}

// --- the same work in more or fewer batches: every count is multiplied ---------------------------

std::optional<double> ratio_of(const Board& board, const std::string& base) {
  const auto both = exact_counts(board.evidence, base);
  if (!both || both->before <= k_none || both->after <= k_none) return std::nullopt;
  return both->after.value() / both->before.value();
}

// The whole number by which most kernels of both sides are multiplied, or divided; 1 where there is
// none.
std::int64_t common_factor(const Board& board, bool more) {
  std::map<std::int64_t, int> factors;
  int both = 0;
  for (const Move& move : board.found.kernels) {
    const Rational& small = more ? move.before : move.after;
    const Rational& large = more ? move.after : move.before;
    if (small == k_none || large == k_none) continue;
    ++both;
    const double factor = large.value() / small.value();
    if (factor >= 2 && factor <= 1024 && factor == std::floor(factor)) {
      ++factors[static_cast<std::int64_t>(factor)];
    }
  }
  const auto* found =
      first_of(factors, [&](const auto& one) { return one.second >= 4 && one.second * 2 > both; });
  return found == nullptr ? 1 : found->first;
}

void add_batches(Board& board, const std::string& base, bool more, std::string headline) {
  Finding finding = board.about(kind::batches_changed, base);
  finding.headline = std::move(headline);
  for (const Amount& amount : amounts_of(board, {"graphs", "dispatches", "syncs"})) {
    add_number(amount, finding);
  }
  if (more) finding.cause = "the batch is limited (-b, -ub), or requests are not taken together.";
  finding.look_at = "batch sizes among the arguments, and the engine's defaults.";
  for (const auto& [count, delta] : board.found.counts) board.take(count);
  for (const bool up : {true, false}) board.take(one_way(board.found.kernels, up));
  board.take("moves");
  board.add(std::move(finding), counts_in(board.found.counts).units, 0);
}

// No graphs are counted: kernels tell, where each batch is also waited for. Layers that moved to
// the CPU make every kernel rarer as well, and are not.
void batches_by_kernels(Board& board) {
  for (const bool more : {true, false}) {
    const std::int64_t factor = common_factor(board, more);
    const auto syncs = ratio_of(board, "syncs");
    if (factor < 2 || !syncs) continue;
    if (std::fabs(std::log(*syncs) - (more ? 1 : -1) * std::log(factor)) > 1e-9) continue;
    return add_batches(
        board, "dispatches", more,
        fmt::format("The same kernels run {}{} times as often: the work is done in {} batches.",
                    more ? "" : "1/", factor, more ? "more, smaller" : "fewer, larger"));
  }
}

// --- waits of the CPU for the device: by layer, or not -------------------------------------------

constexpr double k_sync_units = 10;  // a wait empties the device: about what ten dispatches cost

std::string in_layers(const Fit& fit, std::int64_t each) {
  const std::string expert =
      fit.set.times > 1 ? fmt::format(" for each of {} experts", fit.set.times) : "";
  const std::string that = fit.set.tensors.empty() ? "" : " that has " + safe(fit.set.tensors);
  return fmt::format("{}{} in each layer{}", times_words(each, unit::Scope::whole), expert, that);
}

// What the other layers tell: where not to look.
std::string where_to_look(const Board& board, const Fit& fit) {
  const auto rest = board.model->layers - static_cast<std::int64_t>(fit.set.layers.size());
  if (rest <= 0) return "what every layer does between its first and its last kernel.";
  return fmt::format("what those layers do that the other {} do{} not.", rest,
                     rest == 1 ? "es" : "");
}

void per_layer(Board& board, const std::vector<Amount>& amounts, const Fit& fit, Finding finding) {
  const bool more = amounts.front().delta > k_none;
  finding.kind = more ? kind::sync_per_layer : kind::sync_removed;
  finding.headline = fmt::format("A CPU step {}, {}.",
                                 more ? "came in between GPU steps" : "between GPU steps is gone",
                                 in_layers(fit, std::abs(fit.term(0)->each)));
  if (more) {
    finding.cause =
        "a split or copy moved from a kernel to the CPU, which has to wait for the GPU before and "
        "after.";
    finding.look_at = where_to_look(board, fit);
  }
  board.take("syncs");
  double units = k_sync_units * size_of(amounts.front().delta);
  for (const Term& one : fit.terms) {
    if (one.amount == 0) continue;
    board.take(amounts[one.amount].name);
    units += size_of(amounts[one.amount].delta);
  }
  board.add(std::move(finding), units);
  add_also(board, amounts, fit);
}

// --- dispatches of which only the sum is known ---------------------------------------------------

// It is known whether an op ran on the CPU: by name, or both sides counted these.
bool ops_told(const Evidence& evidence) {
  return evidence.cpu_ops_known || evidence.graph_known || evidence.device == "cpu" ||
         counted(evidence, "cpu_ops");
}

// So few dispatches that a layer is about one: "30 = 24 layers + 6".
bool one_a_layer(const Board& board, Finding& finding) {
  const auto both = exact_counts(board.evidence, "dispatches");
  if (board.model == nullptr || board.model->layers < 8 || !both || !both->after.whole()) {
    return false;
  }
  const std::int64_t layers = board.model->layers;
  const std::int64_t rest = both->after.numerator() - layers;
  if (rest < 0 || rest > layers / 2 || both->before.value() < 4 * both->after.value()) return false;
  finding.kind = kind::fusion_gained;
  finding.headline =
      fmt::format("Whole layers {} as one dispatch each: {} = {} layers{}.",
                  ops_told(board.evidence) ? "run" : "seem to run", both->after.str(), layers,
                  rest > 0 ? fmt::format(" + {}", rest) : "");
  finding.layers.clear();
  for (std::int64_t layer = 0; layer < layers; ++layer) finding.layers.push_back(layer);
  return true;
}

std::string total_headline(const Finding& finding, bool more, bool told) {
  if (!finding.per_layer) {
    return more   ? "More, smaller dispatches do the work: a fusion is lost, or work was added."
           : told ? "Fewer dispatches do the work: it is fused."
                  : "Fewer dispatches: the work is fused, or done elsewhere.";
  }
  const auto each = std::abs(*finding.per_layer);
  const std::string in = finding.layers.empty() ? ""
                         : finding.tensors.empty()
                             ? " in each layer"
                             : " in each layer that has " + safe(finding.tensors.front());
  return fmt::format("{} {} dispatch{}{}: {}.", each, more ? "more" : "fewer",
                     each == 1 ? "" : "es", in,
                     more   ? "a fusion is lost, or work was added"
                     : told ? "they are fused"
                            : "fused, or done elsewhere");
}

// As many more as there are more works: a wait for each, or one for each few, the last few too.
bool goes_with(const ExactCounts& waits, const ExactCounts& works) {
  constexpr double k_few = 4;
  const double before = waits.before.value(), after = waits.after.value();
  const auto rest = waits.before.minus(works.before), now = waits.after.minus(works.after);
  if (rest && now && *rest >= k_none && *rest == *now) return true;
  if (before < k_few || works.before == k_none) return false;
  const double likely = before * works.after.value() / works.before.value();
  return works.before != works.after && std::fabs(likely - after) < 1;
}

// The engine moves the same tensors as before (ggml's counts say so), and the device now needs a
// copy and a wait for some: they pass through other memory.
bool staged(const Board& board, const Rational& waits) {
  if (waits != board.open("copies") || !counted(board.evidence, "tensor_sets")) return false;
  constexpr std::array k_moves = {"tensor_sets", "tensor_gets", "tensor_copies", "uploaded_bytes"};
  return std::ranges::all_of(k_moves,
                             [&](const char* base) { return board.found.count(base) == k_none; });
}

// The CPU waited for each of several submissions and still does: there are more, or fewer.
bool find_submissions(Board& board, const ExactCounts& waits) {
  constexpr std::int64_t k_several = 4;
  const auto submits = exact_counts(board.evidence, "submits");
  const bool each = submits && submits->before == waits.before && submits->after == waits.after &&
                    waits.before >= Rational(k_several) && waits.after >= Rational(k_several);
  const bool same_work = board.found.count("dispatches") == k_none && board.found.kernels.empty() &&
                         board.open("copies") == k_none;
  if (!each || !same_work) return false;
  Finding finding = board.about(kind::submits_changed, "submits");
  finding.headline = fmt::format(
      "The same work is sent in {} submissions, each waited for: {}, before {}.",
      waits.after > waits.before ? "more" : "fewer", submits->after.str(), submits->before.str());
  finding.look_at = "after how many kernels, or when, the engine submits.";
  const double units = k_sync_units * size_of(board.found.count("submits"));
  board.take_all({"submits", "syncs", "backend_syncs"});
  board.add(std::move(finding), units);
  return true;
}

// A new op that nothing says the place of, and that may be waited for each time. Null where none or
// several could be meant.
const Move* op_to_wait_for(const Board& board, const Rational& waits) {
  const Move* found = nullptr;
  for (const Move& move : board.found.kernels) {
    if (move.before != k_none || move.delta() > waits) continue;
    if (found != nullptr || place_known(board.evidence, move)) return nullptr;
    found = &move;
  }
  return found;
}

// One before a dispatch and one behind it.
bool stand_between(const Rational& barriers, const Rational& dispatches) {
  return size_of(barriers) <= 2 * size_of(dispatches) + 2;
}

// "15 more barriers beside each of 16 more dispatches"; "" where it does not divide.
std::string beside_each(const Rational& barriers, const Rational& dispatches) {
  const auto each = std::abs(barriers.numerator()), of = std::abs(dispatches.numerator());
  if (!barriers.whole() || !dispatches.whole() || of < 2 || each % of != 0) return "";
  const std::string_view more = barriers > k_none ? "more" : "fewer";
  return fmt::format("{} {} barriers beside each of {} {} dispatches", each / of, more, of, more);
}

}  // namespace

void find_batches(Board& board) {
  const std::string name = metric_name(board.evidence, "graphs");
  if (name.empty()) return batches_by_kernels(board);
  const auto graphs = ratio_of(board, "graphs");
  if (board.open("graphs") == k_none || !graphs) return;
  const auto dispatches = ratio_of(board, "dispatches");
  const auto work = dispatches ? dispatches : ratio_of(board, "cpu_ops");
  // Graphs alone may be cut without more work; then all is not multiplied.
  if (!work || (*graphs > 1) != (*work > 1) ||
      std::fabs(std::log(*work)) < 0.5 * std::fabs(std::log(*graphs))) {
    return;
  }
  const bool more = *graphs > 1;
  const auto both = exact_counts(board.evidence, "graphs");
  add_batches(board, "graphs", more,
              fmt::format("The same work is done in {} batches: {} graphs{}, before {}.",
                          more ? "more, smaller" : "fewer, larger", both->after.str(), board.per(),
                          both->before.str()));
}

// CUDA's, not ggml's: what was one launch of many kernels is many launches, or the other way round.
void find_graphs(Board& board) {
  const auto launches = exact_counts(board.evidence, "graph_launches");
  if (!launches || (launches->before == k_none) == (launches->after == k_none)) return;
  const auto dispatches = exact_counts(board.evidence, "dispatches");
  if (dispatches && (dispatches->before == k_none || dispatches->after == k_none)) return;
  const bool lost = launches->after == k_none;
  Finding finding = board.about(lost ? kind::graphs_lost : kind::graphs_gained, "graph_launches");
  finding.headline = lost ? "CUDA graphs are no longer used: each kernel is handed over alone."
                          : "CUDA graphs are now used: many kernels are handed over at once.";
  if (lost) {
    finding.cause =
        "a switch of the engine, work that cannot be captured, or a graph that never settles.";
    finding.look_at =
        "when the engine captures: copies between devices, buffers that move, new shapes.";
  }
  const double units = size_of(board.open("submits")) + 1;
  board.take_all({"graph_launches", "graph_instantiations", "submits"});
  board.add(std::move(finding), units, 0);
}

void find_syncs(Board& board) {
  // The device's own count tells waits, or else the engine's.
  const std::string base = metric_name(board.evidence, "syncs").empty() ? "backend_syncs" : "syncs";
  const Rational delta = board.open(base);
  if (delta == k_none) return;
  const bool more = delta > k_none;
  std::vector<std::string> bases = {base};
  // What kernels explain they explain better.
  if (board.found.kernels.empty()) bases.emplace_back("dispatches");
  for (const char* other : {"barriers", "copies", "submits"}) {
    if (board.open(other) != k_none) bases.emplace_back(other);
  }
  // An engine that waits after each dispatch waits as often as it dispatches.
  const auto waits = exact_counts(board.evidence, base);
  const auto works = exact_counts(board.evidence, "dispatches");
  if (waits && find_submissions(board, *waits)) return;
  const bool each = waits && works && goes_with(*waits, *works);
  if ((more || board.found.kernels.empty()) && !each) {
    Finding finding = board.about(kind::sync_per_layer, base);
    const std::vector<Amount> amounts = amounts_of(board, bases);
    const auto fit = arithmetic(board, amounts, finding);
    if (fit && fit->chance <= k_by_chance && fit->set.size() >= 2 && base == "syncs" &&
        fit->term(0)->rest == 0) {
      return per_layer(board, amounts, *fit, std::move(finding));
    }
  }
  // Parts of the graph, copied tensors and new copies are each waited for.
  const Rational splits = board.open("splits");
  const bool cut = same_way(splits, delta) && size_of(delta) <= 2 * size_of(splits);
  const bool hidden = staged(board, delta);
  const bool copied = more && !each && !cut && !hidden && delta == board.open("copies");
  Finding finding = board.about(more ? kind::sync_added : kind::sync_removed, base);
  arithmetic(board, amounts_of(board, {base}), finding);
  const std::string per = board.per();
  finding.headline = fmt::format("{} {} often{}{}{}.",
                                 board.evidence.device == "cpu" ? "The engine waits for its backend"
                                                                : "The CPU waits for the GPU",
                                 more ? "more" : "less", per.empty() ? "" : " in", per,
                                 copied ? ": once per new copy" : "");
  if (copied) {
    add_number({"copies", delta}, finding);
    board.take("copies");
  }
  if (more && !each) {
    finding.cause = "results read back or written in between, or work no longer sent ahead.";
    finding.look_at = "what runs between two submissions: a read, a copy to the host, a log.";
    if (const Move* op = op_to_wait_for(board, delta)) {
      finding.cause = fmt::format(
          "{} is new ({} times{}): if it runs on the CPU, it waits for the GPU before and after.",
          safe(op->name), op->after.str(), per);
      finding.look_at = fmt::format("where {} runs: nothing here says it.", safe(op->name));
    }
  }
  board.take(base);
  board.take("backend_syncs");
  // Work that is gone is no longer waited for: that comes first. A step of the CPU that is gone
  // takes a wait and at most a dispatch along.
  const bool gone = !board.found.kernels.empty() || board.open("dispatches") < delta;
  const bool follows = each || cut || (!more && gone) || hidden;
  board.add(std::move(finding), k_sync_units * size_of(delta), follows ? 2 : 1);
}

void find_totals(Board& board) {
  const Rational dispatches = board.open("dispatches");
  if (!board.found.kernels.empty() || dispatches == k_none) return;
  const bool more = dispatches > k_none, told = ops_told(board.evidence);
  // Work that is gone may be done elsewhere, or by nobody.
  Finding finding = board.about(more   ? kind::fusion_lost
                                : told ? kind::fusion_gained
                                       : kind::op_removed,
                                "dispatches");
  std::vector<Amount> amounts = amounts_of(board, {"dispatches"});
  // Barriers stand between dispatches: they come and go with them, unless there are more.
  const Rational barriers = board.open("barriers");
  if (same_way(barriers, dispatches) && stand_between(barriers, dispatches)) {
    amounts.push_back({"barriers", barriers});
    board.take("barriers");
  }
  const auto fit = arithmetic(board, amounts, finding);
  if (more || !one_a_layer(board, finding)) finding.headline = total_headline(finding, more, told);
  finding.look_at = more ? "kernels by name: weir profile, or an engine that names them."
                    : told
                        ? ""
                        : "whether the CPU does what is gone: only a probe that sees ops can tell.";
  board.take("dispatches");
  board.add(std::move(finding), size_of(dispatches));
  if (fit) add_also(board, amounts, *fit);
}

void find_barriers(Board& board) {
  const Rational barriers = board.open("barriers");
  if (barriers == k_none) return;
  board.take("barriers");
  const bool more = barriers > k_none;
  const std::optional<Rational>& by_line = board.evidence.more_dispatches;
  const Rational dispatches = by_line.value_or(board.found.count("dispatches"));
  const Rational copies = board.found.count("copies");
  const bool kernels_changed = !board.found.kernels.empty();
  const bool along = same_way(dispatches, barriers);
  // One before a copy and one behind it: where no dispatch changed, they came with the copies.
  const bool with_copies = same_way(copies, barriers) && dispatches == k_none && !kernels_changed;
  if (with_copies && size_of(barriers) <= 2 * size_of(copies)) return;
  // Barriers stand between dispatches: other kernels, other barriers; the same ones of other sizes
  // or code, the same barriers.
  double explained = 0;
  for (const Board::Entry& entry : board.entries) explained += entry.rank < 3 ? entry.units : 0;
  if (kernels_changed && size_of(barriers) <= 2 * explained + 2) return;
  if (along && !kernels_changed && stand_between(barriers, dispatches)) return;
  Finding finding = board.about(more ? kind::batching_lost : kind::batching_gained, "barriers");
  const bool known = by_line || counted(board.evidence, "dispatches");
  const std::string each = along ? beside_each(barriers, dispatches) : "";
  finding.headline = fmt::format(
      "Batching{} {}: {}.", known ? "" : " seems", more ? "lost" : "gained",
      !each.empty() ? each
                    : fmt::format("{} barriers{}{}", signed_text(barriers), board.per(),
                                  !known                 ? "; dispatches are not known"
                                  : dispatches == k_none ? " between the same dispatches"
                                                         : ", more than dispatches explain"));
  arithmetic(board, amounts_of(board, {"barriers"}), finding);
  if (more) {
    finding.cause =
        "work that may overlap is no longer sent together: ops are in another order, or each is "
        "followed by a barrier.";
    finding.look_at = "the order of the graph's nodes, and what is timed or logged op by op.";
  }
  // Beside dispatches a barrier is the smaller part of what is new.
  board.add(std::move(finding), each.empty() ? size_of(barriers) : size_of(barriers) / 2);
}

void find_splits(Board& board) {
  const Rational splits = board.open("splits");
  if (splits == k_none) return;
  Finding finding = board.about(kind::splits_changed, "splits");
  finding.headline = fmt::format("The graph is cut into {} parts between backends{}.",
                                 splits > k_none ? "more" : "fewer", board.per());
  arithmetic(board, amounts_of(board, {"splits", "copies"}), finding);
  finding.cause = "tensors or ops are placed on other backends.";
  finding.look_at = "where weights and cache are kept: buffers in the engine's log.";
  board.take_all({"splits", "copies", "submits", "tensor_copies", "tensor_sets", "tensor_gets",
                  "copied_bytes", "backend_syncs", "cpu_ops"});
  board.add(std::move(finding), 3 * size_of(splits));
}

void find_copies(Board& board) {
  std::vector<Amount> amounts;
  std::string base;
  double units = 0;
  Rational leading;  // counts of other things do not add up
  // Some may be part of a finding about waits.
  bool ups = !board.free("copies") && board.found.count("copies") > k_none, downs = false;
  const Rational bytes = board.open("copied_bytes");
  for (const char* kind : {"copies", "tensor_copies", "tensor_sets", "tensor_gets"}) {
    const Rational delta = board.open(kind);
    if (delta == k_none) continue;
    if (base.empty()) {
      base = kind;
      leading = delta;
    }
    ups = ups || delta > k_none;
    downs = downs || delta < k_none;
    units += 2 * size_of(delta);
    amounts.push_back({plain(kind), delta});
    board.take(kind);
  }
  board.take("copied_bytes");
  if (base.empty()) {
    // Other sizes alone are a finding where there is no better one.
    if (bytes == k_none || !board.entries.empty()) return;
    base = "copied_bytes";
    units = 1;
  }
  ups = ups || bytes > k_none;
  downs = downs || bytes < k_none;
  const bool more = (bytes != k_none ? bytes : leading) > k_none;
  Finding finding = board.about(more ? kind::extra_copies : kind::copies_removed, base);
  finding.headline = fmt::format("{} copied between memories{}.",
                                 ups && downs ? "Other things are"
                                 : more       ? "More is"
                                              : "Less is",
                                 board.per());
  arithmetic(board, amounts, finding);
  if (bytes != k_none) {
    finding.lines.insert(finding.lines.begin() + std::ssize(amounts),
                         fmt::format("{} copied bytes", signed_text(bytes)));
  }
  if (more) finding.cause = "a tensor lives in other memory than the op that reads it.";
  board.take("backend_syncs");
  // Kernels that run apart hand each other what a fused one kept, and many an engine copies the
  // parameters of each, and what it reads: copies follow from them.
  const Rational works = board.found.count("dispatches");
  const bool covered = works != k_none && !board.found.kernels.empty() &&
                       (works > k_none) == more &&
                       2 * size_of(works) >= size_of(amounts.front().delta);
  const bool follows = covered || board.any_entry([](const Board::Entry& entry) {
    return entry.finding.kind == kind::fusion_lost || entry.finding.kind == kind::fusion_gained;
  });
  board.add(std::move(finding), units, follows ? 2 : 1);
}

void find_context(Board& board) {
  // Of a thousand tokens of context: what grows a little a token is a lot.
  constexpr double k_context = 1000;
  auto context = board.found.context;
  std::erase_if(context, [](const auto& one) { return one.first.ends_with("_bytes"); });
  Finding finding = finding_of(kind::grows_with_context);
  if (!context.empty()) {
    for (const auto& [name, delta] : context) board.take("context " + name);
    const auto dispatches = context.find("dispatches");
    const auto& [base, delta] = dispatches != context.end() ? *dispatches : *context.begin();
    const bool grows = delta > k_none;
    finding.metric = base + "_per_context_token";
    finding.delta = delta;
    finding.headline = fmt::format("Counts {} with the context.", grows ? "grow" : "grow less");
    const Counts counts = counts_in(context, k_context, " for each token of context");
    for (const Amount& amount : counts.amounts) add_number(amount, finding);
    finding.cause =
        grows ? "work is done token by token of the context, or the cache is cut into parts." : "";
    return board.add(std::move(finding), counts.units);
  }
  if (board.found.unsteady.empty()) return;
  finding.metric = board.found.unsteady.front();
  const auto metric = unit::find_metric(finding.metric);
  finding.headline = capitalized(fmt::format("{} are no longer the same for every token.",
                                             metric ? plain(metric->base) : safe(finding.metric)));
  finding.cause = "the count depends on the length: of the context, or of a batch.";
  board.add(std::move(finding), 0.5);
}

// The same work in more or fewer submissions. What else changed may be why: it comes first.
void find_submits(Board& board) {
  const Rational delta = board.open("submits");
  const Moves buffers = pointers_to(board.found.buffers);  // the largest change first
  if (delta == k_none && buffers.empty()) return;
  Finding finding = board.about(kind::submits_changed, "submits");
  std::vector<Amount> amounts;
  if (delta != k_none) amounts.push_back({"submits", delta});
  finding.headline = fmt::format("The GPU gets its work in {} parts{}.",
                                 delta > k_none ? "more" : "fewer", board.per());
  if (!buffers.empty()) {
    const Move& most = *buffers.front();
    const Rational by = magnitude(most.delta());
    finding.headline =
        fmt::format("{} {} command buffer{} labelled {} a token.", by.str(),
                    most.up() ? "more" : "fewer", by == Rational(1) ? "" : "s", safe(most.name));
    if (buffers.size() > 1) finding.lines.push_back(move_words(buffers, 6));
    if (amounts.empty()) amounts.push_back({safe(most.name), most.delta()});
  }
  arithmetic(board, amounts, finding);
  if (delta == k_none) {
    finding.metric = unit::work_name(unit::k_buffers, buffers.front()->name);
    finding.delta = buffers.front()->delta();
  }
  finding.look_at = "when the engine submits: after so many operations, bytes or flops.";
  board.take_all({"submits", "buffers"});
  // Other code alone submits nothing.
  const bool follows = board.any_entry(
      [](const Board::Entry& entry) { return entry.finding.kind != kind::code_changed; });
  board.add(std::move(finding), size_of(amounts.front().delta), follows ? 2 : 1);
}

void find_fixed(Board& board) {
  // What changes each token changes the warm-up as well.
  std::map<std::string, Rational> once = board.found.fixed;
  std::erase_if(once, [&](const auto& one) { return board.found.counts.contains(one.first); });
  for (const auto& [base, delta] : once) board.take(base);
  // The same work by kernels that only have other code or sizes is no other count.
  const bool alone = board.found.counts.empty() &&
                     !board.any_entry([](const Board::Entry& entry) { return entry.rank < 2; });
  const Counts counts = counts_in(once);
  // Beside other changes a few more or less say little.
  constexpr double k_few = 5;
  if (once.empty() || (!alone && counts.units < k_few)) return;
  Finding finding = finding_of(kind::fixed_cost_changed, once.begin()->first + "_fixed");
  finding.delta = once.begin()->second;
  const std::string per = board.per();
  finding.headline = fmt::format("{} is done once changed{}: load, warm-up{}{}.",
                                 alone && board.found.kernels.empty() ? "Only what" : "What",
                                 alone ? "" : " as well",
                                 board.evidence.scope == unit::Scope::per_token ? ", prompt" : "",
                                 per.empty() || !alone ? "" : "; no count" + per + " did");
  if (once.size() == 1 && once.contains("allocations")) {
    finding.kind = kind::memory_changed;
    finding.headline = fmt::format("Devices are asked for memory {} often at the start{}.",
                                   *finding.delta > k_none ? "more" : "less",
                                   per.empty() || !alone ? "" : "; no count" + per + " changed");
  }
  arithmetic(board, counts.amounts, finding);
  // What is taken at the start and stays says more than how often it was asked for.
  const auto asked = once.find("allocations");
  const bool stays = asked != once.end() && !board.found.levels.empty() &&
                     counts.units - size_of(asked->second) < k_few;
  board.add(std::move(finding), counts.units + 0.5, !alone ? 4 : stays ? 3 : 2);
}

void find_rest(Board& board) {
  std::vector<std::string> bases;
  for (const auto& [base, delta] : board.found.counts) {
    if (board.free(base)) bases.push_back(base);
  }
  // Beside something that is explained they say little.
  if (bases.empty() || !board.entries.empty()) return;
  Finding finding = board.about(kind::count_changed, bases.front());
  finding.headline = capitalized(fmt::format("{} changed, and nothing known explains it.",
                                             bases.size() == 1 ? plain(bases.front()) : "Counts"));
  arithmetic(board, amounts_of(board, bases), finding);
  for (const std::string& base : bases) board.take(base);
  board.add(std::move(finding), 1, 3);
}

}  // namespace weir::explain
