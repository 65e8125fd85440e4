// Fuzz target: any bytes as a program file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/probes/read/line_tables.hpp"
#include "gate/probes/read/program_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::probes;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = read_program_file(bytes_of(bytes));
  // A symbol takes 24 bytes of the file, and each is kept once a table at most.
  if (file && file->imported.size() + file->exported.size() > size / 24) std::abort();
  static_cast<void>(find_maybe_inlined(bytes));
  return 0;
}
