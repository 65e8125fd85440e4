// Prints RE2's tables of characters as source: Debian's source package has none (it makes them from
// its own Unicode data), Debian's static library has them in it. Linked with that library, and with
// the headers of that source.
#include <cstdio>

#include "re2/unicode_casefold.h"
#include "re2/unicode_groups.h"

namespace {

template <class Range>
void print_ranges(const char* type, const char* table, int number, const Range* ranges, int count) {
  if (count == 0) return;
  std::printf("static const %s %s_%d_%s[] = {", type, table, number, type);
  for (int i = 0; i < count; ++i) {
    std::printf("{%d,%d},", static_cast<int>(ranges[i].lo), static_cast<int>(ranges[i].hi));
  }
  std::printf("};\n");
}

void print_name(const char* table, int number, const char* type, int count) {
  if (count == 0) {
    std::printf("nullptr,0,");
  } else {
    std::printf("%s_%d_%s,%d,", table, number, type, count);
  }
}

void print_groups(const char* table, const re2::UGroup* groups, int count) {
  for (int i = 0; i < count; ++i) {
    print_ranges("URange16", table, i, groups[i].r16, groups[i].nr16);
    print_ranges("URange32", table, i, groups[i].r32, groups[i].nr32);
  }
  std::printf("const UGroup %s[] = {\n", table);
  for (int i = 0; i < count; ++i) {
    // A raw string: names are like [:alpha:] and \d.
    std::printf("{R\"(%s)\",%d,", groups[i].name, groups[i].sign);
    print_name(table, i, "URange16", groups[i].nr16);
    print_name(table, i, "URange32", groups[i].nr32);
    std::printf("},\n");
  }
  std::printf("};\nconst int num_%s = %d;\n", table, count);
}

void print_folds(const char* table, const re2::CaseFold* folds, int count) {
  std::printf("const CaseFold %s[] = {", table);
  for (int i = 0; i < count; ++i) {
    std::printf("{%d,%d,%d},", static_cast<int>(folds[i].lo), static_cast<int>(folds[i].hi),
                static_cast<int>(folds[i].delta));
  }
  std::printf("};\nconst int num_%s = %d;\n", table, count);
}

}  // namespace

int main() {
  std::printf(
      "#include \"re2/unicode_casefold.h\"\n#include \"re2/unicode_groups.h\"\nnamespace re2 {\n");
  print_groups("unicode_groups", re2::unicode_groups, re2::num_unicode_groups);
  print_groups("posix_groups", re2::posix_groups, re2::num_posix_groups);
  print_groups("perl_groups", re2::perl_groups, re2::num_perl_groups);
  print_folds("unicode_casefold", re2::unicode_casefold, re2::num_unicode_casefold);
  print_folds("unicode_tolower", re2::unicode_tolower, re2::num_unicode_tolower);
  std::printf("}  // namespace re2\n");
}
