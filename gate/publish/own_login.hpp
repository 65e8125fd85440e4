// Whose token this is: of what bears weir's marker, only what this login wrote is edited. Anybody
// may write the marker.
#pragma once

#include <string>

#include "gate/publish/api.hpp"

namespace weir::publish {

class OwnLogin {
 public:
  explicit OwnLogin(Api& api) : api_(api) {}

  // Whether `json` (an issue, a comment: {"user": {"login", "type"}}) is ours. Asked of the API
  // once. A token of an installation (the runner's own) may not ask: then a bot's is taken for
  // ours, which people can not write.
  [[nodiscard]] Result<bool> wrote(const Json& json);
  // The answer to a creation tells it too.
  void learn(const Json& made);

 private:
  Api& api_;
  std::string login_;  // "": not known
  bool may_not_ask_ = false;
};

}  // namespace weir::publish
