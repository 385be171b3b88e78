#include "arrays.hpp"

#include "failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace cenote::tool {
namespace {

template <class T>
T load_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void store_integer(std::byte* element, double value) {
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  // 2^63 - 1 is no double: compare with the power of two, which is.
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  T result = 0;
  if (!std::isnan(value)) {
    const double rounded = std::nearbyint(value);
    result = rounded <= kLow    ? std::numeric_limits<T>::min()
             : rounded >= above ? std::numeric_limits<T>::max()
                                : static_cast<T>(rounded);
  }
  std::memcpy(element, &result, sizeof result);
}

template <class T>
void store_plain(std::byte* element, const T& value) {
  std::memcpy(element, &value, sizeof value);
}

Failure neither(std::span<const std::byte> start, const std::string& name) {
  return Failure::make(ExitCode::input, "{}: neither a .npy array nor a .png picture ({})", name,
                       start.empty() ? "it is empty" : "by its first bytes");
}

/// One byte more than the array has tells whether the stream goes on.
StreamSize size_of_stream(std::span<const std::byte> start, const std::string& name) {
  if (starts_like_png(start)) return {.most = largest_png_file(start, name), .exact = false};
  if (!starts_like_npy(start)) throw neither(start, name);
  const NpyHeader header = read_npy_header(start, name);
  return {.most = header.data_offset + header.data_bytes() + 1, .exact = true};
}

void swap_bytes(std::byte* data, std::int64_t count, std::size_t size) {
  for (std::int64_t i = 0; i < count; ++i, data += size) std::reverse(data, data + size);
}

}  // namespace

double element_as_double(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::f32: return load_as<float>(element);
    case DType::f64: return load_as<double>(element);
    case DType::f16: return to_float(load_as<f16>(element));
    case DType::bf16: return to_float(load_as<bf16>(element));
    case DType::i8: return load_as<std::int8_t>(element);
    case DType::u8: return load_as<std::uint8_t>(element);
    case DType::i16: return load_as<std::int16_t>(element);
    case DType::i32: return load_as<std::int32_t>(element);
    case DType::i64: return static_cast<double>(load_as<std::int64_t>(element));
    case DType::u16: return load_as<std::uint16_t>(element);
    case DType::u32: return load_as<std::uint32_t>(element);
  }
  return 0;
}

void store_double(DType dtype, std::byte* element, double value) {
  switch (dtype) {
    case DType::f32: return store_plain(element, static_cast<float>(value));
    case DType::f64: return store_plain(element, value);
    case DType::f16: return store_plain(element, to_f16(static_cast<float>(value)));
    case DType::bf16: return store_plain(element, to_bf16(static_cast<float>(value)));
    case DType::i8: return store_integer<std::int8_t>(element, value);
    case DType::u8: return store_integer<std::uint8_t>(element, value);
    case DType::i16: return store_integer<std::int16_t>(element, value);
    case DType::i32: return store_integer<std::int32_t>(element, value);
    case DType::i64: return store_integer<std::int64_t>(element, value);
    case DType::u16: return store_integer<std::uint16_t>(element, value);
    case DType::u32: return store_integer<std::uint32_t>(element, value);
  }
}

Strides dense_strides(const Shape& shape, bool fortran_order) {
  Strides strides = shape;
  std::int64_t step = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    const int dim = fortran_order ? i : shape.rank() - 1 - i;
    strides[dim] = step;
    step *= std::max<std::int64_t>(shape[dim], 1);
  }
  return strides;
}

struct ArraySource::Opened {
  std::string path;
  InputFile file;
  DType stored = DType::f32;
  DType dtype = DType::f32;
  NpyHeader header;
  std::optional<PictureFormat> picture;
};

ArraySource::Opened ArraySource::open(const std::string& path) {
  InputFile file(path, size_of_stream);
  std::vector<std::byte> start(static_cast<std::size_t>(std::min<std::int64_t>(file.size(), kMaxNpyHeader)));
  file.read(0, start);
  if (starts_like_png(start)) {
    check_png_chunks([&](std::int64_t offset, std::span<std::byte> bytes) { return file.read_some(offset, bytes); },
                     file.size(), file.path());
    std::int64_t position = 0;
    PngReader reader(
        [&](std::span<std::byte> bytes) {
          const std::size_t got = file.read_some(position, bytes);
          position += static_cast<std::int64_t>(got);
          return got;
        },
        file.size(), file.path());
    const PictureFormat format = reader.format();
    Descriptor spool = open_spool();
    const std::string name = "decoded copy of " + file.path();
    reserve_space(spool.get(), format.bytes(), name);
    std::vector<std::byte> row(static_cast<std::size_t>(format.row_bytes()));
    for (std::int64_t y = 0; y < format.height; ++y) {
      reader.read_row(row);
      write_all(spool.get(), row, name);
    }
    NpyHeader header;
    header.shape = {format.height, format.width, format.channels};
    return {path,
            InputFile::adopt(std::move(spool), file.path()),
            format.bits == 8 ? DType::u8 : DType::u16,
            DType::f32,
            header,
            format};
  }
  if (!starts_like_npy(start)) throw neither(start, file.path());
  const NpyHeader header = parse_npy_header(start, file.size(), file.path());
  return {path, std::move(file), header.dtype, header.dtype, header, std::nullopt};
}

