// Reads pointers of Git LFS.
#include "gate/source/lfs.hpp"

#include "gate/base/text.hpp"
#include "gate/sys/digest.hpp"

namespace weir::source {

// Parses a pointer of Git LFS, which stands in for a large file: version, SHA-256 and size. Nullopt
// if it is none.
std::optional<LfsPointer> parse_lfs_pointer(std::string_view text) {
  constexpr std::string_view k_version = "version https://git-lfs.github.com/spec/v1",
                             k_oid = "oid sha256:", k_size = "size ";
  constexpr std::size_t k_sha256_digits = 64;
  if (text.size() > k_max_lfs_pointer_bytes) return std::nullopt;
  const std::vector<std::string> lines = text::lines(text);
  if (lines.size() != 3 || lines[0] != k_version || !lines[1].starts_with(k_oid) ||
      !lines[2].starts_with(k_size))
    return std::nullopt;
  const std::string hash = lines[1].substr(k_oid.size());
  const auto size = text::to_int(lines[2].substr(k_size.size()));
  if (hash.size() != k_sha256_digits || !text::is_hex(hash) || !size || *size < 0)
    return std::nullopt;
  return LfsPointer{hash, static_cast<std::uint64_t>(*size)};
}

bool is_lfs_pointer(const sys::Files& files, const std::string& path) {
  if (files.kind(path) != sys::Kind::file) return false;
  const auto text = files.read_prefix(path, k_max_lfs_pointer_bytes + 1);
  return text && parse_lfs_pointer(*text).has_value();
}

// Returns true if the file has the size and the SHA-256 that the pointer names.
bool is_content_of(const LfsPointer& pointer, const sys::Files& files, const std::string& path) {
  constexpr std::uint64_t k_piece_bytes = std::uint64_t{1} << 20;
  const auto size = files.size(path);
  if (!size || *size != pointer.size) return false;
  const auto file = sys::FileReader::open(path);
  if (!file) return false;
  std::uint64_t offset = 0;
  const auto hash = sys::sha256_hex_of_pieces([&]() -> Result<std::string> {
    WEIR_TRY(std::string piece, file->read_at(offset, k_piece_bytes));
    offset += piece.size();
    return piece;
  });
  return hash && *hash == pointer.sha256;
}

}  // namespace weir::source
