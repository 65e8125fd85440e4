#include "gate/publish/own_login.hpp"

#include "gate/base/text.hpp"
#include "gate/publish/answers.hpp"

namespace weir::publish {

Result<bool> OwnLogin::wrote(const Json& json) {
  if (login_.empty() && !may_not_ask_) {
    WEIR_TRY(const ApiResponse answer, api_.call({.method = "GET", .path = "/user"}));
    login_ = fine(answer) ? text_in(answer.body, "login") : "";
    may_not_ask_ = login_.empty();
  }
  const Json& user = below(json, "user");
  if (login_.empty()) return text_in(user, "type") == "Bot";
  return text::lower(text_in(user, "login")) == text::lower(login_);
}

void OwnLogin::learn(const Json& made) {
  if (login_.empty()) login_ = text_in(below(made, "user"), "login");
}

}  // namespace weir::publish
