#include "gate/adapters/json_pieces.hpp"

#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

// Some programs write NaN, inf and the like as bare words, which is no JSON: null in their place.
std::string without_bare_words(std::string_view piece) {
  std::string made;
  bool in_string = false;
  for (std::size_t at = 0; at < piece.size();) {
    const char c = piece[at];
    if (in_string || !(text::is_letter(c) || c == '-')) {
      made += c;
      if (in_string && c == '\\' && at + 1 < piece.size()) made += piece[++at];
      if (c == '"') in_string = !in_string;
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < piece.size() && text::is_letter(piece[end])) ++end;
    const std::string word = text::lower(piece.substr(at, end - at));
    const std::string_view bare = std::string_view(word).substr(word[0] == '-' ? 1 : 0);
    const bool none = bare == "nan" || bare == "inf" || bare == "infinity";
    made += none ? std::string_view("null") : piece.substr(at, end - at);
    at = end;
  }
  return made;
}

constexpr std::size_t k_largest = std::size_t{1} << 20;
constexpr std::string_view k_blank = " \t\r\n";

// What follows the bracket tells JSON from a log line's "[info]" or "{model}".
bool looks_like_json(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(k_blank, at + 1);
  if (next == std::string_view::npos) return true;  // cut off right behind the bracket
  return text[next] == '{' || text[next] == '"';
}

}  // namespace

JsonPieces::JsonPieces(std::vector<std::string> lists, Takers takers, JsonPieceLimits limits)
    : lists_(std::move(lists)), takers_(std::move(takers)), limits_(limits) {}

