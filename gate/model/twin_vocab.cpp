#include "gate/model/twin_vocab.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace weir::model {
namespace {

constexpr std::string_view k_prefix = "tokenizer.ggml.";
constexpr std::uint64_t k_control = 3;  // token_type
constexpr std::uint64_t k_byte = 6;

bool names_token(std::string_view key) {
  return key.starts_with(k_prefix) && key.ends_with("_token_id");
}
bool names_tokens(std::string_view key) {
  return key.starts_with(k_prefix) && key.ends_with("_token_ids");
}

// For each token whether it stays; nothing when more than `left` can not be left out.
std::optional<std::vector<bool>> choose(std::uint64_t vocab, std::uint64_t left,
                                        const GgufHeader& header) {
  std::vector<bool> stays(vocab, false);
  std::uint64_t count = 0;
  const auto keep = [&](std::uint64_t id) {
    if (id >= vocab || stays[id]) return;
    stays[id] = true;
    ++count;
  };
  for (const auto& [key, value] : header.metadata) {
    if (names_token(key)) keep(value.to_unsigned().value_or(vocab));
    if (!names_tokens(key)) continue;
    for (const std::uint64_t id : value.to_unsigned_list().value_or(std::vector<std::uint64_t>{})) {
      keep(id);
    }
  }
  const GgufValue* types = header.find("tokenizer.ggml.token_type");
  std::vector<std::uint64_t> kinds;
  if (types != nullptr) kinds = types->to_unsigned_list().value_or(std::vector<std::uint64_t>{});
  const auto keep_kind = [&](std::uint64_t kind, std::uint64_t most) {
    for (std::uint64_t id = 0; id < std::min<std::uint64_t>(kinds.size(), vocab); ++id) {
      if (kinds[id] == kind && most > 0) {
        --most;
        keep(id);
      }
    }
  };
  keep_kind(k_byte, vocab);
  keep_kind(k_control, left / 8);  // some vocabularies reserve thousands
  if (count > left) return std::nullopt;
  for (std::uint64_t id = 0; id < vocab && count < left; ++id) keep(id);
  return stays;
}

// A merge "a b" can only be applied while a, b and ab are tokens.
GgufValue kept_merges(const GgufValue& merges, const std::unordered_set<std::string>& tokens) {
  const auto all = merges.to_string_list();
  if (!all) return merges;
  std::vector<std::string> kept;
  for (const std::string& merge : *all) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string::npos) continue;
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    if (tokens.contains(left) && tokens.contains(right) && tokens.contains(left + right)) {
      kept.push_back(merge);
    }
  }
  return GgufValue::strings(kept);
}

}  // namespace

std::uint64_t shrink_vocab(std::uint64_t vocab, std::uint64_t limit, GgufHeader& header) {
  if (limit == 0 || vocab <= limit) return vocab;
  // A multiple of the same power of two as before, where kernels look at that.
  std::uint64_t left = limit;
  while (left > 1 && std::gcd(left, std::uint64_t{256}) != std::gcd(vocab, std::uint64_t{256})) {
    --left;
  }
  const auto stays = choose(vocab, left, header);
  if (!stays) return vocab;
  std::vector<std::uint64_t> kept;
  std::vector<std::uint64_t> new_id(vocab, 0);
  for (std::uint64_t id = 0; id < vocab; ++id) {
    if (!(*stays)[id]) continue;
    new_id[id] = kept.size();
    kept.push_back(id);
  }

  std::unordered_set<std::string> tokens;
  for (auto& [key, value] : header.metadata) {
    if (!key.starts_with(k_prefix)) continue;
    if (names_token(key)) {
      const auto id = value.to_unsigned();
      if (id && *id < vocab) value = value.with_unsigned(new_id[*id]).value_or(value);
    } else if (names_tokens(key)) {
      auto ids = value.to_unsigned_list().value_or(std::vector<std::uint64_t>{});
      std::erase_if(ids, [&](std::uint64_t id) { return id >= vocab; });
      for (std::uint64_t& id : ids) id = new_id[id];
      value = value.with_unsigned_list(ids).value_or(value);
    } else if (value.is_array() && value.count() == vocab) {
      value = value.picked(kept);
    }
    if (key == "tokenizer.ggml.tokens") {
      const auto names = value.to_string_list().value_or(std::vector<std::string>{});
      tokens.insert(names.begin(), names.end());
    }
  }
  for (auto& [key, value] : header.metadata) {
    if (key == "tokenizer.ggml.merges") value = kept_merges(value, tokens);
  }
  return kept.size();
}

}  // namespace weir::model
