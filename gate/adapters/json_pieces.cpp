// Reads JSON of any size by pieces.
#include "gate/adapters/json_pieces.hpp"

#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

// Replaces bare words such as NaN and inf by null. Some programs write them, but JSON has none.
std::string replace_bare_words(std::string_view piece) {
  std::string result;
  bool in_string = false;
  for (std::size_t at = 0; at < piece.size();) {
    const char c = piece[at];
    if (in_string || !(text::is_letter(c) || c == '-')) {
      result += c;
      if (in_string && c == '\\' && at + 1 < piece.size()) {
        ++at;
        result += piece[at];
      }
      if (c == '"') in_string = !in_string;
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < piece.size() && text::is_letter(piece[end])) ++end;
    const std::string word = text::lower(piece.substr(at, end - at));
    const std::string_view bare = std::string_view(word).substr(word[0] == '-' ? 1 : 0);
    const bool is_no_number = bare == "nan" || bare == "inf" || bare == "infinity";
    result += is_no_number ? std::string_view("null") : piece.substr(at, end - at);
    at = end;
  }
  return result;
}

constexpr std::size_t k_largest = std::size_t{1} << 20;
constexpr std::string_view k_blank = " \t\r\n";

// Returns true if the text after the bracket at `at` is JSON rather than a log line's "[info]" or
// "{model}".
bool looks_like_json(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(k_blank, at + 1);
  if (next == std::string_view::npos) return true;  // cut off right after the bracket
  return text[next] == '{' || text[next] == '"';
}

}  // namespace

JsonPieces::JsonPieces(std::vector<std::string> lists, Takers takers, JsonPieceLimits limits)
    : lists_(std::move(lists)), takers_(std::move(takers)), limits_(limits) {}

// Follows quotes, escapes and brackets byte by byte, from the state that earlier text left. Returns
// the value's end in `text`, npos if it goes on.
std::size_t JsonValueEnd::find(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    // Skip to the next byte that matters within a string; most bytes are skipped here.
    if (in_text && !escaped) at = std::min(text.find_first_of("\"\\", at), text.size() - 1);
    const char c = text[at];
    if (in_text) {
      in_text = escaped || c != '"';
      escaped = !escaped && c == '\\';
      if (!in_text && depth == 0) return at + 1;
    } else if (scalar && depth == 0 && (c == ',' || c == '}' || c == ']')) {
      return at;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
      if (depth == 0) return at + 1;
    }
  }
  return std::string_view::npos;
}

// Adds the chunk to the buffer, slice by slice, and takes all pieces that are complete.
void JsonPieces::feed(std::string_view chunk) {
  // Slices bound the size of the copy. Larger slices cut fewer pieces in two.
  constexpr std::size_t k_slice = std::size_t{256} << 10;
  while (!chunk.empty()) {
    buffer_.append(chunk.substr(0, k_slice));
    chunk.remove_prefix(std::min(chunk.size(), k_slice));
    while (step()) {
    }
    buffer_.erase(0, at_);
    at_ = 0;
  }
}

// Goes on by one token or piece. Returns false when more text is needed.
bool JsonPieces::step() {
  if (state_ == State::in_key || state_ == State::in_value || state_ == State::in_element) {
    return scan_piece();
  }
  if (state_ == State::element_or_end && takers_.many) {
    at_ += takers_.many(list_, std::string_view(buffer_).substr(at_));
  }
  skip_to_next();
  if (at_ == buffer_.size()) return false;
  const char c = buffer_[at_];
  if (state_ == State::between) return find_document();
  if (state_ == State::text) {
    state_ = State::between;
  } else if (state_ == State::key_or_end) {
    if (c == '"') {
      begin_piece(State::in_key);
    } else {
      end_object();
    }
  } else if (state_ == State::colon) {
    if (c == ':') {
      ++at_;
      state_ = State::value;
    } else {
      ++losses_.broken;
      state_ = State::key_or_end;
    }
  } else if (state_ == State::value) {
    if (c != '[' || std::ranges::find(lists_, key_) == lists_.end()) {
      begin_piece(State::in_value);
    } else {
      list_ = key_;
      ++at_;
      state_ = State::element_or_end;
    }
  } else if (c == ']') {
    ++at_;
    state_ = in_object_ ? State::key_or_end : State::between;
  } else if (c == '}') {  // no element begins with it: a bracket is missing
    ++losses_.broken;
    if (in_object_) {
      end_object();
    } else {
      ++at_;
    }
  } else {
    begin_piece(State::in_element);
  }
  return true;
}

// Moves at_ to the next byte that matters in this state, or to the end of the buffer.
void JsonPieces::skip_to_next() {
  if (state_ == State::text) {
    at_ = buffer_.find('\n', at_);
  } else if (state_ == State::key_or_end) {
    at_ = buffer_.find_first_of("\"}", at_);  // anything else between members is skipped
  } else if (state_ == State::element_or_end) {
    at_ = buffer_.find_first_not_of(" \t\r\n,", at_);
  } else {
    at_ = buffer_.find_first_not_of(k_blank, at_);
  }
  at_ = std::min(at_, buffer_.size());
}

