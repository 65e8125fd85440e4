#include "gate/run/server_token.hpp"

#include <algorithm>

namespace weir::run {

Result<Secret> server_token(const std::string& variable, Secret held) {
  if (held.empty()) {
    return fail(Code::config,
                "the environment has no {} (token_env), or nothing in it; set it to the server's "
                "token, or take token_env out",
                variable);
  }
  const std::string& text = held.reveal();
  // What a header can hold; a file's last line break is the usual one that can not.
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
    return fail(Code::config,
                "{} (token_env) holds a line break, a space or another character that no token "
                "has; set it to the token alone",
                variable);
  }
  if (text.size() < Masker::k_shortest) {
    return fail(Code::config,
                "{} (token_env) has fewer than {} characters: too few to be kept out of what a "
                "server says back",
                variable, Masker::k_shortest);
  }
  return held;
}

}  // namespace weir::run
