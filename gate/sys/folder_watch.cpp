// Reads the events that the kernel reports of a folder (inotify).
#include "gate/sys/folder_watch.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#ifdef __linux__
#include <sys/inotify.h>
#endif
#include <unistd.h>

#include "gate/sys/paths.hpp"

namespace weir::sys {

#ifdef __linux__

FolderWatch::FolderWatch(const std::string& folder, std::string suffix)
    : folder_(folder),
      suffix_(std::move(suffix)),
      events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!events_.open()) return;
  own_watch_ = inotify_add_watch(
      events_.get(), folder.c_str(),
      IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
  // With a folder above it, the whole path may be put in another one's place.
  for (std::string above = folder_of(folder); above.size() > 1; above = folder_of(above))
    (void)inotify_add_watch(events_.get(), above.c_str(), IN_MOVE_SELF | IN_ONLYDIR);
}

// Returns what was removed or replaced since the last call: the folder itself, or a file in it
// with the watched suffix. Nothing if neither was, or inotify is not available.
std::optional<std::string> FolderWatch::find_removed() const {
  if (!events_.open() || own_watch_ < 0) return std::nullopt;
  alignas(inotify_event) std::array<char, 64 << 10> buffer{};
  for (;;) {
    const ssize_t count = read(events_.get(), buffer.data(), buffer.size());
    if (count <= 0) return std::nullopt;
    for (std::size_t offset = 0; offset < static_cast<std::size_t>(count);) {
      inotify_event event{};
      std::memcpy(&event, &buffer.at(offset), sizeof event);
      const std::size_t name_at = offset + sizeof event;
      offset = name_at + event.len;
      if ((event.mask & IN_IGNORED) != 0) continue;
      if ((event.mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT | IN_Q_OVERFLOW)) != 0)
        return folder_;
      std::string name(event.len == 0 ? "" : &buffer.at(name_at));
      if (name.ends_with(suffix_)) return name;
    }
  }
}

#else

FolderWatch::FolderWatch(const std::string& folder, std::string suffix)
    : folder_(folder), suffix_(std::move(suffix)) {}

std::optional<std::string> FolderWatch::find_removed() const { return std::nullopt; }

#endif

}  // namespace weir::sys
