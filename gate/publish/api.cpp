// Reads answers of a REST API, and answers rehearsed requests.
#include "gate/publish/api.hpp"

#include <algorithm>

#include "gate/base/text.hpp"

namespace weir::publish {

std::string text_in(const Json& json, const char* key) {
  const Json& value = member_or_null(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::int64_t number_in(const Json& json, const char* key) {
  const Json& value = member_or_null(json, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

std::string link_in(const Json& json, const char* key) {
  std::string link = text_in(json, key);
  const bool web = link.starts_with("https://") || link.starts_with("http://");
  const bool plain = std::ranges::all_of(link, [](char c) { return c > ' ' && c < 0x7f; });
  return web && plain && link.size() < 2000 ? link : "";
}

std::string refusal_text(const ApiResponse& answer) {
  const std::string message = printable_line(text_in(answer.body, "message"), 300);
  return message.empty() ? fmt::format("HTTP {}", answer.status)
                         : fmt::format("HTTP {}, {}", answer.status, message);
}

std::string normalize_body(std::string_view body) {
  std::string out(body);
  std::erase(out, '\r');
  return std::string(text::trim(out));
}

Result<bool> OwnLogin::is_own(const Json& json) {
  if (login_.empty()) {
    WEIR_TRY(const ApiResponse answer, api_.get("/user"));
    login_ = is_success(answer) ? text_in(answer.body, "login") : "";
    if (login_.empty()) login_ = app_ + "[bot]";
  }
  return text::lower(text_in(member_or_null(json, "user"), "login")) == text::lower(login_);
}

void OwnLogin::learn(const Json& user) {
  if (login_.empty()) login_ = text_in(member_or_null(user, "user"), "login");
}

// Answers requests of a dry run in GitHub's place: a GET by what was created here before, others as
// if they were carried out. post() checks a comment by its id, so that is there; lists stay empty.
Result<ApiResponse> Rehearsal::call(const ApiRequest& request) {
  if (request.method == "GET") {
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const std::string id = "/comments/" + std::to_string(i + 1);
      if (request.path.size() < id.size() || !request.path.ends_with(id)) continue;
      Json body = sent_[i].body;
      body["id"] = i + 1;
      return ApiResponse{200, body};
    }
    if (request.path.find("/check-runs?") != std::string::npos) {
      return ApiResponse{200, {{"total_count", 0}, {"check_runs", Json::array()}}};
    }
    return ApiResponse{404, Json()};
  }
  sent_.push_back(request);
  Json body = request.body.is_object() ? request.body : Json::object();
  body["id"] = sent_.size();
  if (body.contains("labels")) {  // sent as names, answered as objects
    for (Json& label : body["labels"]) label = {{"name", Json(label)}};
  }
  return ApiResponse{request.method == "POST" ? 201 : 200, body};
}

Result<Json> Rehearsal::list(const std::string& /*path*/, std::size_t /*most*/) {
  return Json::array();
}

Json to_json(const std::vector<ApiRequest>& sent, const std::string& api_url) {
  Json array = Json::array();
  for (const ApiRequest& request : sent) {
    array.push_back(
        {{"method", request.method}, {"url", api_url + request.path}, {"body", request.body}});
  }
  return array;
}

}  // namespace weir::publish
