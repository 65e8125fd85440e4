// The token that a server asks for: out of weir's environment, and in no file. Pure.
#pragma once

#include <string>

#include "gate/base/result.hpp"
#include "gate/base/secret.hpp"

namespace weir::run {

// What the variable that token_env names holds, empty where it is not set. Fails with Code::config,
// saying what to do, where no request can be sent with it; the token is in no error.
[[nodiscard]] Result<Secret> server_token(const std::string& variable, Secret held);

}  // namespace weir::run
