#include "gate/adapters/json_pieces.hpp"

#include <algorithm>
#include <utility>

#include "gate/base/text.hpp"

namespace weir::adapters {
namespace {

bool json_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Some programs write NaN, inf and the like as bare words, which is no JSON: null in their place.
std::string without_bare_words(std::string_view piece) {
  std::string made;
  bool in_string = false;
  for (std::size_t at = 0; at < piece.size();) {
    const char c = piece[at];
    if (in_string || !(letter(c) || c == '-')) {
      made += c;
      if (in_string && c == '\\' && at + 1 < piece.size()) made += piece[++at];
      if (c == '"') in_string = !in_string;
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < piece.size() && letter(piece[end])) ++end;
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

// Past the bracket that closes the one at `from`; npos when it is not closed within `limit` bytes.
std::size_t closing(std::string_view text, std::size_t from, std::size_t limit) {
  const std::size_t end = std::min(text.size(), from + limit);
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = from; i < end; ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// What follows the bracket tells JSON from a log line's "[info]" or "{model}".
bool looks_like_json(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(k_blank, at + 1);
  if (next == std::string_view::npos) return true;  // cut off right behind the bracket
  return text[next] == '{' || text[next] == '"';
}

}  // namespace

JsonPieces::JsonPieces(std::vector<std::string> lists, Takers takers, JsonPieceLimits limits)
    : lists_(std::move(lists)), takers_(std::move(takers)), limits_(limits) {}

void JsonPieces::feed(std::string_view chunk) {
  for (std::size_t at = 0; at < chunk.size();) {
    // Within a string nothing but its end matters: most bytes go here at once.
    if (in_string_ && !escaped_ && (where_ == Where::in_value || where_ == Where::in_element)) {
      const std::size_t end = std::min(chunk.find_first_of("\"\\", at), chunk.size());
      if (keep_piece_) {
        if (piece_.size() + (end - at) > limits_.piece_bytes) {
          keep_piece_ = false;
        } else {
          piece_.append(chunk.substr(at, end - at));
        }
      }
      at = end;
      if (at == chunk.size()) return;
    }
    if (where_ == Where::element_or_end && takers_.many) {
      at += takers_.many(list_, chunk.substr(at));
      if (at == chunk.size()) return;
    }
    step(chunk[at++]);
  }
}

void JsonPieces::step(char c) {
  if (where_ <= Where::maybe_object) return between(c);
  if (where_ <= Where::colon) return before_member(c);
  if (where_ == Where::value) return before_value(c);
  if (where_ == Where::element_or_end) return before_element(c);
  in_piece(c);
}

// What follows its bracket tells a document from a log line's "[info]" or "{model}".
void JsonPieces::between(char c) {
  if (where_ == Where::maybe_array || where_ == Where::maybe_object) {
    if (json_blank(c)) return;
    const bool array = where_ == Where::maybe_array;
    const bool fits = array ? c == '{' || c == '[' || c == ']' : c == '"' || c == '}';
    where_ = fits ? (array ? Where::element_or_end : Where::key_or_end) : Where::text;
    if (!fits) return between(c);
    ++losses_.documents;
    list_.clear();
    in_object_ = !array;
    members_ = Json::object();
    members_size_ = 0;
    return step(c);
  }
  if (c == '\n') {
    where_ = Where::between;
  } else if (where_ == Where::between && !json_blank(c)) {
    where_ = c == '[' ? Where::maybe_array : c == '{' ? Where::maybe_object : Where::text;
  }
}

void JsonPieces::before_member(char c) {
  if (where_ == Where::key) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      where_ = Where::colon;
      return;
    }
    if (key_.size() < 256) key_ += c;
    return;
  }
  if (where_ == Where::colon) {
    if (c == ':') {
      where_ = Where::value;
    } else if (!json_blank(c)) {
      ++losses_.broken;
      where_ = Where::key_or_end;
      before_member(c);
    }
    return;
  }
  if (c == '"') {
    key_.clear();
    escaped_ = false;
    where_ = Where::key;
  } else if (c == '}') {
    end_object();
  }  // blanks and commas; what else stands here is passed over
}

void JsonPieces::before_value(char c) {
  if (json_blank(c)) return;
  if (c == '[' && std::find(lists_.begin(), lists_.end(), key_) != lists_.end()) {
    list_ = key_;
    where_ = Where::element_or_end;
    return;
  }
  begin_piece(c, Where::in_value);
}

void JsonPieces::before_element(char c) {
  if (json_blank(c) || c == ',') return;
  if (c == ']') return end_list();
  if (c == '}') {  // no element begins with it: a bracket is missing
    ++losses_.broken;
    if (in_object_) end_object();
    return;
  }
  begin_piece(c, Where::in_element);
}

void JsonPieces::begin_piece(char c, Where where) {
  where_ = where;
  piece_.clear();
  keep_piece_ = true;
  depth_ = 0;
  in_string_ = escaped_ = false;
  scalar_ = c != '{' && c != '[' && c != '"';
  in_piece(c);
}

void JsonPieces::keep(char c) {
  if (!keep_piece_) return;
  if (piece_.size() >= limits_.piece_bytes || depth_ > limits_.depth) {
    keep_piece_ = false;
  } else {
    piece_ += c;
  }
}

void JsonPieces::in_piece(char c) {
  if (in_string_) {
    keep(c);
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (depth_ == 0) end_piece();
    }
    return;
  }
  if (scalar_ && depth_ == 0 && (c == ',' || c == '}' || c == ']')) {
    // What ends a number belongs to what holds it.
    const Where after = where_ == Where::in_value ? Where::key_or_end : Where::element_or_end;
    end_piece();
    where_ = after;
    return step(c);
  }
  if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    keep(c);
    if (depth_ > 0) --depth_;
    if (depth_ == 0) end_piece();
    return;
  }
  if (!(scalar_ && json_blank(c))) keep(c);
}

