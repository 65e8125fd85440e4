// JSON of any size, piece by piece: the elements of its long lists and the members of its objects,
// as they come. Memory is bounded by one piece. Pieces before a cut or a broken one are not lost.
// And whole documents, which must be small. Pure.
#pragma once

#include <functional>

#include "gate/base/json.hpp"

namespace weir::adapters {

struct JsonPieceLimits {
  std::size_t piece_bytes = std::size_t{1} << 20;    // an element or a member; longer is left out
  std::size_t members_bytes = std::size_t{4} << 20;  // all members of an object
  std::size_t depth = 64;
};

// Numbers of pieces that were lost.
struct JsonPieceLosses {
  std::size_t broken = 0;    // pieces that are no JSON
  std::size_t too_long = 0;  // or nested too deeply
  bool cut = false;          // the text ended within a document
  std::size_t documents = 0;
};

// Looks for the end of a value, which may come in parts.
struct JsonValueEnd {
  bool scalar = false;  // a number, true, false or null: ends where its container goes on
  bool in_text = false, escaped = false;
  std::size_t depth = 0, deepest = 0;

  // Returns how much of `text`, the continuation of the text before, belongs to the value; npos:
  // all of it, and more.
  std::size_t find(std::string_view text);
};

// A document is an object or an array that begins a line or follows another one. Text between
// documents, such as log lines, is skipped.
class JsonPieces {
 public:
  struct Takers {
    // Called for each element of a list: a member named in `lists`, or (list "") a document that is
    // an array.
    std::function<void(std::string_view list, Json element)> element;
    // Called after the last element with the other complete members of an object.
    std::function<void(Json members)> members;
    // Optional. Called first, with the text after an element of `list` or its beginning. It may
    // take any number of complete elements, with blanks and commas, and returns their bytes. The
    // next element goes to `element`.
    std::function<std::size_t(std::string_view list, std::string_view rest)> many = {};
  };
  JsonPieces(std::vector<std::string> lists, Takers takers, JsonPieceLimits limits = {});

  // Any cut of the text into chunks gives the same pieces.
  void feed(std::string_view chunk);
  void finish();  // once, at the end
  [[nodiscard]] const JsonPieceLosses& losses() const { return losses_; }

 private:
  enum class State {
    between,         // between documents, at the beginning of a line
    text,            // in a line that is no document
    key_or_end,      // in an object, before a member
    in_key,          // in a member's name
    colon,           // after it
    value,           // before a member's value
    in_value,        // in it
    element_or_end,  // in a list, before an element
    in_element,
  };
  // Each of these goes on from state_, and returns false if more text is needed.
  bool step();
  bool find_document();
  void skip_to_next();
  bool scan_piece();
  void end_piece(std::string_view piece);
  void begin_piece(State state);
  void end_object();

  std::vector<std::string> lists_;
  Takers takers_;
  JsonPieceLimits limits_;
  JsonPieceLosses losses_;
  State state_ = State::between;
  std::string buffer_;        // text from at_ on is not processed yet
  std::size_t at_ = 0;        // in a piece: its beginning
  std::size_t searched_ = 0;  // bytes of the piece that were searched for its end
  JsonValueEnd end_;          // search for the piece's end
  bool keep_piece_ = true;
  std::string key_;
  std::string list_;        // the name of the list that is read
  bool in_object_ = false;  // the list stands in an object
  Json members_;
  std::size_t members_size_ = 0;
};

// Finds documents in text with log lines: calls `take` for each object or array that begins a line
// (after blanks), in order; it returns false to stop. Documents are not kept, so that memory stays
// small: each may have 1 MiB and 64 levels. Time is linear in the size of the text.
// Returns the problem of the first text that looks like JSON but is not. A log line such as
// "[info] …" does not look like JSON.
std::optional<std::string> for_each_document(std::string_view text,
                                             const std::function<bool(const Json& document)>& take);

}  // namespace weir::adapters
