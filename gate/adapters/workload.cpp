// Reads recorded or drawn requests for a load.
#include "gate/adapters/workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "gate/adapters/printed.hpp"
#include "gate/adapters/readers.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_max_text_bytes = std::size_t{256} << 20;
constexpr std::int64_t k_max_tokens = 1'000'000;
constexpr std::int64_t k_block_tokens = 512;

// Returns the first number from 1 to a million under one of these keys.
std::optional<std::int64_t> read_tokens(const Json& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto count = json_integer(json, key);
    if (count && *count >= 1 && *count <= k_max_tokens) return count;
  }
  return std::nullopt;
}

// Appends about `tokens` tokens to the prompt: common words in an order that `hash` decides.
void add_block(std::int64_t hash, std::int64_t tokens, std::string& prompt) {
  constexpr std::array k_words{"one", "two",   "three", "four", "five", "six",  "then", "and",
                               "the", "other", "way",   "back", "all",  "from", "here", "now"};
  auto state = static_cast<std::uint64_t>(hash) * 0x9e3779b97f4a7c15ULL + 1;
  for (std::int64_t i = 0; i < tokens; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX
    if (!prompt.empty()) prompt += ' ';
    prompt += k_words[state >> 60];
  }
}

// Reads a line of a Mooncake trace; its prompt is made from the hashes.
Result<void> read_trace(const Json& json, WorkloadRequest& request) {
  const auto tokens = read_tokens(json, {"input_length"});
  const Json& hashes = member_or_null(json, "hash_ids");
  if (!tokens || !hashes.is_array()) return fail(Code::data, "no input_length and hash_ids");
  std::int64_t remaining = *tokens;
  for (const Json& hash : hashes) {
    if (!hash.is_number_integer()) return fail(Code::data, "a hash that is no number");
    add_block(hash.get<std::int64_t>(), std::min(remaining, k_block_tokens), request.prompt);
    remaining -= std::min(remaining, k_block_tokens);
  }
  constexpr std::int64_t k_unshared = -1;
  if (remaining > 0) add_block(k_unshared, remaining, request.prompt);
  return {};
}

tl::unexpected<Error> too_large() {
  return fail(Code::data,
              "the prompts up to here are larger than 256 MiB: \"requests\" takes fewer of them");
}

// Returns the prompts of the first `turns` turns, each with the whole dialogue before it.
Result<std::vector<std::string>> read_prompts(const Json& conversation, std::int64_t turns) {
  std::vector<std::string> prompts;
  std::string dialogue;
  std::size_t bytes = 0;
  for (const Json& turn : conversation) {
    const Json &from = member_or_null(turn, "from"), &value = member_or_null(turn, "value");
    if (!value.is_string() || from == "system") continue;
    const bool is_user = from == "human" || from == "user";
    if (!is_user && prompts.empty()) continue;  // an answer before the first question
    if (!dialogue.empty()) dialogue += '\n';
    dialogue += value.get_ref<const std::string&>();
    if (!is_user) continue;
    prompts.push_back(dialogue);
    bytes += dialogue.size();
    if (bytes > k_max_text_bytes) return too_large();
    if (std::ssize(prompts) == turns) break;
  }
  if (prompts.empty()) return fail(Code::data, "a conversation in which nobody asks");
  return prompts;
}

// Reads one line of a file: a request, or the turns of a conversation. `tokens` is for requests
// that do not say how many to generate; 0: that is an error.
Result<std::vector<WorkloadRequest>> read_requests(const Json& json, std::int64_t tokens,
                                                   std::int64_t turns) {
  if (!json.is_object()) return fail(Code::data, "no JSON object");
  std::vector<WorkloadRequest> requests(1);
  const Json &prompt = member_or_null(json, "prompt"),
             &conversation = member_or_null(json, "conversations");
  if (prompt.is_string()) {
    requests.front().prompt = prompt.get<std::string>();
  } else if (conversation.is_array()) {
    WEIR_TRY(std::vector<std::string> prompts, read_prompts(conversation, turns));
    requests.resize(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) requests[i].prompt = std::move(prompts[i]);
  } else {
    WEIR_CHECK(read_trace(json, requests.front()));
  }
  const auto output_tokens = read_tokens(json, {"output_tokens", "output_length", "max_tokens"});
  for (WorkloadRequest& request : requests) {
    if (request.prompt.empty()) return fail(Code::data, "an empty prompt");
    request.tokens = output_tokens.value_or(tokens);
    if (request.tokens < 1) {
      return fail(Code::data, "it does not say how many tokens to generate, nor does the prompt");
    }
  }
  // In milliseconds; RequestList makes it relative to the first request.
  requests.front().at = json_number(json, "timestamp");
  return requests;
}

