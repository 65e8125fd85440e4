// JSON of any size, piece by piece: the elements of its long lists and the members of its objects,
// as they come. Memory is bounded by one piece; what stands behind a cut or a broken piece does not
// spoil what was whole before it. And documents as a whole, which must be small. Pure.
#pragma once

#include <functional>

#include "gate/base/json.hpp"

namespace weir::adapters {

struct JsonPieceLimits {
  std::size_t piece_bytes = std::size_t{1} << 20;  // of an element or a member; longer is left out
  std::size_t members_bytes = std::size_t{4} << 20;  // of an object's members together
  std::size_t depth = 64;
};

// What was not taken, and why.
struct JsonPieceLosses {
  std::size_t broken = 0;    // pieces that are no JSON
  std::size_t too_long = 0;  // or nested too deeply
  bool cut = false;          // the text ended within a document
  std::size_t documents = 0;
};

// Looks for the end of a value, which may come in parts.
struct JsonValueEnd {
  bool scalar = false;  // neither an object, an array nor a text: what holds it ends it
  bool in_text = false, escaped = false;
  std::size_t depth = 0, deepest = 0;

  // How much of `text`, which follows what was looked at before, belongs to the value; npos: all of
  // it, and more.
  std::size_t find(std::string_view text);
};

// A document is an object or an array that begins a line. Text between documents, such as log
// lines, is passed over.
class JsonPieces {
 public:
  struct Takers {
    // Each element of a list: of one whose member is among `lists` below, or (list "") of an array
    // that is itself a document.
    std::function<void(std::string_view list, Json element)> element;
    // After the last element: the other members of an object, those that were whole.
    std::function<void(Json members)> members;
    // Where it is given: asked first, with what is there behind an element of `list` or its
    // beginning. Takes as many whole elements as it likes, with blanks and commas, and answers how
    // many bytes those are; the next one goes to `element`, in the usual way.
    std::function<std::size_t(std::string_view list, std::string_view rest)> many = {};
  };
  JsonPieces(std::vector<std::string> lists, Takers takers, JsonPieceLimits limits = {});

  // Any cut of the text into chunks gives the same pieces.
  void feed(std::string_view chunk);
  void finish();  // once, at the end
  [[nodiscard]] const JsonPieceLosses& losses() const { return losses_; }

 private:
  enum class Where {
    between,         // of documents; looking for one at the beginning of a line
    text,            // in a line that is none
    key_or_end,      // in an object, before a member
    in_key,          // in a member's name
    colon,           // behind it
    value,           // before a member's value
    in_value,        // in it
    element_or_end,  // in a list, before an element
    in_element,
  };
  // Each of these goes on from where_, and says whether there is enough text to go on further.
  bool step();
  bool between();
  bool in_piece();
  void end_piece(std::string_view piece);
  void begin_piece(Where where);
  void end_object();

  std::vector<std::string> lists_;
  Takers takers_;
  JsonPieceLimits limits_;
  JsonPieceLosses losses_;
  Where where_ = Where::between;
  std::string buffer_;      // what is not taken yet begins at at_
  std::size_t at_ = 0;      // in a piece: its beginning
  std::size_t looked_ = 0;  // how much of the piece was looked at for its end
  JsonValueEnd end_;        // of the piece
  bool keep_piece_ = true;
  std::string key_;
  std::string list_;        // the name of the list that is read
  bool in_object_ = false;  // the list stands in an object
  Json members_;
  std::size_t members_size_ = 0;
};

// Documents within text that also holds log lines, each as a whole: calls `take` for each object or
// array that begins a line (blanks before it are fine), in order; it answers whether to go on.
// Documents are not kept, so that memory stays small: each may have 1 MiB and 64 levels. Time is
// linear in the size of the text.
// Answers with what is wrong with the first text that looked like JSON and was not. A log line such
// as "[info] …" does not look like JSON.
std::optional<std::string> for_each_document(std::string_view text,
                                             const std::function<bool(const Json& document)>& take);

}  // namespace weir::adapters