void JsonPieces::end_piece() {
  const bool member = where_ == Where::in_value;
  where_ = member ? Where::key_or_end : Where::element_or_end;
  if (!keep_piece_) {
    ++losses_.too_long;
    return;
  }
  const JsonLimits limits{limits_.piece_bytes * 2, limits_.depth};
  auto parsed = parse_json(piece_, limits);
  if (!parsed) parsed = parse_json(without_bare_words(piece_), limits);
  if (!parsed) {
    ++losses_.broken;
    return;
  }
  if (!member) return takers_.element(list_, std::move(*parsed));
  members_size_ += piece_.size();
  if (members_size_ > limits_.members_bytes) {
    ++losses_.too_long;
    return;
  }
  members_[key_] = std::move(*parsed);
}

void JsonPieces::end_list() {
  if (in_object_) {
    where_ = Where::key_or_end;
    list_.clear();
  } else {
    where_ = Where::text;  // a next document begins a line of its own
  }
}

void JsonPieces::end_object() {
  where_ = Where::text;
  in_object_ = false;
  takers_.members(std::exchange(members_, Json::object()));
}

void JsonPieces::finish() {
  const bool between_documents = where_ == Where::between || where_ == Where::text;
  if (where_ == Where::maybe_array || where_ == Where::maybe_object) ++losses_.documents;
  if (!between_documents) losses_.cut = true;
  if (in_object_ && !between_documents) takers_.members(std::exchange(members_, Json::object()));
  where_ = Where::between;
  in_object_ = false;
}

DocumentsFound for_each_document(std::string_view text,
                                 const std::function<bool(const Json& document)>& take) {
  DocumentsFound found;
  const auto broken = [&](std::string why) {
    if (!found.broken) found.broken = std::move(why);
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
    const std::size_t end = closing(text, at, std::min(k_largest, budget));
    const std::size_t looked = (end == std::string_view::npos ? text.size() : end) - from;
    budget -= std::min(budget, std::min(looked, k_largest));
    if (budget == 0) {
      broken("too much of it looks like JSON that never ends");
      return found;
    }
    if (end == std::string_view::npos) {
      if (looks_like_json(text, at)) broken("it stops in the middle (a bracket is not closed)");
      continue;
    }
    auto document = parse_json(text.substr(at, end - at), {k_largest, 64});
    if (!document) {
      if (looks_like_json(text, at)) broken(document.error().message);
      continue;
    }
    ++found.documents;
    if (!take(*document)) return found;
    // More may follow on the same line; a line is the smallest step, so only a newline counts.
    line = std::min(text.find('\n', end), text.size());
    if (line < text.size()) ++line;
  }
  return found;
}

}  // namespace weir::adapters
