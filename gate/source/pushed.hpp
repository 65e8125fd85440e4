// What git tells a pre-push hook on its standard input: a line for each reference that is pushed.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::source {

struct Pushed {
  std::string local_ref;      // "refs/heads/topic"; "(delete)"; or as typed: "HEAD~1"
  std::string commit;         // what is pushed: of an annotated tag the tag; zeros for a deletion
  std::string remote_ref;     // "refs/heads/topic"
  std::string remote_commit;  // what is there now, maybe unknown here; zeros for a new reference

  [[nodiscard]] bool deletes() const { return is_zero(commit); }
  [[nodiscard]] bool is_new() const { return is_zero(remote_commit); }
  [[nodiscard]] bool branch() const { return remote_ref.starts_with("refs/heads/"); }

 private:
  [[nodiscard]] static bool is_zero(std::string_view id) {
    return id.find_first_not_of('0') == std::string_view::npos;
  }
};

// "LOCAL_REF LOCAL_ID REMOTE_REF REMOTE_ID" a line. Code::data for a line that is none.
[[nodiscard]] Result<std::vector<Pushed>> parse_pushed(std::string_view text);

}  // namespace weir::source
