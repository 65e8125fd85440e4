// weir.allowances/1, both ways. What is read is anybody's until it is parsed.
#include <algorithm>
#include <tuple>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::verdict {
namespace {

constexpr JsonLimits k_limits{.bytes = std::size_t{8} << 20, .depth = 8};
constexpr std::size_t k_most_kernels = 10'000;
constexpr std::int64_t k_largest_number = std::int64_t{1} << 53U;

bool is_hex(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "2026-12-31", as a calendar has it.
bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const std::size_t at : {0U, 1U, 2U, 3U, 5U, 6U, 8U, 9U}) {
    if (text[at] < '0' || text[at] > '9') return false;
  }
  const auto number = [&](std::size_t from, std::size_t length) {
    return text::to_int(text.substr(from, length)).value_or(0);
  };
  return number(5, 2) >= 1 && number(5, 2) <= 12 && number(8, 2) >= 1 && number(8, 2) <= 31;
}

bool is_login(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '[' || c == ']' || c == '.';
  });
}

bool is_value(std::string_view text) {
  return !text.empty() && text.size() <= 100 && text::printable(text) == text &&
         text.find('\n') == std::string_view::npos;
}

struct ExactField {
  std::optional<Rational>& value;
  void put(Json& slot) const { slot = rational_to_json(*value); }
  void take(const Json& json, Fields& io, const char*) const {
    value = rational_from_json(json);
    io.check(value.has_value(), "has a number that is none");
  }
};

}  // namespace

std::string allowance_path(std::int64_t pull_request) {
  return fmt::format("allowances/{}.json", pull_request);
}

std::optional<std::string> problem_of(const Allowance& allowance) {
  const Allowable& what = allowance.what;
  constexpr std::size_t k_longest_reason = 1000;
  if (!profile::CellKey::parse(what.cell)) return "names no cell";
  if (what.metric.empty() || what.metric.size() > 100 ||
      text::printable(what.metric) != what.metric) {
    return "names no metric";
  }
  if (what.metric == "placement") return "can not be about placement: cpu_ops_allowed is a rule";
  if (!is_value(what.from) || !is_value(what.to)) return "has no value from or to";
  if (what.device_class.size() > 300 || text::printable(what.device_class) != what.device_class) {
    return "names no device class";
  }
  if (what.from == what.to && what.kernels.empty()) return "changes nothing";
  if ((what.metric == "kernels") == what.kernels.empty()) {
    return "of kernels names each kernel, and of anything else none";
  }
  if (allowance.pull_request <= 0 || allowance.pull_request > k_largest_number) {
    return "is for no pull request";
  }
  if (allowance.head && !is_hex(*allowance.head)) return "is pinned to what is no commit";
  if (text::trim(allowance.reason).empty() || allowance.reason.size() > k_longest_reason ||
      text::printable(allowance.reason) != allowance.reason ||
      allowance.reason.find('\n') != std::string::npos) {
    return "needs a reason, one line of at most 1000 bytes";
  }
  if (!is_login(allowance.who)) return "needs to say who allowed it";
  if (!is_date(allowance.until)) return "needs a day until which it holds: 2026-12-31";
  return std::nullopt;
}

// What a kernel's count was and is.
struct AllowedKernel : Changed {};
static void fields(Fields& io, AllowedKernel& kernel) {
  io("name", kernel.name);
  io.sparse("from", ExactField{kernel.baseline});
  io.sparse("to", ExactField{kernel.current});
}

static void fields(Fields& io, Allowable& what) {
  io("cell", what.cell);
  io("metric", what.metric);
  io("from", what.from);
  io("to", what.to);
  io.sparse("device_class", what.device_class);
  std::vector<AllowedKernel> kernels;
  for (const Changed& one : what.kernels) kernels.push_back({one});
  io.at_most("kernels", k_most_kernels, fmt::format("has more than {} kernels", k_most_kernels));
  io.sparse("kernels", kernels, "kernels");
  if (io.reads()) what.kernels.assign(kernels.begin(), kernels.end());
}

static void fields(Fields& io, Allowance& allowance) {
  fields(io, allowance.what);
  io("reason", allowance.reason);
  io("who", allowance.who);
  io("until", allowance.until);
  io.sparse("head", allowance.head);
}

Json to_json(const Allowable& what) { return write_fields(what); }

