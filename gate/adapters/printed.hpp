// What a program printed, made fit to be read by lines: colours and prefixes of log lines gone, one
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
  std::string_view name = {};  // of the file, as a hint; may be empty
};

// Without their ends; views into the text.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

// The texts, and their lines without what a terminal or a logger adds: ANSI sequences, "\r", and
// llama.cpp's prefix of each log call ("0.03.330.279 I "), also in the middle of a line. What came
// behind a lone "\r" (a progress bar drawing over itself) is a line of its own.
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
  // The last line of standard output (of standard error where that is empty) has no end: it may
  // have been cut.
  [[nodiscard]] bool open() const { return open_; }
  // Whether `line`, one of these lines, is that last one: a number at its end may go on.
  [[nodiscard]] bool cut(std::string_view line) const;
  // Whether a line begins with this (blanks before it aside).
  [[nodiscard]] bool begins(std::string_view text) const;
  // Whether either text holds this, as it was printed.
  [[nodiscard]] bool holds(std::string_view text) const;

 private:
  Document document_;
  std::string out_text_, err_text_;
  std::vector<std::string_view> out_, err_, lines_;
  bool open_ = false;
};

// A number as people and programs print it: "1234.5", "1234,5", "2.4e+06", "1,234.5". Where both
// marks occur the last one is the decimal mark; one mark that occurs once is it as well. Nothing
// when it is none, or not finite.
[[nodiscard]] std::optional<double> printed_number(std::string_view text);

// Fit to show and to keep: one line, at most `most` bytes of it, without control characters.
[[nodiscard]] std::string shown_text(std::string_view text, std::size_t most = 200);

// An op of ggml's by its form: "MUL_MAT", not "mul_mat" or "".
[[nodiscard]] bool names_op(std::string_view word);

// Takes a line apart from left to right. A step that does not fit answers nothing (or false) and
// leaves the place where it was. Blanks before each step are skipped.
class Scan {
 public:
  explicit Scan(std::string_view line) : rest_(line) {}

  // All that `form` says, or nothing: its text piece by piece (two blanks part them), and for each
  // "{}" one of `values` by its type: a number, digits alone, or a text up to the piece that
  // follows at once, else up to a blank.
  //   scan.fits("[OP]  backend {} {}  {} %  count={}", number, name, share, count)
  template <class... Values>
  bool fits(std::string_view form, Values&... values) {
    const std::string_view before = rest_;
    const bool fits = (take_value(form, values) && ...) && take_text(form);
    if (!fits) rest_ = before;
    return fits;
  }

  bool take(std::string_view literal);
  std::optional<double> number();          // at the beginning of what follows
  std::optional<std::int64_t> whole();     // digits alone
  std::optional<std::string_view> word();  // up to a blank
  // Up to the first `mark`, which is taken as well.
  std::optional<std::string_view> until(std::string_view mark) {
    return past(rest_.find(mark), mark);
  }
  // Up to the last `mark`.
  std::optional<std::string_view> until_last(std::string_view mark) {
    return past(rest_.rfind(mark), mark);
  }
  [[nodiscard]] std::string_view rest() const;  // trimmed
  [[nodiscard]] bool done() const { return rest().empty(); }

 private:
  [[nodiscard]] std::string_view behind_blanks() const;
  // What stands before the mark that begins at `at`.
  std::optional<std::string_view> past(std::size_t at, std::string_view mark);
  bool take_text(std::string_view& form);  // up to its next "{}", which goes as well
  bool take_value(std::string_view& form, double& value);
  bool take_value(std::string_view& form, std::int64_t& value);
  bool take_value(std::string_view& form, std::string_view& value);
  std::string_view rest_;
};

}  // namespace weir::adapters