ArraySource::ArraySource(Opened opened)
    : path_(std::move(opened.path)),
      file_(std::move(opened.file)),
      stored_(opened.stored),
      dtype_(opened.dtype),
      swapped_(opened.header.swapped),
      fortran_order_(opened.header.fortran_order),
      shape_(opened.header.shape),
      offset_(opened.header.data_offset),
      picture_(opened.picture) {}

ArraySource::ArraySource(const std::string& path) : ArraySource(open(path)) {}

const std::byte* ArraySource::load(std::int64_t first, std::int64_t count) {
  const auto stored_size = static_cast<std::int64_t>(size_of(stored_));
  mapping_ = file_.map(offset_ + first * stored_size, count * stored_size);
  const bool misaligned = reinterpret_cast<std::uintptr_t>(mapping_.data()) % size_of(dtype_) != 0;
  if (stored_ == dtype_ && !swapped_ && !misaligned) return mapping_.data();
  converted_.resize(static_cast<std::size_t>(count) * size_of(dtype_));
  if (stored_ == dtype_) {
    if (count > 0) std::memcpy(converted_.data(), mapping_.data(), converted_.size());
    if (swapped_) swap_bytes(converted_.data(), count, size_of(dtype_));
  } else {
    auto* values = reinterpret_cast<float*>(converted_.data());
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = stored_ == DType::u8 ? static_cast<float>(std::to_integer<int>(mapping_.data()[i]))
                                       : static_cast<float>(load_as<std::uint16_t>(mapping_.data() + 2 * i));
    }
  }
  mapping_ = Mapping();
  return converted_.data();
}

void ArraySource::prefetch(std::int64_t first, std::int64_t count) const noexcept {
  const auto stored_size = static_cast<std::int64_t>(size_of(stored_));
  file_.prefetch(offset_ + first * stored_size, count * stored_size);
}

FileFormat format_of(const std::string& path) {
  const auto ends_with = [&](std::string_view ending) {
    if (path.size() < ending.size()) return false;
    return std::equal(ending.begin(), ending.end(), path.end() - static_cast<std::ptrdiff_t>(ending.size()),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  };
  if (path == "-" || ends_with(".npy")) return FileFormat::npy;
  if (ends_with(".png")) return FileFormat::png;
  if (path.starts_with("/dev/")) return FileFormat::npy;
  throw Failure::make(ExitCode::usage, "{}: the name of a result must end in .npy or .png", path);
}

ArraySink::ArraySink(const std::string& path, DType dtype, const Shape& shape, bool fortran_order, int bits)
    : file_(path), dtype_(dtype) {
  if (format_of(path) == FileFormat::npy) {
    const std::vector<std::byte> header = make_npy_header(dtype, shape, fortran_order);
    file_.reserve(static_cast<std::int64_t>(header.size()) +
                  element_count(shape) * static_cast<std::int64_t>(size_of(dtype)));
    file_.write(header);
    if (!file_.is_stream()) mappable_offset_ = static_cast<std::int64_t>(header.size());
    return;
  }
  const bool fits = (shape.rank() == 2 || (shape.rank() == 3 && shape[2] >= 1 && shape[2] <= 4)) && !fortran_order &&
                    shape[0] >= 1 && shape[1] >= 1 && shape[0] <= std::numeric_limits<std::int32_t>::max() &&
                    shape[1] <= std::numeric_limits<std::int32_t>::max();
  if (!fits) {
    throw Failure::make(
        ExitCode::output,
        "{}: an array of shape {}{} is no picture; a .png holds (height, width) or (height, width, 1 to 4 channels)",
        path, to_string(shape), fortran_order ? " in Fortran order" : "");
  }
  picture_ = {.width = shape[1],
              .height = shape[0],
              .channels = shape.rank() == 2 ? 1 : static_cast<int>(shape[2]),
              .bits = bits};
  if (picture_.row_bytes() > kMaxPictureBytes / picture_.height) {
    throw Failure::make(ExitCode::output, "{}: {} x {} pixels are more than the {} GiB a .png may have", path,
                        picture_.width, picture_.height, kMaxPictureBytes >> 30);
  }
  png_ = std::make_unique<PngWriter>([this](std::span<const std::byte> bytes) { file_.write(bytes); }, picture_, path);
  row_.resize(static_cast<std::size_t>(picture_.row_bytes()));
}

void ArraySink::write(std::span<const std::byte> bytes) {
  if (png_ == nullptr) {
    file_.write(bytes);
  } else {
    write_picture(bytes);
  }
}

void ArraySink::write_picture(std::span<const std::byte> bytes) {
  const std::size_t size = size_of(dtype_);
  const DType sample = picture_.bits == 8 ? DType::u8 : DType::u16;
  for (; !bytes.empty(); bytes = bytes.subspan(size)) {
    store_double(sample, row_.data() + row_fill_, element_as_double(dtype_, bytes.data()));
    row_fill_ += size_of(sample);
    if (row_fill_ == row_.size()) {
      png_->write_row(row_);
      row_fill_ = 0;
    }
  }
}

}  // namespace cenote::tool
