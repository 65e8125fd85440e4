// Tokens: who may read or upload which projects. "weir_", 12 hexadecimal digits that name it, "_",
// and 48 that nobody can guess (192 bits of the system's random source). The store keeps the
// SHA-256 of it, which is enough for a secret of that length.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gate/base/secret.hpp"
#include "gate/history/service_store.hpp"

namespace weir::serve {

enum class Scope { read, upload, admin };
[[nodiscard]] std::string_view to_string(Scope scope);  // "read", "upload", "admin"
[[nodiscard]] std::optional<Scope> parse_scope(std::string_view word);

struct NewToken {
  history::StoredToken stored;
  Secret text;  // shown once
};
// Of `wanted` all but id and hash. Code::io where the system has no randomness to give.
[[nodiscard]] Result<NewToken> make_token(history::StoredToken wanted);

// The id of a text that has the form of a token.
[[nodiscard]] std::optional<std::string> id_of_token(std::string_view text);

// 64 hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
// Takes the same time for any two texts of the same length.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b);

// Is it good at `now`: neither expired nor revoked?
[[nodiscard]] bool is_good(const history::StoredToken& token, double now);
// May it do that with that project? `admin` may do all. One scope does not hold another.
[[nodiscard]] bool allows(const history::StoredToken& token, Scope scope, std::string_view project);
// … with every project, also those to come?
[[nodiscard]] bool allows_all(const history::StoredToken& token, Scope scope);

// What an Authorization header brings along.
struct Credential {
  std::string text;    // of the token; Basic: the password
  bool basic = false;  // a browser may send it unasked
};
// Nothing where there is no such header, or it is of another kind.
[[nodiscard]] std::optional<Credential> credential_of(const std::string* authorization);

}  // namespace weir::serve
