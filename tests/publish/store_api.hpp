// Api on the tests' own GitHub without a network, with injected faults.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gate/publish/api.hpp"

#include "tests/publish/wire.hpp"

namespace weir::tests {

class StoreApi final : public publish::Api {
 public:
  // Fault of a request, before the store sees it (carried_out: after). Nothing means no fault.
  struct Wrong {
    Error error;
    bool carried_out = false;
  };

  explicit StoreApi(GithubStore& store) : store_(store) {}
  // Called before each request; a test may run other posters here.
  std::function<void(const publish::ApiRequest&)> before;
  std::function<std::optional<Wrong>(const publish::ApiRequest&)> wrong;
  std::vector<publish::ApiRequest> requests;

  Result<publish::ApiResponse> call(const publish::ApiRequest& request) override {
    if (before) before(request);
    requests.push_back(request);
    const auto fault = wrong ? wrong(request) : std::nullopt;
    if (fault && !fault->carried_out) return tl::unexpected(fault->error);
    const StoreAnswer answer = store_.answer(as_store_sees(request));
    if (fault) return tl::unexpected(fault->error);
    const bool tells = answer.status < 300 || answer.status == 403 || answer.status == 404 ||
                       answer.status == 409 || answer.status == 422;
    if (!tells) return fail(Code::unavailable, "HTTP {}", answer.status);
    return publish::ApiResponse{answer.status, answer.body};
  }

  Result<Json> list(const std::string& path, std::size_t max_items) override {
    Json all = Json::array();
    for (std::int64_t page = 1; page > 0;) {
      const char joint = path.find('?') == std::string::npos ? '?' : '&';
      const publish::ApiRequest request{
          .method = "GET", .path = fmt::format("{}{}per_page=100&page={}", path, joint, page)};
      if (before) before(request);
      requests.push_back(request);
      const auto fault = wrong ? wrong(request) : std::nullopt;
      if (fault) return tl::unexpected(fault->error);
      const StoreAnswer answer = store_.answer(as_store_sees(request));
      if (answer.status != 200) return fail(Code::unavailable, "HTTP {}", answer.status);
      for (const Json& item : answer.body) all.push_back(item);
      if (all.size() > max_items) return fail(Code::data, "more than {}", max_items);
      page = answer.next_page;
    }
    return all;
  }

  // Returns the number of requests that changed something.
  [[nodiscard]] int writes() const {
    int number = 0;
    for (const auto& request : requests) number += request.method == "GET" ? 0 : 1;
    return number;
  }

 private:
  static StoreRequest as_store_sees(const publish::ApiRequest& request) {
    return store_request({.method = request.method,
                          .target = request.path,
                          .body = request.body.is_null() ? "" : dump_json(request.body)});
  }

  GithubStore& store_;
};

}  // namespace weir::tests
