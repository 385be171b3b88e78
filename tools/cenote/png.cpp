#include "png.hpp"

#include "failure.hpp"

#include <spng.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace cenote::tool {
namespace {

struct Deleter {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using SpngPointer = std::unique_ptr<spng_ctx, Deleter>;

// Chunks that cost memory (text, colour profiles) and are of no use here.
constexpr std::size_t kMaxChunkBytes = std::size_t{8} << 20;
constexpr std::size_t kMaxChunkCache = std::size_t{32} << 20;

constexpr unsigned char kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
// Signature, then the IHDR chunk: length, name, 13 bytes, checksum.
constexpr std::size_t kStartBytes = 33;
// Colour profiles and texts a file may carry beside its pixels.
constexpr std::int64_t kMostOtherBytes = std::int64_t{64} << 20;

int bits_per_pixel(int color_type, int bit_depth) {
  switch (color_type) {
    case SPNG_COLOR_TYPE_TRUECOLOR: return 3 * bit_depth;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA: return 2 * bit_depth;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA: return 4 * bit_depth;
    default: return bit_depth;
  }
}

/// Bytes of the scanlines as deflate sees them, one filter byte each; kMaxPictureBytes + 1 where they are more.
std::int64_t scanline_bytes(std::int64_t width, std::int64_t height, int bits) {
  const std::int64_t scanline = (width * bits + 7) / 8 + 1;
  return scanline > kMaxPictureBytes / std::max<std::int64_t>(height, 1) ? kMaxPictureBytes + 1 : scanline * height;
}

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

Failure ends_early(const std::string& name) {
  return Failure::make(ExitCode::input, "{}: the .png file ends early", name);
}

}  // namespace

bool starts_like_png(std::span<const std::byte> start) {
  return !start.empty() && std::memcmp(start.data(), kSignature, std::min(start.size(), sizeof kSignature)) == 0;
}

std::int64_t largest_png_file(std::span<const std::byte> start, const std::string& name) {
  if (start.size() < kStartBytes) throw ends_early(name);
  const std::byte* header = start.data() + sizeof kSignature + 8;
  const int bits = bits_per_pixel(std::to_integer<int>(header[9]), std::to_integer<int>(header[8]));
  const std::uint32_t width = big_endian(header), height = big_endian(header + 4);
  const std::int64_t claimed = scanline_bytes(width, height, bits);
  if (claimed > kMaxPictureBytes) {
    throw Failure::make(ExitCode::input, "{}: claims {} x {} pixels, more than the {} GiB a picture may have", name,
                        width, height, kMaxPictureBytes >> 30);
  }
  return 2 * claimed + kMostOtherBytes;
}

void check_png_chunks(const ReadAt& read_at, std::int64_t file_size, const std::string& name) {
  constexpr std::int64_t kAround = 12;  // length and name before a chunk's bytes, the checksum behind them
  std::int64_t at = sizeof kSignature;
  for (;;) {
    std::byte start[8];
    if (read_at(at, start) != sizeof start) throw ends_early(name);
    at += kAround + big_endian(start);
    if (at > file_size) throw ends_early(name);
    if (std::memcmp(start + 4, "IEND", 4) == 0) break;
  }
  if (at < file_size) {
    throw Failure::make(ExitCode::input, "{}: goes on after the end of its picture; a .png file holds nothing else",
                        name);
  }
}

struct PngReader::Context {
  ReadSome source;
  std::exception_ptr error;
  std::string name;
  SpngPointer spng;
  std::vector<std::byte> whole;  // interlaced pictures only
  std::int64_t next_row = 0;

  [[noreturn]] void fail(int code) const {
    if (error) std::rethrow_exception(error);
    if (code == SPNG_EOF || code == SPNG_IO_EOF) throw ends_early(name);
    if (code == SPNG_EOVERFLOW)
      throw Failure::make(ExitCode::input, "{}: claims more pixels than any .png file can hold", name);
    throw Failure::make(ExitCode::input, "{}: not a valid .png file: {}", name, spng_strerror(code));
  }

