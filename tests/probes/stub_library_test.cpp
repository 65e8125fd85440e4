// Stubs of functions that a CUDA twin lacks, loaded as an engine loads them.
#include "gate/probes/read/stub_library.hpp"

#include <fstream>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/probes/support.hpp"

namespace weir::probes {
namespace {

using testing::HasSubstr;

TEST(StubLibrary, SaysOnceWhatTheTwinLacksAndAnswersAsItsLibraryWould) {
  const auto bytes = make_stub_library({"cudnnConvolutionForward", "cusparseCreate", "cuNothing"});
  ASSERT_TRUE(bytes) << bytes.error().message;
  const Folder place;
  const std::string path = place.path() + "/stubs.so";
  std::ofstream(path) << *bytes;
  ASSERT_NE(dlopen(WEIR_CUDA_TWIN_LIBRARY, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  void* stubs = dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(stubs, nullptr) << dlerror();
  const auto call = [&](const char* name) {
    return reinterpret_cast<int (*)()>(dlsym(stubs, name))();
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(call("cudnnConvolutionForward"), 3000) << "CUDNN_STATUS_NOT_SUPPORTED";
  EXPECT_EQ(call("cudnnConvolutionForward"), 3000);
  EXPECT_EQ(call("cusparseCreate"), 10) << "CUSPARSE_STATUS_NOT_SUPPORTED";
  EXPECT_EQ(call("cuNothing"), 801) << "CUDA_ERROR_NOT_SUPPORTED";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weir: the CUDA twin lacks cudnnConvolutionForward: it answers \"not supported\"\n"
            "weir: the CUDA twin lacks cusparseCreate: it answers \"not supported\"\n"
            "weir: the CUDA twin lacks cuNothing: it answers \"not supported\"\n");
  EXPECT_EQ(dlsym(stubs, "cusparseDestroy"), nullptr);
}

}  // namespace
}  // namespace weir::probes
