#include "gate/adapters/workload.hpp"

#include <array>
#include <cmath>

#include "gate/adapters/printed.hpp"
#include "gate/adapters/readers.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

constexpr std::size_t k_most_text = std::size_t{256} << 20;
constexpr std::int64_t k_most_tokens = 1'000'000;
constexpr std::int64_t k_block_tokens = 512;

// A number from 1 to a million under the first of these keys that is there.
std::optional<std::int64_t> tokens_in(const Json& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto count = json_whole(json, key);
    if (count && *count >= 1 && *count <= k_most_tokens) return count;
  }
  return std::nullopt;
}

// About so many tokens of what a hash stands for: common words in an order of its own.
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

Result<void> take_trace(const Json& json, WorkloadRequest& request) {
  const auto tokens = tokens_in(json, {"input_length"});
  const Json& hashes = below(json, "hash_ids");
  if (!tokens || !hashes.is_array()) return fail(Code::data, "no input_length and hash_ids");
  std::int64_t left = *tokens;
  for (const Json& hash : hashes) {
    if (!hash.is_number_integer()) return fail(Code::data, "a hash that is no number");
    add_block(hash.get<std::int64_t>(), std::min(left, k_block_tokens), request.prompt);
    left -= std::min(left, k_block_tokens);
  }
  constexpr std::int64_t k_of_nobody_else = -1;
  if (left > 0) add_block(k_of_nobody_else, left, request.prompt);
  return {};
}

Result<void> take_conversation(const Json& turns, WorkloadRequest& request) {
  for (const Json& turn : turns) {
    const Json &from = below(turn, "from"), &value = below(turn, "value");
    const bool is_asked = from == "human" || from == "user";
    if (!is_asked || !value.is_string()) continue;
    request.prompt = value.get<std::string>();
    return {};
  }
  return fail(Code::data, "a conversation in which nobody asks");
}

Result<WorkloadRequest> request_of(const Json& json, std::int64_t tokens) {
  if (!json.is_object()) return fail(Code::data, "no JSON object");
  WorkloadRequest request;
  const Json &prompt = below(json, "prompt"), &turns = below(json, "conversations");
  if (prompt.is_string()) {
    request.prompt = prompt.get<std::string>();
  } else if (turns.is_array()) {
    WEIR_CHECK(take_conversation(turns, request));
  } else {
    WEIR_CHECK(take_trace(json, request));
  }
  if (request.prompt.empty()) return fail(Code::data, "an empty prompt");
  request.tokens =
      tokens_in(json, {"output_tokens", "output_length", "max_tokens"}).value_or(tokens);
  if (request.tokens < 1) {
    return fail(Code::data, "it does not say how many tokens to generate, nor does the prompt");
  }
  request.at = json_number(json, "timestamp");  // milliseconds, until the first is known
  return request;
}

class Reading {
 public:
  Reading(std::int64_t tokens, std::size_t most) : tokens_(tokens), most_(most) {}

  // False: that is all that is wanted.
  Result<bool> add(const Json& json) {
    WEIR_TRY(WorkloadRequest request, request_of(json, tokens_));
    bytes_ += request.prompt.size();
    if (bytes_ > k_most_text) {
      return fail(Code::data,
                  "the prompts up to here are larger than 256 MiB: \"requests\" takes "
                  "fewer of them");
    }
    if (request.at) {
      if (!first_at_) first_at_ = request.at;
      constexpr double k_ms = 1e-3;
      *request.at = (*request.at - *first_at_) * k_ms;
      if (*request.at < last_at_) return fail(Code::data, "it came before the one above it");
      last_at_ = *request.at;
    }
    requests_.push_back(std::move(request));
    return requests_.size() < most_;
  }
  [[nodiscard]] Result<std::vector<WorkloadRequest>> take() {
    if (requests_.empty()) return fail(Code::data, "no request in it");
    return std::move(requests_);
  }

 private:
  std::int64_t tokens_;
  std::size_t most_, bytes_ = 0;
  std::optional<double> first_at_;
  double last_at_ = 0;
  std::vector<WorkloadRequest> requests_;
};

}  // namespace

Result<std::vector<WorkloadRequest>> read_workload(std::string_view text, std::int64_t tokens,
                                                   std::size_t most) {
  constexpr JsonLimits k_limits{std::size_t{64} << 20, 16, 20'000'000};
  Reading reading(tokens, most);
  if (text::trim(text).starts_with('[')) {
    WEIR_TRY(const Json all, parse_json(text, k_limits));
    std::size_t entry = 0;
    for (const Json& one : all) {
      WEIR_TRY(const bool more,
               reading.add(one).map_error(in_context(fmt::format("entry {}", ++entry))));
      if (!more) break;
    }
    return reading.take();
  }
  std::size_t number = 0;
  for (const std::string_view whole : lines_of(text)) {
    const std::string_view line = text::trim(whole);
    ++number;
    if (line.empty()) continue;
    const auto context = in_context(fmt::format("line {}", number));
    WEIR_TRY(const Json json, parse_json(line, k_limits).map_error(context));
    WEIR_TRY(const bool more, reading.add(json).map_error(context));
    if (!more) break;
  }
  return reading.take();
}

}  // namespace weir::adapters
