// tracy-csvexport's CSV: a line per zone (its totals), or with --unwrap or --gpu a line per call.
//
// The tool quotes nothing, and names of C++ and Zig hold commas. So the text before the numbers is
// the name and, after the last separator, the file.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::tracy {
namespace {

struct Form {
  std::string_view columns;        // after the file; more may follow
  std::size_t numbers, time;       // number of numeric columns, and index of the time (ns)
  bool gpu = false, call = false;  // `call`: each line is one call
};

constexpr std::array k_forms{
    Form{"src_line,total_ns,total_perc,counts,mean_ns,min_ns,max_ns", 7, 1},
    Form{"src_line,ns_since_start,exec_time_ns,thread", 4, 2, false, true},
    Form{"src_line,ns_since_start,exec_time_ns", 3, 2, false, true},  // Tracy 0.9
    Form{"Time from start of program,GPU execution time", 2, 1, true, true},
};

// Returns the form with this heading; null if there is none. `separator` becomes the character
// between columns (--sep).
const Form* find_form(std::string_view heading, char& separator) {
  if (!heading.starts_with("name") || heading.size() < 6) return nullptr;
  separator = heading[4];
  std::string plain(heading);
  std::ranges::replace(plain, separator, ',');
  return find_first(k_forms, [&](const Form& form) {
    return plain.starts_with("name,src_file," + std::string(form.columns));
  });
}

struct Row {
  std::string name, file;
  std::vector<double> numbers;
};
// Parses a line whose columns are already split. The first group of `numbers` numbers after a name
// and a file ends them.
std::optional<Row> parse_row(const std::vector<std::string>& fields, std::size_t numbers) {
  Row row;
  for (std::size_t at = 2; at + numbers <= fields.size(); ++at) {
    row.numbers.clear();
    for (std::size_t i = 0; i < numbers; ++i) {
      const auto number = text::to_double(fields[at + i]);
      if (number && *number >= 0) row.numbers.push_back(*number);
    }
    if (row.numbers.size() < numbers) continue;
    row.name =
        display_text(text::join({fields.begin(), fields.begin() + std::ptrdiff_t(at) - 1}, ","));
    row.file = display_text(fields[at - 1]);
    return row;
  }
  return std::nullopt;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  const Form* form = nullptr;
  char separator = ',';
  std::map<std::string, std::size_t> rows;  // name and place -> its row
  for (const std::string_view line : printed.lines()) {
    if (form == nullptr) {
      form = find_form(line, separator);
      continue;
    }
    if (printed.may_be_cut(line)) {
      mark_truncated(observed);
      continue;
    }
    const auto row = parse_row(text::split(line, separator), form->numbers);
    if (!row) {
      if (!line.empty()) add_warning(observed, "a line is not a zone and was left out");
      continue;
    }
    ObservedOp op;
    if (form->gpu) {
      op.kernel = row->name;
    } else {
      op.op = row->name;
    }
    op.category = form->gpu ? "kernel" : "zone";
    op.node = row->file;
    if (!form->gpu) op.node += fmt::format(":{:.0f}", row->numbers[0]);
    const double seconds = row->numbers[form->time] / 1e9;
    const auto [at, fresh] = rows.try_emplace(row->name + "\n" + op.node, observed.ops.size());
    if (fresh) {
      if (!form->call) {
        op.seconds = seconds;
        op.calls = static_cast<std::int64_t>(std::min(row->numbers[3], 1e15));
        op.min_seconds = row->numbers[5] / 1e9;
        op.max_seconds = row->numbers[6] / 1e9;
      }
      if (!append_valid_op(std::move(op), observed)) {
        rows.erase(at);
        continue;
      }
      add_place(observed, row->file);
    }
    if (form->call) add_call(observed.ops[at->second], seconds);
  }
  if (form != nullptr && !form->gpu) {
    add_warning(observed,
                "a zone's time holds that of the zones within it, unless --self was given: shares "
                "may be of the same time");
  }
}

}  // namespace weir::adapters::tracy

const weir::adapters::Format weir::adapters::k_tracy(
    "tracy-csv", "tracy-csvexport's zones, summed or call by call, of CPU and GPU", "", tracy::read,
    {{90, {"^name,src_file,", "^name;src_file;", "^name\tsrc_file\t"}}});