Result<Allowable> allowable_from_json(const Json& json) {
  return read_fields<Allowable>(json, "allowances");
}

static Result<Allowance> allowance_from_json(const Json& json, std::int64_t pull_request) {
  WEIR_TRY(Allowance made, read_fields<Allowance>(json, "allowances"));
  made.pull_request = pull_request;
  if (const auto problem = problem_of(made)) return fail(Code::data, "an allowance {}", *problem);
  return made;
}

std::string to_text(std::int64_t pull_request, const std::vector<Allowance>& all) {
  std::vector<const Allowance*> sorted;
  for (const Allowance& one : all) sorted.push_back(&one);
  std::sort(sorted.begin(), sorted.end(), [](const Allowance* a, const Allowance* b) {
    return std::tie(a->what.cell, a->what.metric, a->what.device_class, a->head) <
           std::tie(b->what.cell, b->what.metric, b->what.device_class, b->head);
  });
  std::string text =
      "{\"schema\": \"weir.allowances/1\", \"pull_request\": " + fmt::format("{}", pull_request) +
      ", \"allowances\": [";
  for (const Allowance* one : sorted) {
    text +=
        fmt::format("{}\n  {}", one == sorted.front() ? "" : ",", dump_json(write_fields(*one)));
  }
  return text + "\n]}\n";
}

namespace {

constexpr std::string_view k_fence = "```json\n", k_fence_end = "\n```\n";

// What `/weir accept` reads back.
Json block_json(const WouldTake& take) {
  return {{"schema", "weir.allowable/1"},
          {"changes", write_fields(take.changes)},
          {"beyond", take.beyond}};
}

// In JSON every back tick can be written otherwise, so that none ends the block.
std::string block_of(const WouldTake& take) {
  std::string block;
  for (const char c : dump_json(block_json(take))) {
    if (c == '`') {
      block += "\\u0060";
    } else {
      block += c;
    }
  }
  return block;
}

}  // namespace

std::string allowable_text(const WouldTake& take, std::size_t limit) {
  if (take.changes.empty()) return "";
  const auto whole = [](const WouldTake& one) {
    return fmt::format(
        "What `/weir accept REASON` in a comment accepts, for this commit alone, said by who may "
        "write here:\n\n{}{}{}",
        k_fence, block_of(one), k_fence_end);
  };
  std::string text = whole(take);
  if (text.size() <= limit) return text;
  return whole({{},
                {fmt::format("{} changes are more than fit here: weir allow VERDICT.json",
                             take.changes.size())}});
}

Result<WouldTake> parse_allowable_text(std::string_view text) {
  const std::size_t from = text.find(k_fence);
  const std::size_t end = from == std::string_view::npos ? from : text.find("\n```", from);
  if (end == std::string_view::npos) return fail(Code::data, "says nothing that could be accepted");
  WEIR_TRY(const Json json,
           parse_json(text.substr(from + k_fence.size(), end - from - k_fence.size()), k_limits));
  JsonReader read(json, "allowable");
  if (read.string("schema") != "weir.allowable/1") {
    return fail(Code::data, "says nothing that could be accepted: schema");
  }
  WouldTake take;
  take.beyond = read.strings("beyond");
  for (const Json& item : read.array("changes")) {
    WEIR_TRY(Allowable one, allowable_from_json(item));
    take.changes.push_back(std::move(one));
    if (take.changes.size() > k_most_allowances) {
      return fail(Code::data, "more than {} changes", k_most_allowances);
    }
  }
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  return take;
}

Result<std::vector<Allowance>> parse_allowances(std::string_view text, std::int64_t pull_request) {
  WEIR_TRY(const Json json, parse_json(text, k_limits));
  JsonReader read(json, "allowances");
  if (read.string("schema") != "weir.allowances/1") {
    return fail(Code::data, "no allowances: schema should be \"weir.allowances/1\"");
  }
  if (const std::int64_t own = read.integer("pull_request"); own != pull_request) {
    return fail(Code::data, "the allowances of pull request {} in the file of {}", own,
                pull_request);
  }
  const Json& list = read.array("allowances");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (list.size() > k_most_allowances) {
    return fail(Code::data, "more than {} allowances", k_most_allowances);
  }
  std::vector<Allowance> all;
  for (const Json& item : list) {
    WEIR_TRY(Allowance one, allowance_from_json(item, pull_request));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace weir::verdict
