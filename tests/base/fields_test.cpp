// Tests how fields are written as JSON, read back and refused.
#include "gate/base/fields.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir {

enum class Shape { round, square };
constexpr auto k_shapes =
    std::to_array<Name<Shape>>({{Shape::round, "round"}, {Shape::square, "square"}});

struct Part {
  std::string name;
  std::vector<double> sizes;
  friend bool operator==(const Part&, const Part&) = default;
};
static void fields(Fields& io, Part& part) {
  io("name", part.name);
  io.always("sizes", part.sizes);
}

struct Thing {
  std::string name;
  Shape shape = Shape::round;
  std::int64_t tries = 1;
  std::int64_t small = 0;
  bool open = false;
  double seconds = 0;
  std::optional<double> mean{}, low{};
  std::optional<Rational> slope{};
  std::string note{};
  std::map<std::string, std::int64_t> counts{};
  std::set<std::string> words{};
  std::vector<Part> parts{};
  std::optional<Part> spare{};
  std::map<std::string, std::vector<Part>> by_name{};
  friend bool operator==(const Thing&, const Thing&) = default;
};
static void fields(Fields& io, Thing& thing) {
  io("name", thing.name);
  io("shape", Named{thing.shape, k_shapes, "has no shape"});
  io.unless("tries", thing.tries, 1);
  io.check(thing.tries > 0, "was never tried");
  io.optional("small", Within{thing.small, 0, 9});
  io.optional("open", thing.open);
  io.always("seconds", thing.seconds);
  io.always("mean", RoundedNumber{thing.mean});
  io.optional("low", thing.low);
  io.optional("slope", thing.slope);
  io.always("note", NullIfEmpty{thing.note});
  io.optional("counts", thing.counts);
  io.optional("words", thing.words);
  io.limit_items("parts", 3, "has too many parts");
  io.optional("parts", thing.parts, ".parts[]");
  io.optional("spare", thing.spare, "a spare");
  io.optional("by_name", thing.by_name);
  io.write_only("title", thing.name + "!");
}

namespace fields_test {

std::string thing_text(const Thing& thing) { return dump_json(write_fields(thing)); }

Result<Thing> read(std::string_view text) {
  const auto json = parse_json(text);
  return json ? read_fields<Thing>(*json, "thing") : tl::unexpected(json.error());
}

std::string complaint(std::string_view text) {
  const auto thing = read(text);
  return thing ? "" : thing.error().message;
}

TEST(Fields, WriteWhatIsThereAndReadItBack) {
  Thing thing{.name = "a", .seconds = 2};
  EXPECT_EQ(thing_text(thing),
            R"({"mean":null,"name":"a","note":null,"seconds":2.0,"shape":"round","title":"a!"})");
  EXPECT_EQ(read(thing_text(thing)), thing);
  thing = {.name = "b",
           .shape = Shape::square,
           .tries = 2,
           .small = 3,
           .open = true,
           .seconds = 0.5,
           .mean = 65,
           .low = 65,
           .slope = Rational::parse("133/2"),
           .note = "n",
           .counts = {{"x", 1}},
           .words = {"w"},
           .parts = {{"p", {1}}},
           .spare = Part{"s", {}},
           .by_name = {{"k", {{"q", {}}}}}};
  EXPECT_EQ(thing_text(thing),
            R"({"by_name":{"k":[{"name":"q","sizes":[]}]},"counts":{"x":1},"low":65.0,"mean":65,)"
            R"("name":"b","note":"n","open":true,"parts":[{"name":"p","sizes":[1.0]}],)"
            R"("seconds":0.5,"shape":"square","slope":"133/2","small":3,)"
            R"("spare":{"name":"s","sizes":[]},"title":"b!","tries":2,"words":["w"]})");
  EXPECT_EQ(read(thing_text(thing)), thing);
}

struct Nothing {
  std::string note;
};
void fields(Fields& io, Nothing& nothing) { io.optional("note", nothing.note); }

TEST(Fields, WriteAnObjectEvenWithoutAField) {
  EXPECT_EQ(dump_json(write_fields(std::vector<Nothing>(1))), "[{}]");
}

TEST(Fields, WriteNullForWhatJsonCanNotHold) {
  const Thing thing{.name = "a", .mean = std::numeric_limits<double>::infinity()};
  EXPECT_TRUE(parse_json(thing_text(thing))->at("mean").is_null());
}

TEST(Fields, RefuseWhatIsNotAsItShouldBeAndSayWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "thing should be an object"},
      {"{}", "thing lacks \"name\""},
      {R"({"name":null})", "thing lacks \"name\""},
      {R"({"name":1})", "thing \"name\" should be a string"},
      {R"({"name":"a","shape":"flat"})", "thing has no shape"},
      {R"({"name":"a","shape":"round","tries":1.5})", "thing \"tries\" should be a whole number"},
      {R"({"name":"a","shape":"round","tries":9223372036854775808})",
       "thing \"tries\" should be a whole number"},
      {R"({"name":"a","shape":"round","tries":0})", "thing was never tried"},
      {R"({"name":"a","shape":"round","small":12})", "thing \"small\" is 12, not 0 to 9"},
      {R"({"name":"a","shape":"round","open":1})", "thing \"open\" should be true or false"},
      {R"({"name":"a","shape":"round","mean":"1"})", "thing \"mean\" should be a finite number"},
      {R"({"name":"a","shape":"round","slope":"1/0"})",
       "thing \"slope\" should be a whole number or \"133/2\""},
      {R"({"name":"a","shape":"round","counts":{"x":"1"}})",
       "thing \"counts\" should hold whole numbers only"},
      {R"({"name":"a","shape":"round","words":[1]})", "thing \"words\" should hold strings only"},
      {R"({"name":"a","shape":"round","parts":{}})", "thing \"parts\" should be a list"},
      {R"({"name":"a","shape":"round","parts":[{},{},{},{}]})", "thing has too many parts"},
      {R"({"name":"a","shape":"round","parts":[{"name":"p"},{}]})",
       "thing.parts[1] lacks \"name\""},
      {R"({"name":"a","shape":"round","parts":[1]})", "thing.parts[0] should be an object"},
      {R"({"name":"a","shape":"round","spare":{}})", "a spare lacks \"name\""},
      {R"({"name":"a","shape":"round","spare":[]})", "thing \"spare\" should be an object"},
      {R"({"name":"a","shape":"round","by_name":{"k":[{}]}})", "k[0] lacks \"name\""},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(complaint(text), wanted) << text;
  EXPECT_EQ(complaint(R"({"name":"a","shape":"round","later":1,"open":null})"), "");
}

}  // namespace fields_test
}  // namespace weir
