// Reads a file that may be compressed with gzip.
#include "gate/sys/gunzip.hpp"

#ifdef WEIR_ZLIB
#include <zlib.h>
#endif

#include <algorithm>

namespace weir::sys {

bool begins_gzip(std::string_view head) { return head.starts_with("\x1F\x8B"); }

#ifdef WEIR_ZLIB
struct UnpackedReader::Stream {
  z_stream z = {};
  std::string input;
  bool at_member_start = true;  // at the beginning of a compressed member
};

void UnpackedReader::Close::operator()(Stream* stream) const {
  inflateEnd(&stream->z);
  delete stream;
}
#else
struct UnpackedReader::Stream {};
void UnpackedReader::Close::operator()(Stream* stream) const { delete stream; }
#endif

// Opens a file to read, which is decompressed if it begins as gzip. Fails for gzip if weir was
// built without zlib.
Result<UnpackedReader> UnpackedReader::open(const std::string& path) {
  WEIR_TRY(FileReader file, FileReader::open(path));
  WEIR_TRY(const std::string head, file.read_at(0, 2));
  UnpackedReader reader(std::move(file));
  if (!begins_gzip(head)) return reader;
#ifdef WEIR_ZLIB
  std::unique_ptr<Stream, Close> stream(new Stream);
  constexpr int k_gzip = 15 + 16;  // the largest window, with gzip's header
  if (inflateInit2(&stream->z, k_gzip) != Z_OK) return fail(Code::unavailable, "out of memory");
  reader.stream_ = std::move(stream);
  return reader;
#else
  return fail(Code::unavailable,
              "it is packed with gzip, and this weir was built without zlib: unpack it (gzip -d)");
#endif
}

// Reads up to `size` bytes, decompressed.
Result<std::string> UnpackedReader::read(std::uint64_t size) {
  if (!packed()) {
    WEIR_TRY(std::string bytes, file_.read_at(at_, size));
    at_ += bytes.size();
    return bytes;
  }
  std::string out;
#ifdef WEIR_ZLIB
  constexpr std::uint64_t k_chunk = std::uint64_t{1} << 16;
  z_stream& z = stream_->z;
  while (out.size() < size) {
    if (z.avail_in == 0) {
      WEIR_TRY_SET(stream_->input, file_.read_at(at_, k_chunk));
      at_ += stream_->input.size();
      z.next_in = reinterpret_cast<Bytef*>(stream_->input.data());
      z.avail_in = static_cast<uInt>(stream_->input.size());
      if (z.avail_in == 0 && stream_->at_member_start) break;
      if (z.avail_in == 0) {
        return fail(Code::data,
                    "its gzip data ends too early, at byte {}: it was cut off while it was "
                    "written or copied",
                    at_);
      }
    }
    while (stream_->at_member_start && z.avail_in > 0 &&
           *z.next_in == 0) {  // skip padding, as gzip does
      ++z.next_in;
      --z.avail_in;
    }
    if (z.avail_in == 0) continue;
    const std::size_t old_size = out.size();
    out.resize(old_size + std::min(size - old_size, k_chunk));
    z.next_out = reinterpret_cast<Bytef*>(out.data() + old_size);
    z.avail_out = static_cast<uInt>(out.size() - old_size);
    stream_->at_member_start = false;
    const int status = inflate(&z, Z_NO_FLUSH);
    out.resize(out.size() - z.avail_out);
    if (status == Z_STREAM_END) {
      stream_->at_member_start = true;
      inflateReset(&z);  // keeps the remaining input
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      return fail(Code::data, "its gzip data is damaged before byte {}: {}", at_ - z.avail_in,
                  z.msg == nullptr ? "zlib cannot go on" : z.msg);
    }
  }
#endif
  return out;
}

Result<std::string> read_unpacked(const Files& files, const std::string& path,
                                  std::uint64_t max_bytes) {
  WEIR_TRY(std::string text, files.read(path, max_bytes));
  if (!begins_gzip(text)) return text;
  WEIR_TRY(UnpackedReader file, UnpackedReader::open(path));
  WEIR_TRY_SET(text, file.read(max_bytes + 1));
  if (text.size() > max_bytes)
    return fail(Code::data, "{}: larger than {} MiB unpacked", path, max_bytes >> 20);
  return text;
}

}  // namespace weir::sys
