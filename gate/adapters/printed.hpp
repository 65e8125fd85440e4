// A program's output, made fit to be read by lines: without colours and log prefixes, and with one
// kind of line ending. And a scanner for one line. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::adapters {

// One or two texts of one run. A file alone is `out`. Views into them must not outlive them.
struct Document {
  std::string_view out;
  std::string_view err = {};
  std::string_view name = {};  // the file's name, as a hint; may be empty
};

// Returns the lines of a text without their ends, as views into it.
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);

// The texts in UTF-8 (text::decoded), and their lines without what a terminal or a logger adds:
// ANSI sequences, "\r", and llama.cpp's prefix of each log call ("0.03.330.279 I "), also in the
// middle of a line. Text after a lone "\r" (a progress bar drawing over itself) is a line of its
// own.
//
// A text of more than 64 MiB is JSON if anything: it has no lines, and holds() looks at its ends.
class Printed {
 public:
  explicit Printed(const Document& document);
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;

  [[nodiscard]] const Document& document() const { return document_; }
  [[nodiscard]] const std::vector<std::string_view>& out() const { return out_; }
  [[nodiscard]] const std::vector<std::string_view>& err() const { return err_; }
  // Standard output's, then standard error's.
  [[nodiscard]] const std::vector<std::string_view>& lines() const { return lines_; }
  // Returns true if standard output (or standard error if that is empty) does not end in "\n": its
  // last line may have been cut.
  [[nodiscard]] bool lacks_final_newline() const { return lacks_final_newline_; }
  // Returns true if `line`, one of these lines, is that last one: its final number may be cut.
  [[nodiscard]] bool may_be_cut(std::string_view line) const;
  // True if some line begins with `text`, after blanks.
  [[nodiscard]] bool begins(std::string_view text) const;
  // True if either text, as printed, contains `text`.
  [[nodiscard]] bool holds(std::string_view text) const;

 private:
  std::optional<std::string> out_decoded_, err_decoded_;
  Document document_;
  std::string out_text_, err_text_;
  std::vector<std::string_view> out_, err_, lines_;
  bool lacks_final_newline_ = false;
};

// Reads a number as people and programs print it: "1234.5", "1234,5", "2.4e+06", "1,234.5". If both
// marks occur, the last one is the decimal mark; so is a mark that occurs once. Nothing if it is no
// finite number.
[[nodiscard]] std::optional<double> printed_number(std::string_view text);

// Returns at most `most` bytes of `text` on one line, without control characters.
[[nodiscard]] std::string display_text(std::string_view text, std::size_t most = 200);

// True if `word` has the form of an op of ggml: "MUL_MAT", not "mul_mat" or "".
[[nodiscard]] bool is_op_name(std::string_view word);

// Scans a line from left to right. A step that does not fit returns nothing (or false) and leaves
// the position unchanged. Blanks before each step are skipped.
class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : rest_(line) {}

  // Takes all that `form` describes, or nothing. Its text is taken piece by piece (two blanks
  // separate pieces), and each "{}" reads one of `values` by its type: a number, an integer, or a
  // text up to the piece that follows directly, else up to a blank.
  //   scan.read_values("[OP]  backend {} {}  {} %  count={}", number, name, share, count)
  template <class... Values>
  bool read_values(std::string_view form, Values&... values) {
    const std::string_view before = rest_;
    const bool fits = (parse_value(form, values) && ...) && match_text(form);
    if (!fits) rest_ = before;
    return fits;
  }

  bool skip_prefix(std::string_view literal);
  std::optional<double> number();
  std::optional<std::int64_t> integer();   // digits only
  std::optional<std::string_view> word();  // up to a blank
  // Returns the text up to the first `mark`, which is taken as well.
  std::optional<std::string_view> read_until(std::string_view mark) {
    return read_up_to(rest_.find(mark), mark);
  }
  // Returns the text up to the last `mark`, which is taken as well.
  std::optional<std::string_view> read_until_last(std::string_view mark) {
    return read_up_to(rest_.rfind(mark), mark);
  }
  [[nodiscard]] std::string_view rest() const;  // trimmed
  [[nodiscard]] bool done() const { return rest().empty(); }

 private:
  [[nodiscard]] std::string_view skip_blanks() const;
  // Returns the text before the mark that begins at `at`, and takes both.
  std::optional<std::string_view> read_up_to(std::size_t at, std::string_view mark);
  bool match_text(std::string_view& form);
  bool parse_value(std::string_view& form, double& value);
  bool parse_value(std::string_view& form, std::int64_t& value);
  bool parse_value(std::string_view& form, std::string_view& value);
  std::string_view rest_;
};

}  // namespace weir::adapters
