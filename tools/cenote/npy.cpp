#include "npy.hpp"

#include "failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

namespace cenote::tool {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kDtypes = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4, or V2 for bfloat16";

/// The header is a Python dictionary literal. This reads the part of Python that can occur in one that we accept.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        descr();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header_.fortran_order = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        shape();
      } else {
        fail("has an unexpected or repeated entry '{}'", printable(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) fail("continues after its closing brace");
    if (!has_descr || !has_order || !has_shape)
      fail("lacks {}", !has_descr ? "descr" : !has_order ? "fortran_order" : "shape");
    return header_;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Failure::make(ExitCode::input, "{}: the .npy header {}", name_,
                        fmt::format(format, std::forward<Args>(args)...));
  }

  void fail_at_end() const {
    if (position_ >= text_.size()) fail("of {} bytes is too short: it ends inside its dictionary", text_.size());
  }

  static std::string printable(std::string_view text) {
    std::string result;
    for (const char c : text.substr(0, 40)) result += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
    return result;
  }

  void skip_space() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n' || text_[position_] == '\t'))
      ++position_;
  }
  bool accept(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (accept(c)) return;
    fail_at_end();
    fail("is malformed at byte {}: '{}' expected", position_, c);
  }

  std::string_view string() {
    skip_space();
    fail_at_end();
    if (text_[position_] != '\'' && text_[position_] != '"') {
      fail("is malformed at byte {}: a string expected", position_);
    }
    const char quote = text_[position_++];
    const std::size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) position_ = text_.size();
    fail_at_end();
    const std::string_view value = text_.substr(position_, end - position_);
    position_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return value;
      }
    }
    fail("says neither True nor False for fortran_order");
  }

  void shape() {
    expect('(');
    std::int64_t sizes[kMaxArrayRank] = {};
    int rank = 0;
    while (!accept(')')) {
      skip_space();
      if (position_ < text_.size() && text_[position_] == '-') fail("has a negative size in its shape");
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
      if (error == std::errc::result_out_of_range) fail("has a size of more than 63 bits in its shape");
      if (error != std::errc()) fail("has something else than sizes in its shape");
      position_ = static_cast<std::size_t>(end - text_.data());
      if (rank == kMaxArrayRank) fail("has a shape of more than {} dimensions", kMaxArrayRank);
      sizes[rank++] = value;
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    header_.shape = Shape(std::span<const std::int64_t>(sizes, static_cast<std::size_t>(rank)));
  }

  void descr() {
    skip_space();
    if (position_ < text_.size() && text_[position_] == '[')
      fail("describes a structured array; a plain dtype is needed ({})", kDtypes);
    const std::string_view text = string();
    struct Entry {
      std::string_view code;
      DType dtype;
    };
    constexpr Entry kEntries[] = {{"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}, {"V2", DType::bf16},
                                  {"i1", DType::i8},  {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64},
                                  {"u1", DType::u8},  {"u2", DType::u16}, {"u4", DType::u32}};
    if (text.size() == 3 && (text[0] == '<' || text[0] == '>' || text[0] == '|' || text[0] == '=')) {
      for (const Entry& entry : kEntries) {
        if (text.substr(1) != entry.code) continue;
        header_.dtype = entry.dtype;
        const bool big = text[0] == '>';
        header_.swapped = size_of(entry.dtype) > 1 && text[0] != '|' && text[0] != '=' &&
                          big != (std::endian::native == std::endian::big);
        return;
      }
    }
    if (text == "bfloat16") {
      header_.dtype = DType::bf16;
      return;
    }
    fail("has dtype '{}', which cenote does not pool; it reads {}", printable(text), kDtypes);
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0;
  NpyHeader header_;
};

/// Bytes of header and array, or -1 where they are more than 63 bits can count. A size of 0 does not excuse the others.
std::int64_t checked_file_bytes(const NpyHeader& header) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(header.dtype));
  bool empty = false;
  for (const std::int64_t size : header.shape) {
    if (size == 0) {
      empty = true;
    } else if (bytes > std::numeric_limits<std::int64_t>::max() / size) {
      return -1;
    } else {
      bytes *= size;
    }
  }
  if (bytes > std::numeric_limits<std::int64_t>::max() - header.data_offset) return -1;
  return header.data_offset + (empty ? 0 : bytes);
}

}  // namespace

