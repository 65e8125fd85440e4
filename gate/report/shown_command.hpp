// A command line as it may be shown to others: no places, no prompts, no secrets. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::report {

enum class Private { hidden, shown };

// Words as a shell takes them, on one line. Of a path its last part stays; the value of an option
// for prompts or system prompts, and any word with white space in it or longer than 80 bytes, reads
// "<N bytes>". `shown` leaves all that as it is. What an option for keys, tokens or passwords is
// given is never shown, nor what stands behind "?" in an address.
[[nodiscard]] std::string shown_command(const std::vector<std::string>& words, Private how);

// The same for what was said: of absolute paths ("/a/b/c", "~/b/c") the last part stays.
[[nodiscard]] std::string without_places(std::string_view text);

}  // namespace weir::report
