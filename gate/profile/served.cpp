#include "gate/profile/served.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "gate/profile/metric_json.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_served_schema = "weir.served/1";

constexpr std::array<std::pair<ServedFault, std::string_view>, 21> k_faults{{
    {ServedFault::invalid_request, "invalid_request"},
    {ServedFault::no_connection, "no_connection"},
    {ServedFault::refused, "refused"},
    {ServedFault::tls, "tls"},
    {ServedFault::timeout_headers, "timeout_headers"},
    {ServedFault::timeout_token, "timeout_token"},
    {ServedFault::timeout_total, "timeout_total"},
    {ServedFault::cut_off, "cut_off"},
    {ServedFault::bad_http, "bad_http"},
    {ServedFault::redirected, "redirected"},
    {ServedFault::too_many_requests, "too_many_requests"},
    {ServedFault::status, "status"},
    {ServedFault::bad_content_type, "bad_content_type"},
    {ServedFault::encoded, "encoded"},
    {ServedFault::bad_event, "bad_event"},
    {ServedFault::server_error, "server_error"},
    {ServedFault::unfinished, "unfinished"},
    {ServedFault::no_token, "no_token"},
    {ServedFault::too_long, "too_long"},
    {ServedFault::interrupted, "interrupted"},
    {ServedFault::other, "other"},
}};

template <class T>
void put_present(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

Json to_json(const ServedReport& report) {
  Json json = Json::object();
  put_present(json, "prompt_tokens", report.prompt_tokens);
  put_present(json, "cached_tokens", report.cached_tokens);
  put_present(json, "output_tokens", report.output_tokens);
  put_present(json, "prompt_seconds", report.prompt_seconds);
  put_present(json, "output_seconds", report.output_seconds);
  put_present(json, "finish", report.finish);
  put_present(json, "model", report.model);
  put_present(json, "build", report.build);
  return json;
}

ServedReport report_from_json(JsonReader read) {
  ServedReport report;
  report.prompt_tokens = read.optional_integer("prompt_tokens");
  report.cached_tokens = read.optional_integer("cached_tokens");
  report.output_tokens = read.optional_integer("output_tokens");
  report.prompt_seconds = read.optional_number("prompt_seconds");
  report.output_seconds = read.optional_number("output_seconds");
  report.finish = read.optional_string("finish");
  report.model = read.optional_string("model");
  report.build = read.optional_string("build");
  return report;
}

// Times and counts of events are two lists, the second only where one event is not one token.
void put_tokens(Json& json, const std::vector<ServedToken>& tokens) {
  Json times = Json::array(), counts = Json::array();
  bool plain = true;
  for (const ServedToken& token : tokens) {
    times.push_back(number_to_json(token.at));
    counts.push_back(token.tokens);
    plain = plain && token.tokens == 1;
  }
  json["token_times"] = std::move(times);
  if (!plain) json["tokens_of_each"] = std::move(counts);
}

void take_tokens(JsonReader& read, ServedRequest& request) {
  const auto times = numbers_from_json(read, "token_times");
  const auto counts = integers_from_json(read, "tokens_of_each");
  if (!counts.empty() && counts.size() != times.size()) {
    read.complain(read.path() + ".tokens_of_each: not as many as token_times");
    return;
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    request.tokens.push_back({times[i], counts.empty() ? 1 : counts[i]});
  }
}

}  // namespace

std::string_view to_string(ServedFault fault) {
  for (const auto& [known, name] : k_faults) {
    if (known == fault) return name;
  }
  return "other";
}

std::optional<ServedFault> parse_served_fault(std::string_view text) {
  for (const auto& [fault, name] : k_faults) {
    if (name == text) return fault;
  }
  return std::nullopt;
}

std::int64_t ServedRequest::output_tokens() const {
  return reported.output_tokens.value_or(counted_tokens);
}

void append_block(std::vector<ServedRequest>& all, std::vector<ServedRequest> block) {
  if (all.empty()) {
    all = std::move(block);
    return;
  }
  if (block.empty()) return;
  const auto later = [](double at, const ServedRequest& one) { return std::max(at, one.ended); };
  const auto earlier = [](double at, const ServedRequest& one) {
    return std::min(at, one.intended);
  };
  const double end = std::accumulate(all.begin(), all.end(), all.front().ended, later);
  const double begin = std::accumulate(block.begin(), block.end(), block.front().intended, earlier);
  const double shift = end - begin;
  const auto first = static_cast<std::int64_t>(all.size());
  for (ServedRequest& request : block) {
    request.number += first;
    request.intended += shift;
    request.sent += shift;
    request.ended += shift;
    if (request.connected) *request.connected += shift;
    if (request.answered) *request.answered += shift;
    for (ServedToken& token : request.tokens) token.at += shift;
    all.push_back(std::move(request));
  }
}

Json to_json(const ServedRequest& request) {
  Json json = {{"schema", k_served_schema},
               {"number", request.number},
               {"prompt", request.prompt},
               {"asked_tokens", request.asked_tokens},
               {"intended", number_to_json(request.intended)},
               {"sent", number_to_json(request.sent)},
               {"ended", number_to_json(request.ended)},
               {"counted_tokens", request.counted_tokens},
               {"output_bytes", request.output_bytes},
               {"reported", to_json(request.reported)}};
  if (request.warm_up) json["warm_up"] = true;
  if (request.kept_connection) json["kept_connection"] = true;
  put_present(json, "connected", request.connected);
  put_present(json, "answered", request.answered);
  if (!request.output_digest.empty()) json["output_digest"] = request.output_digest;
  put_tokens(json, request.tokens);
  if (const auto& failure = request.failure) {
    json["failure"] = {{"fault", to_string(failure->fault)}, {"detail", failure->detail}};
    if (failure->status != 0) json["failure"]["status"] = failure->status;
  }
  return json;
}

Result<ServedRequest> served_request_from_json(const Json& json) {
  JsonReader read(json, "request");
  ServedRequest request;
  if (read.string("schema") != k_served_schema && !read.problem()) {
    read.complain(fmt::format("request: its schema is not {}", k_served_schema));
  }
  request.number = read.integer("number");
  request.prompt = read.string("prompt");
  request.asked_tokens = read.integer("asked_tokens");
  request.intended = read.number("intended");
  request.sent = read.number("sent");
  request.ended = read.number("ended");
  request.counted_tokens = read.integer("counted_tokens");
  request.output_bytes = read.integer("output_bytes");
  request.warm_up = read.optional_boolean("warm_up").value_or(false);
  request.kept_connection = read.optional_boolean("kept_connection").value_or(false);
  request.connected = read.optional_number("connected");
  request.answered = read.optional_number("answered");
  request.output_digest = read.optional_string("output_digest").value_or("");
  take_tokens(read, request);
  JsonReader reported(read.object("reported"), "request.reported");
  request.reported = report_from_json(reported);
  if (read.has("failure")) {
    JsonReader failed(read.object("failure"), "request.failure");
    ServedFailure failure;
    const auto fault = parse_served_fault(failed.string("fault"));
    if (!fault) failed.complain("request.failure.fault: no fault of that name");
    failure.fault = fault.value_or(ServedFault::other);
    failure.status = static_cast<int>(failed.optional_integer("status").value_or(0));
    failure.detail = failed.optional_string("detail").value_or("");
    request.failure = std::move(failure);
    if (auto problem = failed.problem()) return tl::unexpected(std::move(*problem));
  }
  if (auto problem = read.problem()) return tl::unexpected(std::move(*problem));
  return request;
}

}  // namespace weir::profile
