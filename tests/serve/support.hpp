// Runs a service on a history of its own, asked without a socket.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "gate/base/encode.hpp"
#include "gate/base/json.hpp"
#include "gate/serve/service.hpp"
#include "gate/sys/files.hpp"

#include "tests/history/support.hpp"

namespace weir::serve {

// A temporary folder, removed when the test passes.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-serve-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    if (!testing::Test::HasFailure()) std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

template <class Value>
Value value_of(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<Value>) return *std::move(result);
}

struct ClientRequest {
  Method method = Method::get;
  std::string target;
  std::string token{};
  std::string type{}, body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string peer = "192.0.2.1";
};

struct Reply {
  int status = 0;
  std::string body, type;
  std::vector<std::pair<std::string, std::string>> headers;
  [[nodiscard]] std::string header(const std::string& name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return "";
  }
  [[nodiscard]] Json json() const { return Json::parse(body); }
};

// An answer that may come later from another thread.
class Pending {
 public:
  Handler::Answer answer() {
    return [this](Response response) {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(response_) << "answered twice";
      response_ = std::move(response);
      came_.notify_all();
    };
  }
  Response wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return response_.has_value(); });
    return *response_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<Response> response_;
};

// Acts as the server: calls admit(), then passes the body on.
inline Request make_request(const ClientRequest& sent) {
  Request request;
  request.head.method = sent.method;
  request.head.target = value_of(parse_target(sent.target));
  request.head.peer = sent.peer;
  request.head.length = sent.body.size();
  if (!sent.token.empty())
    request.head.headers.emplace_back("authorization", "Bearer " + sent.token);
  if (!sent.type.empty()) request.head.headers.emplace_back("content-type", sent.type);
  for (const auto& header : sent.headers) request.head.headers.push_back(header);
  request.body = sent.body;
  return request;
}

inline Reply make_reply(const Response& response) {
  return {response.status, response.body ? *response.body : "", response.type, response.headers};
}

inline Reply ask(Handler& handler, const ClientRequest& sent) {
  Request request = make_request(sent);
  Admission admission = handler.admit(request.head);
  if (admission.refused) return make_reply(*admission.refused);
  EXPECT_LE(request.body.size(), admission.max_body_bytes);
  Pending pending;
  handler.handle(std::move(request), pending.answer());
  return make_reply(pending.wait());
}

// A clock that stands still until a test sets it.
class SetClock final : public sys::Clock {
 public:
  [[nodiscard]] double now() const override { return 1'795'167'015 + seconds; }  // 2026-11-20
  [[nodiscard]] double steady() const override { return seconds; }
  std::atomic<double> seconds{0};
};

class ServiceTest : public testing::Test {
 protected:
  std::unique_ptr<history::ServiceStore> store() {
    return value_of(history::open_service_store(history::parse_address(folder_ / "history.db")));
  }
  ServiceOptions options() {
    ServiceOptions options;
    options.open = [where = folder_ / "history.db"] {
      return history::open_service_store(history::parse_address(where));
    };
    options.version = "0.0.0";
    options.tokens_seconds = 3600;  // tests set it
    options.pages_seconds = 3600;
    options.log = [this](const RequestLine& line) {
      const std::lock_guard lock(log_mutex_);
      log_.push_back(line);
    };
    return options;
  }
  std::unique_ptr<Service> start(ServiceOptions options) {
    return value_of(Service::start(sys::RealFiles(), std::move(options)));
  }
  std::unique_ptr<Service> start(bool is_public = false) {
    ServiceOptions wanted = options();
    wanted.is_public = is_public;
    return start(std::move(wanted));
  }
  std::string token(const std::string& project, const std::string& scopes) {
    history::StoredToken wanted;
    wanted.project = project;
    wanted.scopes = scopes;
    const NewToken created = value_of(make_token(wanted));
    value_of(store()->add_token(created.stored));
    return created.text.reveal();
  }

  Folder folder_;
  std::mutex log_mutex_;
  std::vector<RequestLine> log_;
};

// Returns the output of `weir run --json` with a count and a time of a cell.
inline std::string profiles_text(int count, const std::string& cell = "llama.cpp/tiny/cpu/decode") {
  profile::Profile profile;
  profile.cell = value_of(profile::CellKey::parse(cell));
  profile.device = "cpu";
  profile.provenance.machine_name = "A processor, 2 cores, 4 GiB, debian 12";
  profile::Measurement dispatches;
  dispatches.metric = *unit::find_metric("dispatches_per_token");
  dispatches.nature = profile::Nature::exact;
  dispatches.source = "vulkan";
  dispatches.exact = Rational(count);
  profile.metrics["dispatches_per_token"] = dispatches;
  profile::Measurement rate;
  rate.metric = *unit::find_metric("decode_tokens_per_second");
  rate.source = "llama-bench";
  rate.samples = {10, 11, 12};
  profile.metrics["decode_tokens_per_second"] = rate;
  return dump_json(Json{{"schema", "weir.profiles/1"}, {"profiles", {write_fields(profile)}}});
}

inline ClientRequest make_upload(const std::string& token, const std::string& body,
                                 const std::string& target = "/api/v1/runs") {
  return {Method::post, target, token, "application/json", body};
}

}  // namespace weir::serve
