// Bodies of uploads as what a history keeps. Pure; bodies are hostile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/history/documents.hpp"

namespace weir::serve {

inline constexpr std::uint64_t k_max_upload_bytes = std::uint64_t{16} << 20;  // bytes of a body
inline constexpr std::size_t k_max_upload_values = 500'000;  // in a JSON document, or line
inline constexpr std::size_t k_max_upload_runs = 10'000;     // in JSON lines
// Bytes of runs as history::weight() counts them, and of verdicts.
inline constexpr std::size_t k_max_upload_weight = std::size_t{8} << 20;

enum class UploadType { document, lines };
// "application/json" and "application/x-ndjson", with parameters; nothing for others.
[[nodiscard]] std::optional<UploadType> upload_type(std::string_view content_type);

struct ParsedUpload {
  history::Batch batch;
  // Profiles of a weir.profiles/1 document, which can be judged.
  std::vector<profile::Profile> profiles;
  // Every project that something of it belongs to.
  std::vector<std::string> projects;
  // Acknowledgements, which say what others are to think of a history.
  bool has_acknowledgements = false;
  std::size_t weight = 0;  // of the batch, as k_max_upload_weight limits it
};

// A weir.profiles/1 or weir.verdict/1 document belongs to facts.project. Lines of weir.history/1
// say themselves whose they are, when and where: given facts besides the project are Code::usage
// then, and with `project_given` all of them have to be that one's. Errors: Code::data, or
// Code::usage for facts.
[[nodiscard]] Result<ParsedUpload> parse_upload(UploadType type, std::string_view body,
                                                const history::SenderFacts& facts,
                                                bool project_given,
                                                const history::TimeContext& time_context);

}  // namespace weir::serve
