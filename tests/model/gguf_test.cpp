// Tests of reading GGUF headers.
#include "gate/model/gguf.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "gate/base/hash.hpp"
#include "gate/model/gguf_encoding.hpp"
#include "gate/model/make.hpp"
#include "gate/model/tensor_type.hpp"
#include "gate/model/twin.hpp"

namespace weir::model {
namespace gguf_test {

// A header with a value of every type, nested arrays and two tensors.
GgufHeader full_header() {
  GgufHeader header;
  const auto put = [&](const char* key, GgufValue value) {
    header.metadata.emplace_back(key, std::move(value));
  };
  put("general.architecture", GgufValue::string("odd"));
  put("general.alignment", GgufValue::u32(64));
  header.alignment = 64;
  put("u8", {GgufType::u8, "\xff"});
  put("i8", {GgufType::i8, "\xff"});
  put("u16", {GgufType::u16, "\x01\x02"});
  put("i16", {GgufType::i16, "\xfe\xff"});
  put("i32", {GgufType::i32, "\xff\xff\xff\xff"});
  put("f32", GgufValue::f32_bits(0x3f800000));
  put("yes", GgufValue::boolean(true));
  put("u64", {GgufType::u64, std::string(8, '\xff')});
  put("i64", {GgufType::i64, std::string(8, '\xff')});
  put("f64", {GgufType::f64, std::string("\0\0\0\0\0\0\xf8\x3f", 8)});  // 1.5
  put("names", GgufValue::strings(std::vector<std::string>{"a", "", "ccc"}));
  put("numbers", GgufValue::i32s(std::vector<std::int32_t>{1, -2, 3}));
  std::string inner;  // an array of one array of two u8
  encode<std::uint32_t>(inner, 0);
  encode<std::uint64_t>(inner, 2);
  inner += "\x07\x08";
  put("nested", {GgufType::array, 1, inner});
  header.tensors = {{"a.weight", {32, 3}, static_cast<std::uint32_t>(TensorType::q8_0), 0},
                    {"b", {5}, static_cast<std::uint32_t>(TensorType::f32), 0}};
  return header;
}

std::string encoded(GgufHeader& header) {
  auto bytes = encode_gguf_header(header);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes.value_or("");
}

// Returns "" if read_gguf finds a header in the bytes, "more" if it needs more, else the error.
std::string read_outcome(std::string_view bytes, const GgufLimits& limits = {}) {
  const auto read = read_gguf(bytes, limits);
  if (!read) return read.error().message;
  return read->header ? "" : "more";
}

TEST(GgufHeader, ReadsBackWhatTheWriterWrote) {
  GgufHeader header = full_header();
  const std::string bytes = encoded(header);
  const auto read = read_gguf(bytes);
  ASSERT_TRUE(read && read->header);
  EXPECT_EQ(read->header->metadata, header.metadata);
  EXPECT_EQ(read->header->tensors, header.tensors);
  EXPECT_EQ(read->header->alignment, 64U);
  EXPECT_EQ(read->header->bytes, header.bytes);
  EXPECT_EQ(read->header->data_start, bytes.size());
  EXPECT_EQ(read->header->data_start % 64, 0U);
  EXPECT_EQ(read->header->hash, hash_hex(std::string_view(bytes).substr(0, header.bytes)));
  // 3 rows of one Q8_0 block are 102 bytes; the next tensor starts at the next multiple of 64.
  EXPECT_EQ(header.tensors[1].offset, 128U);
}

TEST(GgufHeader, ReadsNumbersByWhatTheyMean) {
  const GgufHeader header = full_header();
  const auto number = [&](const char* key) { return header.find(key)->to_unsigned(); };
  EXPECT_EQ(number("u8"), 255U);
  EXPECT_EQ(number("u16"), 513U);  // 0x0201
  EXPECT_EQ(number("u64"), ~std::uint64_t{0});
  for (const char* negative : {"i8", "i16", "i32", "i64"}) {
    EXPECT_EQ(number(negative), std::nullopt) << negative;
  }
  for (const char* mistyped : {"f32", "f64", "names"})
    EXPECT_EQ(number(mistyped), std::nullopt) << mistyped;
  EXPECT_EQ(header.find("numbers")->to_unsigned_list(), std::nullopt);  // -2
  EXPECT_EQ(header.find("names")->to_string_list(), (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_EQ(
      header.find("names")->with_elements_at(std::vector<std::uint64_t>{2, 0, 9}).to_string_list(),
      (std::vector<std::string>{"ccc", "a"}));
  EXPECT_EQ(header.find("u16")->with_unsigned(70000), std::nullopt);
  EXPECT_EQ(header.find("i16")->with_unsigned(7)->to_unsigned(), 7U);
  EXPECT_EQ(header.find("absent"), nullptr);
}

TEST(GgufHeader, AsksForMoreWhereverTheFileIsCut) {
  GgufHeader header = full_header();
  const std::string bytes = encoded(header);
  for (std::size_t size = 0; size < header.bytes; ++size) {
    const auto read = read_gguf(std::string_view(bytes).substr(0, size));
    ASSERT_TRUE(read) << size << ": " << read.error().message;
    ASSERT_FALSE(read->header) << size;
    ASSERT_GT(read->needed, size);
  }
  EXPECT_EQ(read_outcome(std::string_view(bytes).substr(0, header.bytes)), "");
}

TEST(GgufHeader, GrowsThePrefixUntilTheHeaderIsComplete) {
  ModelOptions options;
  options.vocab = 100000;  // a header of more than a MiB
  auto header = make_model(options);
  ASSERT_TRUE(header);
  const std::string bytes = encoded(*header);
  std::uint64_t requested_bytes = 0;
  const auto load_from = [&](std::string_view file) {
    return load_gguf([&, file](std::uint64_t count) -> Result<std::string> {
      requested_bytes += count;
      return std::string(file.substr(0, count));
    });
  };
  const auto loaded = load_from(bytes);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->hash, header->hash);
  EXPECT_LT(requested_bytes,
            8 * bytes.size());  // growing costs no more than a few times the header

  const auto cut = load_from(std::string_view(bytes).substr(0, 100000));
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("cut off: the file ends after 100000 bytes"),
            std::string::npos)
      << cut.error().message;
}

TEST(GgufHeader, RefusesWhatCanNotBeAHeader) {
  GgufHeader header = full_header();
  const std::string good = encoded(header);
  const auto with = [&](std::size_t at, std::string_view replacement) {
    std::string bytes = good;
    bytes.replace(at, replacement.size(), replacement);
    return bytes;
  };
  const auto key_twice = [&] {
    GgufHeader twice = full_header();
    twice.metadata.push_back(twice.metadata.front());
    return encoded(twice);
  };
  const auto tensor_twice = [&] {
    GgufHeader twice = full_header();
    twice.tensors.push_back(twice.tensors.front());
    return encoded(twice);
  };
  const auto with_alignment = [&](std::uint32_t alignment) {
    GgufHeader aligned = full_header();
    aligned.metadata[1].second = GgufValue::u32(alignment);
    return encoded(aligned);
  };
  const auto deep = [&](unsigned depth) {
    std::string bytes = good.substr(0, 16);
    encode<std::uint64_t>(bytes, 1);
    encode_string(bytes, "deep");
    encode<std::uint32_t>(bytes, 9);
    for (unsigned i = 0; i < depth; ++i) {
      encode<std::uint32_t>(bytes, 9);
      encode<std::uint64_t>(bytes, 1);
    }
    return bytes;
  };
  const std::string huge(8, '\x7f');
  const struct {
    std::string bytes;
    std::string_view says;
  } cases[] = {
      {"GGML and more", "does not begin with \"GGUF\""},
      {with(4, std::string("\1\0\0\0", 4)), "version 1"},
      {with(4, std::string("\0\0\0\3", 4)), "big-endian"},
      {with(8, huge), "tensors (at most 262144)"},
      {with(16, huge), "metadata keys (at most 65536)"},
      {with(24, huge), "a key of"},
      {with(24 + 8 + 20, "\x0d"), "unknown value type 13"},
      {with(24 + 8 + 20 + 4, huge), "a string of"},
      {key_twice(), "occurs twice"},
      {tensor_twice(), "occurs twice"},
      {with_alignment(0), "not a power of two"},
      {with_alignment(48), "not a power of two"},
      {deep(100), "nested deeper than 4"},
  };
  for (const auto& [bytes, says] : cases) {
    EXPECT_NE(read_outcome(bytes).find(says), std::string::npos)
        << says << " / " << read_outcome(bytes);
  }
  EXPECT_NE(read_outcome(good, {.header_bytes = 100}).find("larger than 100"), std::string::npos);
}

// Mutations of real headers and pure noise; with the sanitizers on this is the memory test.
TEST(GgufHeader, SurvivesTenThousandRandomInputs) {
  std::mt19937_64 random(20240607);  // NOLINT: the same inputs every time
  GgufHeader all = full_header();
  auto model = make_model({});
  ASSERT_TRUE(model);
  const std::string seeds[] = {encoded(all), encoded(*model)};
  int headers = 0;
  int refused = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string bytes;
    if (i % 10 == 0) {
      bytes = "GGUF";
      for (std::size_t n = random() % 300; n > 0; --n) bytes += static_cast<char>(random());
    } else {
      bytes = seeds[i % 2];
      for (std::size_t n = 1 + random() % 4; n > 0; --n) {
        const std::size_t at = random() % bytes.size();
        switch (random() % 4) {
          case 0:
            bytes[at] = static_cast<char>(random());
            break;
          case 1:
            bytes[at] = static_cast<char>(random() % 2 == 0 ? 0xff : 0);
            break;
          case 2:
            bytes.erase(at, random() % 16);
            break;
          default:
            bytes.insert(at, random() % 16, static_cast<char>(random()));
        }
        if (bytes.empty()) bytes = "G";
      }
    }
    auto read = read_gguf(bytes);
    refused += read ? 0 : 1;
    if (!read) continue;
    if (!read->header) {
      ASSERT_GT(read->needed, bytes.size());
      continue;
    }
    ++headers;
    ASSERT_LE(read->header->bytes, bytes.size());
    (void)shrink_model(*read->header, {}).has_value();
  }
  // Changed letters still make a header, changed lengths do not: the inputs reach both.
  EXPECT_GT(headers, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace gguf_test
}  // namespace weir::model
