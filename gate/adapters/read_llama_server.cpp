// Replies of llama-server: /completion and chat, whole or streamed ("data: {…}"), with `timings`.
//
// Its own predicted_per_second divides by predicted_n - 1, that of older builds by predicted_n: the
// rate is made anew from predicted_ms, with the first rule. A prompt that came from the cache has
// no rate that compares with another.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::llama_server {
namespace {

constexpr std::string_view k_data = "data: ";

struct Reply {
  std::optional<std::int64_t> cached, prompt, predicted;
  std::optional<double> prompt_ms, predicted_ms;
};

std::optional<Reply> reply_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("timings");
  if (found == json.end() || !found->is_object()) return std::nullopt;
  Reply reply;
  reply.cached = json_whole(*found, "cache_n");
  reply.prompt = json_whole(*found, "prompt_n");
  reply.predicted = json_whole(*found, "predicted_n");
  reply.prompt_ms = json_number(*found, "prompt_ms");
  reply.predicted_ms = json_number(*found, "predicted_ms");
  return reply;
}

void add_reply(const Reply& reply, const std::string& name, observed::Observed& observed) {
  observed::ObservedCase one;
  one.name = name;
  one.prompt_tokens = reply.prompt;
  one.generated_tokens = reply.predicted;
  const std::int64_t cached = reply.cached.value_or(0);
  if (cached > 0) {
    one.facts["cached_tokens"] = fmt::format("{}", cached);
    add_warning(observed, "part of a prompt came from the cache: its rate does not compare");
  }
  if (reply.prompt && reply.prompt_ms && *reply.prompt_ms > 0) {
    const double rate = static_cast<double>(*reply.prompt) * 1e3 / *reply.prompt_ms;
    add_sample(one.timings, "prefill_tokens_per_second", rate);
    add_sample(observed.timings, "prefill_tokens_per_second", rate);
  }
  if (reply.predicted && *reply.predicted > 1 && reply.predicted_ms && *reply.predicted_ms > 0) {
    const double rate = static_cast<double>(*reply.predicted - 1) * 1e3 / *reply.predicted_ms;
    add_sample(one.timings, "decode_tokens_per_second", rate);
    add_sample(observed.timings, "decode_tokens_per_second", rate);
  }
  keep_row(observed.cases, std::move(one), observed);
}

// A stream's chunks carry the timings so far: each step is what the chunk before lacked.
class Stream {
 public:
  explicit Stream(observed::Observed& observed) : observed_(observed) {}

  void take(const Json& json) {
    const auto reply = reply_of(json);
    if (!reply) return;
    ended_ = is_last(json);
    if (last_ && reply->predicted.value_or(0) < last_->predicted.value_or(0)) finish();
    if (last_ && reply->predicted && last_->predicted && *reply->predicted > *last_->predicted &&
        reply->predicted_ms && last_->predicted_ms &&
        *reply->predicted_ms >= *last_->predicted_ms) {
      keep_row(observed_.steps,
               {fmt::format("token {}", *reply->predicted), observed::Phase::decode,
                *reply->predicted - *last_->predicted,
                (*reply->predicted_ms - *last_->predicted_ms) / 1e3},
               observed_);
    }
    last_ = reply;
  }
  // A stream that has no last chunk was cut: its rates are those of the tokens so far.
  void finish() {
    if (last_ && !ended_) mark_truncated(observed_);
    if (last_) add_reply(*last_, fmt::format("request {}", observed_.cases.size()), observed_);
    last_.reset();
  }

 private:
  static bool is_last(const Json& json) {
    const auto stop = json.find("stop");
    if (stop != json.end() && stop->is_boolean()) return stop->get<bool>();
    return true;  // of chat: only its last chunk has timings, unless they were asked for
  }
  observed::Observed& observed_;
  std::optional<Reply> last_;
  bool ended_ = true;
};

void read_names(const Json& json, observed::Observed& observed) {
  if (const auto model = json_text(json, "model")) {
    observed.context.model = *model;
    if (model->find_first_of("/\\") != std::string::npos) observed.context.places = {*model};
  }
  if (const auto build = json_text(json, "system_fingerprint"))
    observed.context.engine_build = *build;
  const auto error = json.find("error");
  if (error != json.end() && error->is_object()) {
    if (const auto message = json_text(*error, "message")) observed.errors.push_back(*message);
  }
}

}  // namespace

int recognises(const Printed& printed) {
  return printed.holds("\"timings\"") && printed.holds("\"predicted_n\"") ? 85 : 0;
}

Result<observed::Observed> read(const Printed& printed) {
  observed::Observed observed;
  observed.context.engine = "llama.cpp";
  Stream stream(observed);
  for (const std::string_view line : printed.out()) {
    if (!line.starts_with(k_data)) continue;
    const std::string_view text = line.substr(k_data.size());
    if (text.starts_with("[DONE]")) continue;
    const auto json = parse_json(text, {std::size_t{1} << 20, 64});
    if (!json) {
      mark_truncated(observed);
      continue;
    }
    stream.take(*json);
    if (json->is_object()) read_names(*json, observed);
  }
  stream.finish();
  const auto whole = [&](const Json& json) {
    if (const auto reply = reply_of(json)) {
      add_reply(*reply, fmt::format("request {}", observed.cases.size()), observed);
    }
    if (json.is_object()) read_names(json, observed);
  };
  read_pieces(printed, {}, {[&](std::string_view, const Json& json) { whole(json); }, whole},
              observed);
  if (observed.cases.empty() && observed.errors.empty()) return nothing_found("llama-server");
  if (observed.cases.size() == 1) {
    observed.prompt_tokens = observed.cases.front().prompt_tokens;
    observed.generated_tokens = observed.cases.front().generated_tokens;
  }
  return observed;
}

}  // namespace weir::adapters::llama_server