  // An exception may not pass through libspng's C: it is kept and thrown again by fail().
  static int read(spng_ctx*, void* user, void* destination, std::size_t length) {
    auto* self = static_cast<Context*>(user);
    try {
      std::span<std::byte> bytes(static_cast<std::byte*>(destination), length);
      while (!bytes.empty()) {
        const std::size_t got = self->source(bytes);
        if (got == 0) return SPNG_IO_EOF;
        bytes = bytes.subspan(got);
      }
      return 0;
    } catch (...) {
      self->error = std::current_exception();
      return SPNG_IO_ERROR;
    }
  }
};

PngReader::PngReader(ReadSome source, std::int64_t file_size, const std::string& name)
    : context_(std::make_unique<Context>()) {
  Context& context = *context_;
  context.source = std::move(source);
  context.name = name;
  context.spng.reset(spng_ctx_new(0));
  if (context.spng == nullptr) throw std::bad_alloc();
  spng_ctx* spng = context.spng.get();
  spng_set_chunk_limits(spng, kMaxChunkBytes, kMaxChunkCache);
  if (const int code = spng_set_png_stream(spng, Context::read, &context); code != 0) context.fail(code);
  spng_ihdr header{};
  if (const int code = spng_get_ihdr(spng, &header); code != 0) context.fail(code);

  const std::int64_t claimed =
      scanline_bytes(header.width, header.height, bits_per_pixel(header.color_type, header.bit_depth));
  const bool interlaced = header.interlace_method != SPNG_INTERLACE_NONE;
  if (claimed > kMaxPictureBytes || claimed / 1032 > file_size) {
    throw Failure::make(ExitCode::input, "{}: claims {} x {} pixels, more than a file of {} bytes can hold", name,
                        header.width, header.height, file_size);
  }

  spng_trns transparency{};
  const int trns_code = spng_get_trns(spng, &transparency);  // reads the chunks before the first IDAT
  if (trns_code != 0 && trns_code != SPNG_ECHUNKAVAIL) context.fail(trns_code);
  const bool transparent = trns_code == 0;
  int format = SPNG_FMT_PNG;
  format_ = {.width = header.width, .height = header.height, .channels = 1, .bits = header.bit_depth == 16 ? 16 : 8};
  switch (header.color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE:
      format_.channels = transparent ? 2 : 1;
      if (transparent)
        format = format_.bits == 16 ? SPNG_FMT_GA16 : SPNG_FMT_GA8;
      else if (format_.bits == 8)
        format = SPNG_FMT_G8;
      break;
    case SPNG_COLOR_TYPE_TRUECOLOR:
      format_.channels = transparent ? 4 : 3;
      if (transparent) format = format_.bits == 16 ? SPNG_FMT_RGBA16 : SPNG_FMT_RGBA8;
      break;
    case SPNG_COLOR_TYPE_INDEXED:
      format_.channels = transparent ? 4 : 3;
      format = transparent ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
      break;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA: format_.channels = 2; break;
    default: format_.channels = 4; break;
  }
  const std::int64_t limit = interlaced ? kMaxInterlacedBytes : kMaxPictureBytes;
  if (format_.row_bytes() > limit / format_.height) {
    throw Failure::make(ExitCode::input,
                        "{}: {} x {} pixels are more than the {} GiB a{} picture may have when decoded", name,
                        header.width, header.height, limit >> 30, interlaced ? "n interlaced" : "");
  }
  const int flags = transparent ? SPNG_DECODE_TRNS : 0;
  if (interlaced) {
    context.whole.resize(static_cast<std::size_t>(format_.bytes()));
    if (const int code = spng_decode_image(spng, context.whole.data(), context.whole.size(), format, flags);
        code != 0) {
      context.fail(code);
    }
  } else if (const int code = spng_decode_image(spng, nullptr, 0, format, flags | SPNG_DECODE_PROGRESSIVE); code != 0) {
    context.fail(code);
  }
}

PngReader::~PngReader() = default;

void PngReader::read_row(std::span<std::byte> row) {
  Context& context = *context_;
  const std::int64_t index = context.next_row++;
  if (!context.whole.empty()) {
    std::memcpy(row.data(), context.whole.data() + index * format_.row_bytes(), row.size());
    return;
  }
  const int code = spng_decode_row(context.spng.get(), row.data(), row.size());
  const bool last = index + 1 == format_.height;
  if (code != 0 && !(last && code == SPNG_EOI)) context.fail(code);
}

struct PngWriter::Context {
  Write sink;
  std::exception_ptr error;
  std::string name;
  SpngPointer spng;

  [[noreturn]] void fail(int code) const {
    if (error) std::rethrow_exception(error);
    throw Failure::make(ExitCode::output, "{}: cannot be written as .png: {}", name, spng_strerror(code));
  }
  static int write(spng_ctx*, void* user, void* source, std::size_t length) {
    auto* self = static_cast<Context*>(user);
    try {
      self->sink(std::span<const std::byte>(static_cast<const std::byte*>(source), length));
      return 0;
    } catch (...) {
      self->error = std::current_exception();
      return SPNG_IO_ERROR;
    }
  }
};

PngWriter::PngWriter(Write sink, const PictureFormat& format, const std::string& name)
    : context_(std::make_unique<Context>()) {
  Context& context = *context_;
  context.sink = std::move(sink);
  context.name = name;
  context.spng.reset(spng_ctx_new(SPNG_CTX_ENCODER));
  if (context.spng == nullptr) throw std::bad_alloc();
  spng_ctx* spng = context.spng.get();
  constexpr spng_color_type kTypes[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                        SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(format.width);
  header.height = static_cast<std::uint32_t>(format.height);
  header.bit_depth = static_cast<std::uint8_t>(format.bits);
  header.color_type = static_cast<std::uint8_t>(kTypes[format.channels - 1]);
  if (const int code = spng_set_png_stream(spng, Context::write, &context); code != 0) context.fail(code);
  if (const int code = spng_set_ihdr(spng, &header); code != 0) context.fail(code);
  const int flags = SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE;
  if (const int code = spng_encode_image(spng, nullptr, 0, SPNG_FMT_PNG, flags); code != 0) context.fail(code);
}

PngWriter::~PngWriter() = default;

void PngWriter::write_row(std::span<const std::byte> row) {
  const int code = spng_encode_row(context_->spng.get(), row.data(), row.size());
  if (code != 0 && code != SPNG_EOI) context_->fail(code);
}

}  // namespace cenote::tool
