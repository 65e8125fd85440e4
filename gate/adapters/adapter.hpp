// An engine's output text -> EngineReport. One file a format, one line in the table (table.cpp).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/config/settings.hpp"
#include "gate/profile/record.hpp"

namespace weir::adapters {

// What a finished process printed (already within output_limit) and what it was asked for.
struct Output {
  std::string_view out, err;
  profile::Asked asked;
  std::string_view device;                         // what the backend asked for, "vulkan"
  const config::GenericOutput* generic = nullptr;  // for the generic adapter
  // Which values have to be there: times in a timed pass, counts in a counted one. Left out: any.
  std::optional<profile::Pass> pass;
  // Patterns of metrics of single ops that are wanted ("op:lm_head", "op_calls:gemv_*").
  std::span<const std::string> works{};
};

// Fails with Code::data when the text is not what this engine prints: empty, garbage, truncated,
// NaN, another number of results than asked for. The message is ready to show under a cell.
using Reader = Result<profile::EngineReport> (*)(const Output& output);

struct Adapter {
  std::string_view name;  // "llama-bench"
  std::string_view what;  // one line for people
  Reader read;
  // Programs `weir init` takes for this engine, and the command it writes for them.
  std::vector<std::string_view> programs;
  // Its engines tell counts: always, or in the counted pass where weir.yaml turns on (profile_args,
  // counted_env) what tells them. The generic one's are what its rules read.
  enum class Counts { none, asked, always } counts = Counts::none;
};

[[nodiscard]] const std::vector<Adapter>& table();
[[nodiscard]] const Adapter* find(std::string_view name);
[[nodiscard]] std::vector<std::string> names();

}  // namespace weir::adapters
