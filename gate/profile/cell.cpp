// Reads and writes the names of cells.
#include "gate/profile/cell.hpp"

#include <algorithm>

#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

constexpr std::size_t k_longest_name = 64;
constexpr std::size_t k_longest_cell = 8 * k_longest_name;
constexpr std::string_view k_default_variant = "default";

// Parses a prompt with context depth, concurrency and threads: "chat@d256@c4@t2", in that order.
// Returns false unless str() would write the same text.
bool parse_prompt(std::string_view part, CellKey& key) {
  const std::vector<std::string> pieces = text::split(part, '@');
  if (pieces.empty() || pieces.size() > 4) return false;
  key.prompt = pieces[0];
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::string& piece = pieces[i];
    if (key.threads) return false;
    if (piece == "tall") {
      key.threads = 0;  // all threads
      continue;
    }
    const std::string digits = piece.substr(std::min<std::size_t>(1, piece.size()));
    const auto number = text::to_int(digits);
    if (!number || *number < 0 || digits != std::to_string(*number)) return false;
    if (piece[0] == 'd' && !key.depth && !key.concurrency) {
      key.depth = *number;
    } else if (piece[0] == 'c' && !key.concurrency) {
      key.concurrency = *number;
    } else if (piece[0] == 't' && *number > 0) {
      key.threads = *number;
    } else {
      return false;
    }
  }
  return valid_name(key.prompt);
}

// Parses "llama.cpp" or "llama.cpp@fused"; the default variant must not be written.
bool parse_engine(std::string_view part, CellKey& key) {
  const std::size_t at_sign = part.find('@');
  key.engine = part.substr(0, at_sign);
  if (at_sign != std::string_view::npos) {
    key.variant = part.substr(at_sign + 1);
    if (key.variant == k_default_variant) return false;
  }
  return valid_name(key.engine) && valid_name(key.variant);
}

}  // namespace

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > k_longest_name || !text::is_alphanumeric(name.front())) {
    return false;
  }
  return std::ranges::all_of(
      name, [](char c) { return text::is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

CellKey CellKey::line() const {
  CellKey line = *this;
  line.depth.reset();
  return line;
}

std::string CellKey::engine_part() const {
  return variant == k_default_variant ? engine : engine + "@" + variant;
}

std::string CellKey::prompt_part() const {
  std::string part = prompt;
  if (depth) part += fmt::format("@d{}", *depth);
  if (concurrency) part += fmt::format("@c{}", *concurrency);
  if (!threads) return part;
  if (*threads == 0) return part + "@tall";
  return part + fmt::format("@t{}", *threads);
}

std::string CellKey::str() const {
  return fmt::format("{}/{}/{}/{}", engine_part(), model, backend, prompt_part());
}

// Parses the name of a benchmark cell, "engine/model/backend/prompt".
Result<CellKey> CellKey::parse(std::string_view text) {
  CellKey key;
  std::vector<std::string> parts;
  if (text.size() <= k_longest_cell) parts = text::split(text, '/');
  if (parts.size() == 4) {
    key.model = parts[1];
    key.backend = parts[2];
    if (parse_engine(parts[0], key) && valid_name(key.model) && valid_name(key.backend) &&
        parse_prompt(parts[3], key)) {
      return key;
    }
  }
  return fail(Code::data, "\"{}\" is not a cell (engine/model/backend/prompt)",
              text::printable(text.substr(0, 300)));
}

}  // namespace weir::profile
