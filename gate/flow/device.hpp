// weir device: descriptions of GPUs, for device twins.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct DeviceOptions {
  std::string name;      // the name of a description, or the path of a file
  std::string out;       // "" is standard output
  std::string new_name;  // the new description's name
  std::string title;
  std::size_t index = 0;
};
[[nodiscard]] Result<Answer> list_devices(const Job& job, const DeviceOptions& options);
[[nodiscard]] Result<Answer> show_device(const Job& job, const DeviceOptions& options);
// Records a description of a GPU of this machine; Code::unavailable if there is none.
[[nodiscard]] Result<Answer> record_device(const Job& job, const DeviceOptions& options);
// Makes a description from a file of vulkaninfo or of a database.
[[nodiscard]] Result<Answer> import_device(const Job& job, const DeviceOptions& options);
// Compiles a description into the file that the twin driver reads.
[[nodiscard]] Result<Answer> compile_device(const Job& job, const DeviceOptions& options);

struct DeviceMatrixOptions {
  std::vector<std::string> twins;
  std::string html;
  bool all = false;
};
// Counts one engine on every device twin, and shows the results as a matrix.
[[nodiscard]] Result<Answer> show_device_matrix(const Job& job, const DeviceMatrixOptions& options);

}  // namespace weir::flow
