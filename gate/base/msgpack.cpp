// Visits MessagePack by the parser of nlohmann_json.
#include "gate/base/msgpack.hpp"

#include <nlohmann/json.hpp>

namespace weir {
namespace {

// Hands the parser's events on, and stops it at a document that is too deep.
class Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Events(std::size_t max_depth, MsgpackVisitor& visitor)
      : max_depth_(max_depth), visitor_(visitor) {}
  [[nodiscard]] const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t number) override {
    if (number >= 0) visitor_.on_number(depth_, static_cast<std::uint64_t>(number));
    return true;
  }
  bool number_unsigned(number_unsigned_t number) override {
    visitor_.on_number(depth_, number);
    return true;
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t& text) override {
    visitor_.on_text(depth_, text);
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return begin(); }
  bool key(string_t& key) override {
    visitor_.on_key(depth_, key);
    return true;
  }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return begin(); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    problem_ = "broken at byte " + std::to_string(position);
    return false;
  }

 private:
  bool begin() {
    if (depth_ == max_depth_) {
      problem_ = "more than " + std::to_string(max_depth_) + " levels deep";
      return false;
    }
    visitor_.on_begin(depth_);
    ++depth_;
    return true;
  }
  bool end() {
    --depth_;
    visitor_.on_end(depth_);
    return true;
  }

  std::size_t max_depth_, depth_ = 0;
  MsgpackVisitor& visitor_;
  std::string problem_;
};

}  // namespace

Result<void> visit_msgpack(std::string_view bytes, std::size_t max_depth, MsgpackVisitor& visitor) {
  Events events(max_depth, visitor);
  const bool is_whole = nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &events,
                                                  nlohmann::json::input_format_t::msgpack);
  if (is_whole) return {};
  return fail(Code::data, "MessagePack: {}", events.problem());
}

}  // namespace weir