std::size_t JsonValueEnd::find(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    // Within a text nothing but its end matters: most bytes go here at once.
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

void JsonPieces::feed(std::string_view chunk) {
  // A long text is not held twice; and what a slice cuts in two takes longer.
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

bool JsonPieces::step() {
  if (where_ == Where::in_key || where_ == Where::in_value || where_ == Where::in_element) {
    return in_piece();
  }
  if (where_ == Where::element_or_end && takers_.many) {
    at_ += takers_.many(list_, std::string_view(buffer_).substr(at_));
  }
  // Between members what is neither a name nor the end is passed over.
  at_ = where_ == Where::text             ? buffer_.find('\n', at_)
        : where_ == Where::key_or_end     ? buffer_.find_first_of("\"}", at_)
        : where_ == Where::element_or_end ? buffer_.find_first_not_of(" \t\r\n,", at_)
                                          : buffer_.find_first_not_of(k_blank, at_);
  at_ = std::min(at_, buffer_.size());
  if (at_ == buffer_.size()) return false;
  const char c = buffer_[at_];
  if (where_ == Where::between) return between();
  if (where_ == Where::text) {
    where_ = Where::between;
  } else if (where_ == Where::key_or_end) {
    if (c == '"') {
      begin_piece(Where::in_key);
    } else {
      end_object();
    }
  } else if (where_ == Where::colon) {
    at_ += c == ':' ? 1 : 0;
    losses_.broken += c == ':' ? 0 : 1;
    where_ = c == ':' ? Where::value : Where::key_or_end;
  } else if (where_ == Where::value) {
    if (c != '[' || std::ranges::find(lists_, key_) == lists_.end()) {
      begin_piece(Where::in_value);
    } else {
      list_ = key_;
      ++at_;
      where_ = Where::element_or_end;
    }
  } else if (c == ']') {
    ++at_;
    where_ = in_object_ ? Where::key_or_end : Where::text;
  } else if (c == '}') {  // no element begins with it: a bracket is missing
    ++losses_.broken;
    if (in_object_) {
      end_object();
    } else {
      ++at_;
    }
  } else {
    begin_piece(Where::in_element);
  }
  return true;
}

// What follows its bracket tells a document from a log line's "[info]" or "{model}".
bool JsonPieces::between() {
  const bool array = buffer_[at_] == '[';
  where_ = Where::text;
  if (!array && buffer_[at_] != '{') return true;
  const std::size_t next = buffer_.find_first_not_of(k_blank, at_ + 1);
  if (next == std::string::npos) {
    where_ = Where::between;
    buffer_.resize(at_ + 1);
    return false;
  }
  if (std::string_view(array ? "{[]" : "\"}").find(buffer_[next]) == std::string_view::npos) {
    return true;
  }
  where_ = array ? Where::element_or_end : Where::key_or_end;
  at_ = next;
  ++losses_.documents;
  list_.clear();
  in_object_ = !array;
  members_ = Json::object();
  members_size_ = 0;
  return true;
}

void JsonPieces::begin_piece(Where where) {
  where_ = where;
  looked_ = 0;
  keep_piece_ = true;
  end_ = {};
  end_.scalar = std::string_view("{[\"").find(buffer_[at_]) == std::string_view::npos;
}

bool JsonPieces::in_piece() {
  constexpr std::size_t k_beginning = 257;  // of what is too long: as much as a name may have
  const std::size_t end = end_.find(std::string_view(buffer_).substr(at_ + looked_));
  looked_ = end == std::string::npos ? buffer_.size() - at_ : looked_ + end;
  if (looked_ > limits_.piece_bytes || end_.deepest > limits_.depth) keep_piece_ = false;
  if (end != std::string::npos) {
    end_piece(std::string_view(buffer_).substr(at_, looked_));
    at_ += looked_;
    return true;
  }
  if (!keep_piece_) looked_ = std::min(looked_, k_beginning);
  buffer_.resize(at_ + looked_);
  return false;
}

void JsonPieces::end_piece(std::string_view piece) {
  if (where_ == Where::in_key) {
    key_ = piece.substr(1, std::min<std::size_t>(piece.size() - 2, 256));
    where_ = Where::colon;
    return;
  }
  const bool member = where_ == Where::in_value;
  where_ = member ? Where::key_or_end : Where::element_or_end;
  if (!keep_piece_) {
    ++losses_.too_long;
    return;
  }
  const JsonLimits limits{limits_.piece_bytes * 2, limits_.depth};
  auto parsed = parse_json(piece, limits);
  if (!parsed) parsed = parse_json(without_bare_words(piece), limits);
  if (!parsed) {
    ++losses_.broken;
    return;
  }
  if (!member) return takers_.element(list_, std::move(*parsed));
  members_size_ += piece.size();
  if (members_size_ > limits_.members_bytes) {
    ++losses_.too_long;
    return;
  }
  members_[key_] = std::move(*parsed);
}

void JsonPieces::end_object() {
  ++at_;
  where_ = Where::text;
  in_object_ = false;
  takers_.members(std::exchange(members_, Json::object()));
}

void JsonPieces::finish() {
  const bool bracket = where_ == Where::between && !buffer_.empty();  // and nothing behind it
  if (bracket) ++losses_.documents;
  losses_.cut = bracket || (where_ != Where::between && where_ != Where::text);
  if (losses_.cut && in_object_) end_object();
  where_ = Where::between;
}

std::optional<std::string> for_each_document(
    std::string_view text, const std::function<bool(const Json& document)>& take) {
  std::optional<std::string> first;
  const auto broken = [&](std::size_t at, std::string why) {
    if (!first && looks_like_json(text, at)) first = std::move(why);
  };
  // A line that opens a bracket and never closes it makes the search look ahead in vain. All such
  // looks together may cost a few times the text, so that a hostile one does not cost its square.
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
    const std::size_t looked = std::min(end, text.size()) - from;
    budget -= std::min(budget, std::min(looked, k_largest));
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
    // More may follow on the same line; a line is the smallest step, so only a newline counts.
    line = std::min(text.find('\n', end), text.size());
    if (line < text.size()) ++line;
  }
  return first;
}

}  // namespace weir::adapters
