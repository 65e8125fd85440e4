// Lists the faults by name: answers that GitHub and the gateways before it really send.
#include <fmt/format.h>

#include "gate/base/json.hpp"

#include "tests/publish/fault_server.hpp"

namespace weir::tests::faults {
namespace {

std::string message_body(const std::string& message) {
  return dump_json({{"message", message}, {"documentation_url", "https://docs.github.com/rest"}});
}

}  // namespace

Fault status(int status, const std::string& message, bool carried_out) {
  Fault fault;
  fault.status = status;
  fault.carried_out = carried_out;
  if (!message.empty()) fault.body = message_body(message);
  return fault;
}

Fault unauthorized() { return status(401, "Bad credentials"); }

Fault rate_limit(double reset) {
  Fault fault = status(403, "API rate limit exceeded for installation ID 1.");
  fault.headers = {{"X-RateLimit-Limit", "1000"},
                   {"X-RateLimit-Remaining", "0"},
                   {"X-RateLimit-Reset", fmt::format("{:.0f}", reset)}};
  return fault;
}

Fault secondary_limit(const std::string& retry_after) {
  Fault fault = status(403,
                       "You have exceeded a secondary rate limit. Please wait a few minutes before "
                       "you try again.");
  if (!retry_after.empty()) fault.headers = {{"Retry-After", retry_after}};
  return fault;
}

Fault too_many(const std::string& retry_after) {
  Fault fault = status(429, "Too many requests");
  if (!retry_after.empty()) fault.headers = {{"Retry-After", retry_after}};
  return fault;
}

Fault not_found() { return status(404, "Not Found"); }
Fault conflict() { return status(409, "Conflict"); }
Fault unprocessable(const std::string& message) { return status(422, message); }
Fault server_error(bool carried_out) { return status(500, "Server Error", carried_out); }

Fault bad_gateway(bool carried_out) {
  Fault fault = status(502, "", carried_out);
  fault.content_type = "text/html";
  fault.body = "<html>\n<head><title>502 Bad Gateway</title></head>\n<body>nginx</body></html>\n";
  return fault;
}

Fault unavailable(const std::string& retry_after) {
  Fault fault = status(503, "Service Unavailable");
  if (!retry_after.empty()) fault.headers = {{"Retry-After", retry_after}};
  return fault;
}

Fault never(bool carried_out) {
  Fault fault;
  fault.carried_out = carried_out;
  fault.how = Fault::How::never;
  return fault;
}

Fault cut(bool carried_out) {
  Fault fault;
  fault.carried_out = carried_out;
  fault.how = Fault::How::cut;
  return fault;
}

Fault half() {
  Fault fault;
  fault.carried_out = true;
  fault.how = Fault::How::half;
  return fault;
}

Fault drip(double pause) {
  Fault fault;
  fault.carried_out = true;
  fault.how = Fault::How::drip;
  fault.pause = pause;
  return fault;
}

Fault redirect(const std::string& location, int code) {
  Fault fault = status(code, "Moved");
  fault.headers = {{"Location", location}};
  return fault;
}

Fault html(int code) {
  Fault fault = status(code);
  fault.content_type = "text/html; charset=utf-8";
  fault.body = "<!DOCTYPE html>\n<html><title>Log in</title>\n::error::do not run this</html>\n";
  return fault;
}

Fault body(const std::string& text, const std::string& content_type) {
  Fault fault = status(200);
  fault.content_type = content_type;
  fault.body = text;
  return fault;
}

Fault endless_pages() {
  Fault fault = status(200);
  fault.body = R"([{"id": %COUNT%, "body": "item %COUNT%"}])";
  fault.headers = {{"Link", R"(<%URL%%PATH%?page=%NEXT%>; rel="next")"}};
  return fault;
}

Fault same_page() {
  Fault fault = status(200);
  fault.body = R"([{"id": 1, "body": "the same for ever"}])";
  fault.headers = {{"Link", R"(<%URL%%PATH%?page=%NEXT%>; rel="next")"}};
  return fault;
}

}  // namespace weir::tests::faults
