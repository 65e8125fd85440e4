// weir-replay-vulkan FILE: runs each recorded kernel alone (docs/replay-kernels.md).
//
//   --device NAME|NUMBER   which device (default: the first one)
//   --runs N --seconds S   timed runs of each, fewer where they would take longer than S
//   --memory MIB           what one of them may take
//   --from N               begin with this one
//
// A program of its own, so that a driver that crashes takes only this down: before each work a line
// says which one it is, so whoever started this knows where to go on. JSON lines on standard
// output. Exit 0 when it came to the end, 1 with an error on standard error, 2 for wrong arguments,
// 3 when the device is lost: `--from` goes on behind it.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/files.hpp"

#include "tools/replay/vulkan/work.hpp"

namespace {

using weir::Json;

void print(const Json& line) {
  std::puts(weir::dump_json(line).c_str());
  std::fflush(stdout);
}

struct Arguments {
  std::string file, device;
  std::uint64_t from = 0;
  weir::replay::Wishes wishes;
};

std::optional<std::uint64_t> whole(std::string_view text, std::uint64_t most) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out > most) return std::nullopt;
  return out;
}

bool take(std::string_view name, const std::string& value, Arguments& out) {
  if (name == "--device") {
    out.device = value;
    return true;
  }
  if (name == "--seconds") {
    const auto seconds = weir::text::to_double(value);
    if (!seconds || *seconds < 0 || *seconds > 3600) return false;
    out.wishes.seconds = *seconds;
    return true;
  }
  const auto number = whole(value, std::uint64_t{1} << 32);
  if (!number) return false;
  if (name == "--from") out.from = *number;
  if (name == "--memory") out.wishes.memory = *number << 20;
  if (name == "--runs")
    out.wishes.runs = static_cast<std::uint32_t>(std::min(*number, std::uint64_t{200}));
  return name == "--from" || name == "--memory" || name == "--runs";
}

int replay(const Arguments& arguments) {
  const weir::sys::RealFiles files;
  const auto bytes = files.read(arguments.file, weir::probes::k_most_kernels_mib << 20);
  const auto recorded =
      bytes ? weir::probes::read_recorded_kernels(*bytes) : tl::unexpected(bytes.error());
  if (!recorded) {
    std::fprintf(stderr, "weir-replay-vulkan: %s: %s\n", arguments.file.c_str(),
                 recorded.error().message.c_str());
    return 1;
  }
  // A program with several devices: each work runs on one made as its own was, opened when it
  // comes.
  std::map<std::uint32_t, weir::replay::Device> devices;
  for (std::size_t i = arguments.from; i < recorded->works.size(); ++i) {
    const auto& work = recorded->works[i];
    const std::uint32_t made_on = recorded->pipelines[work.pipeline].head.device;
    if (!devices.contains(made_on)) {
      auto fresh = weir::replay::open_device(recorded->devices[made_on], arguments.device);
      if (!fresh) {
        std::fprintf(stderr, "weir-replay-vulkan: %s\n", fresh.error().message.c_str());
        return 1;
      }
      print({{"device", fresh->name}, {"driver", fresh->driver}, {"warnings", fresh->warnings}});
      devices.emplace(made_on, std::move(*fresh));
    }
    print({{"begins", i}});
    const auto outcome =
        weir::replay::replay(devices.at(made_on), *recorded, work, arguments.wishes);
    if (outcome.left_out.empty()) {
      print({{"work", i}, {"seconds", outcome.seconds}});
    } else {
      print({{"work", i}, {"left_out", outcome.left_out}});
    }
    if (outcome.lost) return 3;
  }
  print({{"ends", recorded->works.size()}});
  return 0;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = values[i];
    if (!name.starts_with("--") && arguments.file.empty()) {
      arguments.file = name;
    } else if (i + 1 == count || !take(name, values[++i], arguments)) {
      std::fprintf(stderr, "weir-replay-vulkan: what is %s for?\n",
                   values[i < count ? i : count - 1]);
      return 2;
    }
  }
  if (arguments.file.empty()) {
    std::fputs("weir-replay-vulkan: no file\n", stderr);
    return 2;
  }
  const int status = replay(arguments);
  std::fflush(stdout);
  std::_Exit(status);  // no driver's destructors
}