bool starts_like_npy(std::span<const std::byte> start) {
  const std::string_view bytes(reinterpret_cast<const char*>(start.data()), start.size());
  return !bytes.empty() && kMagic.substr(0, bytes.size()) == bytes.substr(0, kMagic.size());
}

NpyHeader read_npy_header(std::span<const std::byte> start, const std::string& name) {
  const std::string_view bytes(reinterpret_cast<const char*>(start.data()), start.size());
  if (!starts_like_npy(start)) {
    throw Failure::make(ExitCode::input, "{}: not a .npy file (the first bytes are not \\x93NUMPY)", name);
  }
  if (bytes.size() < 10)
    throw Failure::make(ExitCode::input, "{}: ends inside the .npy header, after {} bytes", name, bytes.size());
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(std::to_integer<unsigned>(start[i])); };
  const std::size_t major = at(6), minor = at(7);
  if (major < 1 || major > 3 || minor != 0) {
    throw Failure::make(ExitCode::input, "{}: .npy version {}.{}; 1.0, 2.0 and 3.0 are known", name, major, minor);
  }
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (bytes.size() < prefix)
    throw Failure::make(ExitCode::input, "{}: ends inside the .npy header, after {} bytes", name, bytes.size());
  const std::size_t length = major == 1 ? at(8) | at(9) << 8 : at(8) | at(9) << 8 | at(10) << 16 | at(11) << 24;
  if (length > kMaxNpyHeader - prefix) {
    throw Failure::make(ExitCode::input, "{}: the .npy header claims {} bytes, more than the {} that are read", name,
                        length, kMaxNpyHeader - prefix);
  }
  if (bytes.size() < prefix + length) {
    throw Failure::make(ExitCode::input, "{}: ends inside the .npy header: {} bytes, {} expected", name, bytes.size(),
                        prefix + length);
  }
  NpyHeader header = HeaderParser(bytes.substr(prefix, length), name).parse();
  header.data_offset = static_cast<std::int64_t>(prefix + length);

  if (checked_file_bytes(header) < 0) {
    throw Failure::make(ExitCode::input, "{}: shape {} of {} needs more bytes of data than 63 bits can count", name,
                        to_string(header.shape), name_of(header.dtype));
  }
  return header;
}

NpyHeader parse_npy_header(std::span<const std::byte> start, std::int64_t file_size, const std::string& name) {
  const NpyHeader header = read_npy_header(start, name);
  const std::int64_t needed = header.data_bytes(), present = file_size - header.data_offset;
  if (needed > present) {
    throw Failure::make(ExitCode::input, "{}: shape {} of {} needs {} bytes of data, the file has {}", name,
                        to_string(header.shape), name_of(header.dtype), needed, present);
  }
  if (needed < present) {
    throw Failure::make(ExitCode::input,
                        "{}: goes on after the array of shape {}; a .npy file holds one array and nothing else", name,
                        to_string(header.shape));
  }
  return header;
}

std::vector<std::byte> make_npy_header(DType dtype, const Shape& shape, bool fortran_order) {
  const char* code = nullptr;
  switch (dtype) {
    case DType::f32: code = "f4"; break;
    case DType::f64: code = "f8"; break;
    case DType::f16: code = "f2"; break;
    case DType::bf16: code = "V2"; break;
    case DType::i8: code = "i1"; break;
    case DType::u8: code = "u1"; break;
    case DType::i16: code = "i2"; break;
    case DType::i32: code = "i4"; break;
    case DType::i64: code = "i8"; break;
    case DType::u16: code = "u2"; break;
    case DType::u32: code = "u4"; break;
  }
  const bool unordered = size_of(dtype) == 1 || dtype == DType::bf16;
  const char order = unordered ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  const std::string tuple =
      shape.rank() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': {}, }}", order, code,
                                 fortran_order ? "True" : "False", tuple);
  text.append(64 - (10 + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(text.size() & 0xff);
  file += static_cast<char>(text.size() >> 8);
  file += text;
  std::vector<std::byte> bytes(file.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  return bytes;
}

}  // namespace cenote::tool
