// Bodies of uploads, of both kinds.
#include "gate/serve/uploads.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  using namespace weir;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  history::TimeContext around;
  around.default_time = 1;
  (void)serve::parse_upload(serve::UploadType::document, body, {}, false, around);
  (void)serve::parse_upload(serve::UploadType::lines, body, {}, true, around);
  return 0;
}
