// Packages of a Python virtual environment, and what a CUDA twin needs to stand in for them.
#include "gate/probes/read/python_environment.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/probes/read/runtime_code.hpp"

#include "tests/probes/elf_bytes.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace {

using testing::ElementsAre;

class PythonEnvironment : public testing::Test {
 protected:
  PythonEnvironment() {
    write("libcudart.so.12", ElfBytes{.exported = {"cudaMalloc"}}.str());
    write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    write(".venv/bin/python", ElfBytes{.loader = "/lib64/ld-linux-x86-64.so.2"}.str());
  }
  void write(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = place_.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::string path(const std::string& name) const { return place_.path() + "/" + name; }
  Result<RuntimeCode> code(const std::string& program = ".venv/bin/python") const {
    return find_runtime_code(k_cuda_runtime, path(program), place_.path(), files_,
                             [](std::string_view) { return std::nullopt; });
  }

  Folder place_;
  sys::RealFiles files_;
};

TEST_F(PythonEnvironment, IsTheFolderAboveThatOfItsPrograms) {
  EXPECT_EQ(python_environment_of(path(".venv/bin/python"), files_), path(".venv"));
  EXPECT_EQ(python_environment_of("/usr/bin/python3", files_), "");
  write(".venv/lib/python3.11/site-packages/a/b/x.so.1", "");
  write(".venv/lib/python3.11/site-packages/y.cpython-311.so", "");
  write(".venv/lib/python3.11/site-packages/z.py", "");
  EXPECT_THAT(libraries_of_environment(path(".venv"), files_),
              ElementsAre(path(".venv/lib/python3.11/site-packages/a/b/x.so.1"),
                          path(".venv/lib/python3.11/site-packages/y.cpython-311.so")));
}

TEST_F(PythonEnvironment, GivesTheTwinTheNamesAndFunctionsThatItsPackagesNeed) {
  const std::string lib = ".venv/lib/python3.11/site-packages/torch/lib/";
  write(lib + "libtorch_cuda.so", ElfBytes{.needed = {"libcudart.so.13", "libcudnn.so.9"},
                                           .imported = {"cudaMalloc", "cudnnRNNForward"}}
                                      .str());
  write(lib + "libc10.so", ElfBytes{.needed = {"libc.so.6"}}.str());
  // torch 2.9's library for NVSHMEM needs none of CUDA's others.
  write(lib + "libtorch_nvshmem.so",
        ElfBytes{.needed = {"libnvshmem_host.so.3"}, .imported = {"nvshmem_malloc"}}.str());
  // The real library is not the package's own code: the twin is loaded in its place.
  write(lib + "libcudart.so.13", ElfBytes{.needed = {"libcudart.so.13"}}.str());
  const auto found = code();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->files,
              ElementsAre(path(lib + "libtorch_cuda.so"), path(lib + "libtorch_nvshmem.so")));
  EXPECT_THAT(found->preloads,
              testing::UnorderedElementsAre("libcudart.so.13", "libcudnn.so.9", "libcuda.so.1",
                                            "libnvidia-ml.so.1", "libnvshmem_host.so.3"));
  EXPECT_THAT(found->missing, testing::UnorderedElementsAre("cudnnRNNForward", "nvshmem_malloc"));
  // A command that pip installed is a script.
  write(".venv/bin/vllm", "#!" + path(".venv/bin/python3") + "\nfrom vllm import main\n");
  const auto of_command = code(".venv/bin/vllm");
  ASSERT_TRUE(of_command) << of_command.error().message;
  EXPECT_EQ(of_command->preloads, found->preloads);
}

TEST_F(PythonEnvironment, NamesLibrariesWithTheRuntimeInside) {
  const std::string site = ".venv/lib/python3.11/site-packages/";
  write(site + "mlx/lib/libmlx.so",
        ElfBytes{.needed = {"libcuda.so.1", "libnvrtc.so.13"}, .section = ".nv_fatbin"}.str());
  write(site + "ct2.libs/libct2.so.4", ElfBytes{.section = ".nv_fatbin"}.str());
  write(site + "numpy/core.so", ElfBytes{.section = ".text"}.str());
  // Another library brings its runtime.
  write(site + "a/open.so",
        ElfBytes{.imported = {"__cudaRegisterFatBinary"}, .section = ".nv_fatbin"}.str());
  const auto message = [](const Result<RuntimeCode>& result) {
    return result ? std::string() : result.error().message;
  };
  EXPECT_THAT(message(code()), testing::StartsWith("libct2.so.4 has CUDA's runtime "
                                                   "inside, which a CUDA twin cannot stand in"));
  // The runtime inside is the reason, not the libraries that it needs besides.
  EXPECT_THAT(message(code(site + "mlx/lib/libmlx.so")),
              testing::StartsWith("libmlx.so has CUDA's runtime inside"));
  // A program may leave such a library alone and use another one.
  write(site + "torch/libtorch_cuda.so", ElfBytes{.needed = {"libcudart.so.13"}}.str());
  EXPECT_EQ(message(code()), "");
}

TEST_F(PythonEnvironment, GivesRealLibrariesOfTheApiTheFunctionsThatTheTwinLacks) {
  const std::string site = ".venv/lib/python3.11/site-packages/";
  write(site + "onnxruntime/libprovider.so",
        ElfBytes{.needed = {"libcudart.so.13", "libcurand.so.10"}}.str());
  const ElfBytes real{.needed = {"libcudart.so.13"}, .imported = {"cudaLibraryGetKernel"}};
  write(site + "nvidia/lib/libcurand.so.10", real.str());
  write(site + "nvidia/lib/libcudnn_ops.so.9", ElfBytes{.needed = {"libcudart.so.13"}}.str());
  const auto found = code();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->missing, ElementsAre("cudaLibraryGetKernel"));
  EXPECT_THAT(found->files, ElementsAre(path(site + "onnxruntime/libprovider.so"),
                                        path(site + "nvidia/lib/libcurand.so.10")));
}

TEST_F(PythonEnvironment, WithoutPackagesThatUseTheApiNeedsNothing) {
  const auto found = code();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->files, testing::IsEmpty());
  EXPECT_THAT(found->preloads, testing::IsEmpty());
}

}  // namespace
}  // namespace weir::probes
