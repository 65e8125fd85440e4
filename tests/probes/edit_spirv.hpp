// Changes code as a commit to a shader would: SPIR-V in, SPIR-V out that is as valid as before. For
// tests: what comes in is an engine's own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace weir::edit {

using Words = std::vector<std::uint32_t>;

class Module {
 public:
  explicit Module(const Words& words) : header_(words.begin(), words.begin() + 5) {
    for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
      all_.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(at),
                        words.begin() + static_cast<std::ptrdiff_t>(at + (words[at] >> 16)));
    }
  }

  [[nodiscard]] Words words() const {
    Words out = header_;
    for (const Words& instruction : all_)
      out.insert(out.end(), instruction.begin(), instruction.end());
    return out;
  }

  // Loops' hints: 1 Unroll, 2 DontUnroll, 0 none.
  bool unroll(std::uint32_t hint) {
    return each(246, [&](Words& loop) {
      const std::uint32_t was = loop[3];
      loop[3] = (was & ~3U) | hint;
      return loop[3] != was;
    });
  }
  // Another instruction with the same operands. `most`: of the first so many.
  bool swap(std::uint32_t from, std::uint32_t to, int most) {
    return each(from, [&](Words& instruction) {
      if (most-- <= 0) return false;
      instruction[0] = (instruction[0] & 0xffff0000) | to;
      return true;
    });
  }
  // Repeats ops without a result: barriers, stores.
  bool repeat(std::uint32_t op, std::size_t times) {
    std::vector<Words> out;
    bool any = false;
    for (Words& instruction : all_) {
      const bool fits = op_of(instruction) == op;
      any = any || fits;
      out.insert(out.end(), fits ? times : 1, instruction);
    }
    all_ = std::move(out);
    return any;
  }
  bool undecorate(std::uint32_t decoration) {
    return std::erase_if(all_, [&](const Words& instruction) {
             return (op_of(instruction) == 71 && instruction[2] == decoration) ||
                    (op_of(instruction) == 72 && instruction[3] == decoration);
           }) > 0;
  }
  // NoContraction on sums, differences and products of floats: none becomes a fused multiply-add.
  bool precise() {
    std::vector<Words> marks;
    for (const Words& instruction : all_) {
      const std::uint32_t op = op_of(instruction);
      if (op == 129 || op == 131 || op == 133) marks.push_back({3U << 16 | 71, instruction[2], 42});
    }
    insert_annotations(marks);
    return !marks.empty();
  }
  // A scalar constant of 32 bits.
  bool literal(std::uint32_t from, std::uint32_t to) {
    return each(43, [&](Words& instruction) {
      if (instruction.size() != 4 || instruction[3] != from) return false;
      instruction[3] = to;
      return true;
    });
  }
  bool fallback(std::uint32_t spec_id, std::uint32_t to) {
    std::uint32_t id = 0;
    for (const Words& instruction : all_) {
      if (op_of(instruction) == 71 && instruction[2] == 1 && instruction[3] == spec_id)
        id = instruction[1];
    }
    return id != 0 && each(50, [&](Words& instruction) {
             if (instruction[2] != id) return false;
             instruction[3] = to;
             return true;
           });
  }
  // Arrays in shared memory, longer by a factor.
  bool shared(std::uint32_t factor) {
    std::vector<std::uint32_t> types;  // types of Workgroup pointers
    for (const Words& instruction : all_) {
      if (op_of(instruction) == 32 && instruction[2] == 4) types.push_back(instruction[3]);
    }
    std::vector<Words> out;
    bool any = false;
    for (Words instruction : all_) {
      if (op_of(instruction) == 28 && std::count(types.begin(), types.end(), instruction[1]) > 0) {
        const std::uint32_t number = type_of(instruction[3]);
        const std::uint32_t times = header_[3]++, length = header_[3]++;
        out.push_back({4U << 16 | 43, number, times, factor});
        out.push_back({6U << 16 | 52, number, length, 132, instruction[3], times});
        instruction[3] = length;
        any = true;
      }
      out.push_back(std::move(instruction));
    }
    all_ = std::move(out);
    return any;
  }
  // A local size that the code says by itself.
  bool local_size(std::uint32_t x) {
    return each(16, [&](Words& instruction) {
      if (instruction[2] != 17) return false;
      instruction[3] = x;
      return true;
    });
  }

 private:
  static std::uint32_t op_of(const Words& instruction) { return instruction[0] & 0xffff; }

  template <class Change>
  bool each(std::uint32_t op, const Change& change) {
    bool any = false;
    for (Words& instruction : all_) {
      if (op_of(instruction) == op && change(instruction)) any = true;
    }
    return any;
  }
  // Constants have their type first.
  [[nodiscard]] std::uint32_t type_of(std::uint32_t id) const {
    for (const Words& instruction : all_) {
      if (op_of(instruction) >= 41 && op_of(instruction) <= 52 && instruction[2] == id)
        return instruction[1];
    }
    return 0;
  }
  void insert_annotations(const std::vector<Words>& marks) {
    for (std::size_t at = 0; at < all_.size(); ++at) {
      if (op_of(all_[at]) != 71) continue;
      all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(at), marks.begin(), marks.end());
      return;
    }
  }

  Words header_;
  std::vector<Words> all_;
};

// "16", "0x10", and floats by their bits: "0.5".
inline std::uint32_t parse_number(const std::string& text) {
  if (text.find('.') != std::string::npos) return std::bit_cast<std::uint32_t>(std::stof(text));
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 0));
}

// One edit in words: "unroll off", "swap 133 129 4", "repeat 224 2", "undecorate 19", "precise",
// "literal 0.125 0.25", "default 2 64", "shared 2", "local 128". false: nothing to change.
inline bool apply(Module& code, const std::vector<std::string>& words) {
  const auto number = [&](std::size_t at, std::uint32_t otherwise) {
    return at < words.size() ? parse_number(words[at]) : otherwise;
  };
  const std::string& what = words[0];
  const std::uint32_t a = words.size() > 1 && what != "unroll" ? parse_number(words[1]) : 0;
  if (what == "unroll") {
    if (words.at(1) == "on") return code.unroll(1);
    return code.unroll(words.at(1) == "off" ? 2 : 0);
  }
  if (what == "swap") return code.swap(a, number(2, 0), static_cast<int>(number(3, 1U << 20)));
  if (what == "repeat") return code.repeat(a, number(2, 2));
  if (what == "undecorate") return code.undecorate(a);
  if (what == "precise") return code.precise();
  if (what == "literal") return code.literal(a, number(2, 0));
  if (what == "default") return code.fallback(a, number(2, 0));
  if (what == "shared") return code.shared(a);
  if (what == "local") return code.local_size(a);
  return false;
}

}  // namespace weir::edit
