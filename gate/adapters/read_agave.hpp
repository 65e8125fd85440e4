// The per-token lines and the counters block of Agave's documentation. No version of it that was
// seen prints them; files in this shape may be offered all the same. Used by read_agave.cpp alone.
#pragma once

#include <string_view>

#include "gate/adapters/printed.hpp"
#include "gate/observed/observed.hpp"

namespace weir::adapters::agave {

// "Token 15: "world" (151ms)" among the lines.
[[nodiscard]] bool recognises_tokens(const Printed& printed);

class Tokens {
 public:
  explicit Tokens(observed::Observed& observed) : observed_(observed) {}
  // Whether the line belongs to a token or to the counters.
  bool take(std::string_view line);
  // `open`: the last line may have been cut.
  void finish(bool open);

 private:
  bool take_token(std::string_view line);
  bool take_counter(std::string_view line);
  bool take_part(std::string_view line);
  void add_layer(std::int64_t layer, double seconds, std::string_view list);
  void add(std::string_view name, double seconds, std::optional<std::int64_t> calls,
           std::optional<std::int64_t> layer, bool covers_others);

  observed::Observed& observed_;
  bool in_token_ = false, in_counters_ = false;
  bool last_was_counter_ = false;
};

}  // namespace weir::adapters::agave
