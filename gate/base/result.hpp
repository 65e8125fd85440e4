// How expected failures travel: Result<T> holds a value or an Error.
//
// Exceptions from libraries are caught where that library is contained and become an Error there.
// Each layer adds its place once, in words (add_prefix). A doubt about data is not an Error: it
// is a warning inside the result. Functions returning Result must be marked [[nodiscard]].
#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

namespace weir {

// Kinds of failures; the app turns them into exit codes (usage and config: 2, the rest: 3).
enum class Code {
  usage,        // the command line is wrong
  config,       // weir.yaml, or something it names, is wrong
  data,         // text from a file, an engine or the network is not what it should be
  io,           // the operating system refused
  unavailable,  // a device, program or probe is not there
  interrupted,  // Ctrl-C or SIGTERM
  internal,     // a fault in weir itself
};

struct Error {
  Code code = Code::internal;
  // One or more lines without a final newline: what, where, and what to do about it.
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

// return fail(Code::data, "{}: not a number: \"{}\"", where, text);
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(Code code, fmt::format_string<Args...> format,
                                         Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// Puts "place: " before the message.
[[nodiscard]] inline Error add_prefix(std::string_view prefix, Error error) {
  error.message = fmt::format("{}: {}", prefix, error.message);
  return error;
}
// The same for map_error().
[[nodiscard]] inline auto with_prefix(std::string prefix) {
  return [prefix = std::move(prefix)](Error error) { return add_prefix(prefix, std::move(error)); };
}

}  // namespace weir

// WEIR_TRY(auto x, f()); declares x from the value of f(), or returns its Error.
#define WEIR_CONCAT_INNER(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_INNER(a, b)
#define WEIR_TRY_IMPL(temporary, declaration, expression)              \
  auto temporary = (expression);                                       \
  if (!temporary) return tl::unexpected(std::move(temporary).error()); \
  declaration = std::move(temporary).value()
#define WEIR_TRY(declaration, expression) \
  WEIR_TRY_IMPL(WEIR_CONCAT(weir_try_, __LINE__), declaration, expression)

// if (c) WEIR_TRY_SET(x, f()); the same for an x that is there, as one statement.
#define WEIR_TRY_SET(place, expression)         \
  do {                                          \
    WEIR_TRY_IMPL(weir_set, place, expression); \
  } while (false)

// WEIR_CHECK(f()); returns the Error of f(), or goes on (its value is dropped).
#define WEIR_CHECK(expression)                                \
  do {                                                        \
    if (auto weir_checked = (expression); !weir_checked)      \
      return tl::unexpected(std::move(weir_checked).error()); \
  } while (false)
