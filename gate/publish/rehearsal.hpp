// An Api that sends nothing: what would be sent, where GitHub had nothing of ours yet.
#pragma once

#include <vector>

#include "gate/publish/api.hpp"

namespace weir::publish {

class Rehearsal final : public Api {
 public:
  // Answers as GitHub does to requests that are fine, and remembers those that change something.
  [[nodiscard]] Result<ApiResponse> call(const ApiRequest& request) override;
  // Only what was created here before.
  [[nodiscard]] Result<Json> list(const std::string& path, std::size_t most) override;

  [[nodiscard]] const std::vector<ApiRequest>& sent() const { return sent_; }

 private:
  std::vector<ApiRequest> sent_;
};

// [{"method": "POST", "url": "https://api.github.com/repos/…", "body": {…}}, …]
[[nodiscard]] Json to_json(const std::vector<ApiRequest>& sent, const std::string& api_url);

}  // namespace weir::publish
