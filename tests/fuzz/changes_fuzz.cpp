// Fuzz target: any bytes as a weir.changes/1. Of what is read, every document is made.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/site/site.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto all = weir::site::read_commit_changes({reinterpret_cast<const char*>(data), size});
  if (!all) return 0;
  weir::site::SiteModel model;
  model.commit_changes = *std::move(all);
  const weir::site::Site site(std::move(model));
  for (const std::string& path : site.paths()) {
    if (!site.text(path)) std::abort();
  }
  return 0;
}
