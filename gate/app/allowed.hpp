// What a gate's pull request was allowed: read from a branch (--allowances-ref), kept in the run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/source/git.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::app {

struct AllowedWanted {
  std::optional<std::string> ref;            // --allowances-ref
  std::optional<std::int64_t> pull_request;  // --pr; absent: of the event that a CI system tells of
};

struct Allowed {
  std::vector<verdict::Allowance> list;
  std::int64_t pull_request = 0;
  std::string head, today;
  std::vector<std::string> notes;  // why there are none
};
// Null where none is asked for. A branch that is not there yet, or no pull request, is a note: then
// nothing is allowed. Fails with Code::data on a file that is no list of allowances.
[[nodiscard]] Result<std::shared_ptr<const Allowed>> read_allowed(const AllowedWanted& wanted,
                                                                  const CommonOptions& options,
                                                                  const sys::Files& files);
// The allowances of one pull request, as `commit` has them.
[[nodiscard]] Result<std::vector<verdict::Allowance>> allowances_of(const source::Git& git,
                                                                    const std::string& commit,
                                                                    std::int64_t pull_request);

[[nodiscard]] Json to_json(const Allowed& allowed);
[[nodiscard]] Result<Allowed> allowed_from_json(const Json& json);

}  // namespace weir::app