// Checks if a line begins with a document rather than with a log line's "[info]" or "{model}", by
// the text after the bracket.
bool JsonPieces::find_document() {
  const bool is_array = buffer_[at_] == '[';
  state_ = State::text;
  if (!is_array && buffer_[at_] != '{') return true;
  const std::size_t next = buffer_.find_first_not_of(k_blank, at_ + 1);
  if (next == std::string::npos) {
    state_ = State::between;
    buffer_.resize(at_ + 1);
    return false;
  }
  if (std::string_view(is_array ? "{[]" : "\"}").find(buffer_[next]) == std::string_view::npos) {
    return true;
  }
  state_ = is_array ? State::element_or_end : State::key_or_end;
  at_ = next;
  ++losses_.documents;
  list_.clear();
  in_object_ = !is_array;
  members_ = Json::object();
  members_size_ = 0;
  return true;
}

void JsonPieces::begin_piece(State state) {
  state_ = state;
  searched_ = 0;
  keep_piece_ = true;
  end_ = {};
  end_.scalar = std::string_view("{[\"").find(buffer_[at_]) == std::string_view::npos;
}

// Searches the end of the present piece. Of a piece that is too long only a beginning is kept.
bool JsonPieces::scan_piece() {
  constexpr std::size_t k_beginning = 257;  // the longest name with its quote
  const std::size_t end = end_.find(std::string_view(buffer_).substr(at_ + searched_));
  searched_ = end == std::string::npos ? buffer_.size() - at_ : searched_ + end;
  if (searched_ > limits_.piece_bytes || end_.deepest > limits_.depth) keep_piece_ = false;
  if (end != std::string::npos) {
    end_piece(std::string_view(buffer_).substr(at_, searched_));
    at_ += searched_;
    return true;
  }
  if (!keep_piece_) searched_ = std::min(searched_, k_beginning);
  buffer_.resize(at_ + searched_);
  return false;
}

// Handles a complete piece: a member's key in quotes, a member's value or an element of a list.
void JsonPieces::end_piece(std::string_view piece) {
  constexpr std::size_t k_max_key_bytes = 256;
  if (state_ == State::in_key) {
    const std::size_t size_without_quotes = piece.size() - 2;
    key_ = piece.substr(1, std::min(size_without_quotes, k_max_key_bytes));
    state_ = State::colon;
    return;
  }
  const bool is_member = state_ == State::in_value;
  state_ = is_member ? State::key_or_end : State::element_or_end;
  if (!keep_piece_) {
    ++losses_.too_long;
    return;
  }
  // Replacing bare words (NaN, as Python writes it) may make the text longer.
  const JsonLimits limits{limits_.piece_bytes * 2, limits_.depth};
  auto json = parse_json(piece, limits);
  if (!json) json = parse_json(replace_bare_words(piece), limits);
  if (!json) {
    ++losses_.broken;
    return;
  }
  if (!is_member) return takers_.element(list_, std::move(*json));
  members_size_ += piece.size();
  if (members_size_ > limits_.members_bytes) {
    ++losses_.too_long;
    return;
  }
  members_[key_] = std::move(*json);
}

void JsonPieces::end_object() {
  ++at_;
  state_ = State::between;
  in_object_ = false;
  takers_.members(std::exchange(members_, Json::object()));
}

void JsonPieces::finish() {
  // A bracket at the very end begins a document.
  const bool ends_in_bracket = state_ == State::between && !buffer_.empty();
  if (ends_in_bracket) ++losses_.documents;
  losses_.cut = ends_in_bracket || (state_ != State::between && state_ != State::text);
  if (losses_.cut && in_object_) end_object();
  state_ = State::between;
}

// Parses each text that begins a line with '{' or '[' and goes to the matching bracket, and passes
// it to `take`. Returns the first fault.
std::optional<std::string> for_each_document(
    std::string_view text, const std::function<bool(const Json& document)>& take) {
  std::optional<std::string> first;
  const auto broken = [&](std::size_t at, std::string why) {
    if (!first && looks_like_json(text, at)) first = std::move(why);
  };
  // An unclosed bracket makes the search go on to the end of the text. All searches together may
  // cost a few times the text, so that hostile text does not take quadratic time.
  std::size_t budget = 8 * text.size() + k_largest;
  std::size_t line = 0;
  while (line < text.size()) {
    const std::size_t line_end = std::min(text.find('\n', line), text.size());
    const std::size_t at = text.find_first_not_of(" \t\r", line);
    const std::size_t from = line;
    line = line_end + 1;
    if (at == std::string_view::npos || at >= line_end || (text[at] != '{' && text[at] != '[')) {
      continue;
    }
    const std::size_t length = JsonValueEnd().find(text.substr(at, std::min(k_largest, budget)));
    const std::size_t end = length == std::string_view::npos ? length : at + length;
    const std::size_t searched = std::min(end, text.size()) - from;
    budget -= std::min(budget, std::min(searched, k_largest));
    if (budget == 0) return first.value_or("too much of it looks like JSON that never ends");
    if (end == std::string_view::npos) {
      broken(at, "it stops in the middle (a bracket is not closed)");
      continue;
    }
    const auto document = parse_json(text.substr(at, end - at), {k_largest, 64});
    if (!document) {
      broken(at, document.error().message);
      continue;
    }
    if (!take(*document)) return first;
    // Go on after this line; further documents on it are skipped.
    line = std::min(text.find('\n', end), text.size());
    if (line < text.size()) ++line;
  }
  return first;
}

}  // namespace weir::adapters