// Collects the first `most` requests of a workload.
class RequestList {
 public:
  RequestList(std::int64_t tokens, std::size_t most, std::int64_t turns)
      : tokens_(tokens), most_(most), turns_(turns) {}

  // Adds the requests of one entry. Returns false when the list is complete.
  Result<bool> add(const Json& json) {
    return read_requests(json, tokens_, turns_).and_then([&](auto requests) {
      return add(std::move(requests));
    });
  }
  // Adds a request, or the turns of a conversation, each after the one before.
  Result<bool> add(std::vector<WorkloadRequest> requests) {
    if (requests.front().at) {
      double& at = *requests.front().at;
      if (!first_at_) first_at_ = at;
      constexpr double k_ms = 1e-3;
      at = (at - *first_at_) * k_ms;
      if (at < last_at_) return fail(Code::data, "it came before the one above it");
      last_at_ = at;
    }
    std::optional<std::size_t> before;
    for (WorkloadRequest& request : requests) {
      if (requests_.size() >= most_) break;
      bytes_ += request.prompt.size();
      if (bytes_ > k_max_text_bytes) {
        return too_large();
      }
      request.after = before;
      before = requests_.size();
      requests_.push_back(std::move(request));
    }
    return requests_.size() < most_;
  }
  [[nodiscard]] Result<std::vector<WorkloadRequest>> take() {
    if (requests_.empty()) return fail(Code::data, "no request in it");
    return std::move(requests_);
  }

 private:
  std::int64_t tokens_;
  std::size_t most_;
  std::int64_t turns_;
  std::size_t bytes_ = 0;
  std::optional<double> first_at_;
  double last_at_ = 0;
  std::vector<WorkloadRequest> requests_;
};

// Random numbers that are the same for the same seed, on any machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  // Above 0 and below 1.
  double share() {
    state_ += 0x9e3779b97f4a7c15ULL;  // splitmix64 (Steele, Lea and Flood, 2014)
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
    mixed ^= mixed >> 31U;
    return (static_cast<double>(mixed >> 12U) + 0.5) * 0x1p-52;
  }
  double normal() {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(share()));
    return radius * std::cos(2 * std::numbers::pi * share());
  }

 private:
  std::uint64_t state_;
};

// Distribution of a number of tokens: constant, uniform between two bounds, or log-normal.
struct Length {
  double median = 0, sigma = 0;  // sigma: of the logarithm
  double least = 0, most = 0;    // above 0: uniform
  std::int64_t draw(Draws& draws) const {
    const double tokens = most > 0 ? std::floor(least + draws.share() * (most - least + 1))
                                   : std::round(median * std::exp(sigma * draws.normal()));
    return static_cast<std::int64_t>(std::clamp(tokens, 1.0, static_cast<double>(k_max_tokens)));
  }
};

// Reads a distribution: a number, {"median", "p99"} or {"least", "most"}. `otherwise` is the
// constant for a missing key; 0: the key is required.
Result<Length> read_length(const Json& json, const char* key, std::int64_t otherwise) {
  constexpr double k_p99 = 2.3263478740408408;  // standard deviations
  const auto figure = [&](const char* name) {
    return read_tokens(member_or_null(json, key), {name}).value_or(0);
  };
  Length length;
  const auto constant = read_tokens(json, {key});
  length.median = static_cast<double>(constant ? *constant : figure("median"));
  const auto p99 = static_cast<double>(figure("p99"));
  if (p99 > 0 && p99 >= length.median) length.sigma = std::log(p99 / length.median) / k_p99;
  length.least = static_cast<double>(figure("least"));
  length.most = static_cast<double>(figure("most"));
  if (!json.contains(key) && otherwise > 0) length.median = static_cast<double>(otherwise);
  const bool is_range = length.least > 0 && length.most >= length.least;
  const bool is_median =
      length.median > 0 && (constant || !member_or_null(json, key).is_object() || p99 > 0);
  if (is_range || (is_median && p99 >= 0 && (p99 == 0 || p99 >= length.median))) return length;
  return fail(Code::data,
              "{}: expected a number, {{\"median\": N, \"p99\": N}} or {{\"least\": N, \"most\": "
              "N}}",
              key);
}

