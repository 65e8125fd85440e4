// A file, or what is packed in it with gzip, piece by piece: never more in memory than is asked
// for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gate/sys/files.hpp"

namespace weir::sys {

[[nodiscard]] bool begins_gzip(std::string_view head);

// Not thread-safe.
class UnpackedReader {
 public:
  // Unpacks what begins as gzip, several packed one behind the other too, with zero bytes behind
  // each as padding; other files come as they are. Code::io as FileReader; Code::unavailable in a
  // weir built without zlib.
  [[nodiscard]] static Result<UnpackedReader> open(const std::string& path);

  // The next bytes, at most `size` of them and fewer only at the end. Code::data where the packed
  // file is damaged or ends too early, with the place.
  [[nodiscard]] Result<std::string> read(std::uint64_t size);
  [[nodiscard]] bool packed() const { return stream_ != nullptr; }

 private:
  struct Stream;
  struct Close {
    void operator()(Stream* stream) const;
  };
  explicit UnpackedReader(FileReader file) : file_(std::move(file)) {}

  FileReader file_;
  std::uint64_t at_ = 0;  // position in the file
  std::unique_ptr<Stream, Close> stream_;
};

// The whole file, unpacked where it begins as gzip. More than `max_bytes` is Code::data.
[[nodiscard]] Result<std::string> read_unpacked(const Files& files, const std::string& path,
                                                std::uint64_t max_bytes);

}  // namespace weir::sys