// Draws requests from distributions of their lengths, with shared prefixes. `turns` requests form a
// conversation.
Result<std::vector<WorkloadRequest>> draw_requests(const Json& json, std::int64_t tokens,
                                                   std::size_t most, std::int64_t turns) {
  for (const auto& [key, value] : json.items()) {
    constexpr std::array k_keys{"prompt_tokens", "output_tokens", "shared_prefix_tokens",
                                "prefixes", "seed"};
    const auto* match = find_first(k_keys, [&](const char* name) { return key == name; });
    if (match == nullptr) return fail(Code::data, "unknown key \"{}\"", text::printable(key));
    const bool is_plain = match >= &k_keys[2];
    const bool fits =
        key == "seed" ? value.is_number_integer() : read_tokens(json, {*match}).has_value();
    if (is_plain && !fits) return fail(Code::data, "{}: expected a whole number above 0", key);
  }
  WEIR_TRY(const Length prompts, read_length(json, "prompt_tokens", 0));
  WEIR_TRY(const Length outputs, read_length(json, "output_tokens", tokens));
  const std::int64_t shared = read_tokens(json, {"shared_prefix_tokens"}).value_or(0);
  const std::int64_t prefixes = read_tokens(json, {"prefixes"}).value_or(1);
  const auto seed = static_cast<std::uint64_t>(json_integer(json, "seed").value_or(1));
  Draws draws(seed);
  RequestList reading(tokens, most, turns);
  std::int64_t next_block = prefixes;  // blocks after a prefix are not shared
  for (bool more = true; more;) {
    const auto prefix = static_cast<std::int64_t>(draws.share() * static_cast<double>(prefixes));
    std::vector<WorkloadRequest> conversation;
    std::string dialogue;
    std::size_t bytes = 0;
    add_block(prefix, shared, dialogue);
    for (std::int64_t turn = 0; turn < turns && bytes <= k_max_text_bytes; ++turn) {
      add_block(next_block, prompts.draw(draws), dialogue);
      ++next_block;
      bytes += dialogue.size();
      conversation.push_back({dialogue, outputs.draw(draws)});
      add_block(next_block, conversation.back().tokens, dialogue);
      ++next_block;
    }
    WEIR_TRY_SET(more, reading.add(std::move(conversation)));
  }
  return reading.take();
}

}  // namespace

// Reads up to `most` requests: drawn by a rule, from a JSON array, or from JSON lines.
Result<std::vector<WorkloadRequest>> read_workload(std::string_view text, std::int64_t tokens,
                                                   std::size_t most, std::int64_t turns) {
  constexpr JsonLimits k_limits{std::size_t{64} << 20, 16, 20'000'000};
  constexpr std::size_t k_longest_rule = 4096;
  if (text.size() <= k_longest_rule) {
    const auto rule = parse_json(text, k_limits);
    if (rule && rule->is_object() && rule->contains("prompt_tokens") && !rule->contains("prompt"))
      return draw_requests(*rule, tokens, most, turns);
  }
  RequestList reading(tokens, most, turns);
  if (text::trim(text).starts_with('[')) {
    WEIR_TRY(const Json all, parse_json(text, k_limits));
    std::size_t entry = 0;
    for (const Json& entry_json : all) {
      WEIR_TRY(const bool more,
               reading.add(entry_json).map_error(with_prefix(fmt::format("entry {}", ++entry))));
      if (!more) break;
    }
    return reading.take();
  }
  std::size_t number = 0;
  for (const std::string_view raw_line : split_lines(text)) {
    const std::string_view line = text::trim(raw_line);
    ++number;
    if (line.empty()) continue;
    const auto context = with_prefix(fmt::format("line {}", number));
    WEIR_TRY(const Json json, parse_json(line, k_limits).map_error(context));
    WEIR_TRY(const bool more, reading.add(json).map_error(context));
    if (!more) break;
  }
  return reading.take();
}

}  // namespace weir::adapters
