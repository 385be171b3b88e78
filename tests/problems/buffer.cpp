#include "problems/buffer.hpp"

#include "reference/bounds.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cenote::testing {
namespace {

constexpr std::byte kPoison{0xa5};
constexpr std::int64_t kGuard = 64;

/// Offsets in elements of a tensor's elements, in logical order.
std::vector<std::int64_t> element_offsets(const TensorDesc& desc) {
  std::vector<std::int64_t> offsets = {0};
  for (int i = 0; i < desc.rank(); ++i) {
    std::vector<std::int64_t> longer;
    longer.reserve(offsets.size() * static_cast<std::size_t>(desc.shape[i]));
    for (std::int64_t offset : offsets) {
      for (std::int64_t j = 0; j < desc.shape[i]; ++j) longer.push_back(offset + j * desc.strides[i]);
    }
    offsets = std::move(longer);
  }
  return offsets;
}

/// Dense strides with the dimensions in this order, outermost first, and `gap` unused elements after each step.
Strides strides_in_order(const Shape& shape, const std::vector<int>& order, std::int64_t innermost, std::int64_t gap) {
  Strides strides = shape;
  std::int64_t stride = innermost;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    strides[*i] = stride;
    stride = stride * std::max<std::int64_t>(shape[*i], 1) + gap;
  }
  return strides;
}

template <class Element, class T>
void put(std::byte* at, T value) {
  const auto element = static_cast<Element>(value);
  std::memcpy(at, &element, sizeof element);
}

template <class Element, class T>
T get(const std::byte* at) {
  Element element;
  std::memcpy(&element, at, sizeof element);
  return static_cast<T>(element);
}

template <class T>
void encode(DType dtype, std::byte* at, T value) {
  switch (dtype) {
    case DType::f32: return put<float>(at, value);
    case DType::f64: return put<double>(at, value);
    case DType::f16: return put<std::uint16_t>(at, to_f16(static_cast<float>(value)).bits);
    case DType::bf16: return put<std::uint16_t>(at, to_bf16(static_cast<float>(value)).bits);
    case DType::i8: return put<std::int8_t>(at, value);
    case DType::u8: return put<std::uint8_t>(at, value);
    case DType::i16: return put<std::int16_t>(at, value);
    case DType::i32: return put<std::int32_t>(at, value);
    case DType::i64: return put<std::int64_t>(at, value);
    case DType::u16: return put<std::uint16_t>(at, value);
    case DType::u32: return put<std::uint32_t>(at, value);
  }
}

template <class T>
T decode(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f32: return get<float, T>(at);
    case DType::f64: return get<double, T>(at);
    case DType::f16: return static_cast<T>(to_float(f16{get<std::uint16_t, std::uint16_t>(at)}));
    case DType::bf16: return static_cast<T>(to_float(bf16{get<std::uint16_t, std::uint16_t>(at)}));
    case DType::i8: return get<std::int8_t, T>(at);
    case DType::u8: return get<std::uint8_t, T>(at);
    case DType::i16: return get<std::int16_t, T>(at);
    case DType::i32: return get<std::int32_t, T>(at);
    case DType::i64: return get<std::int64_t, T>(at);
    case DType::u16: return get<std::uint16_t, T>(at);
    case DType::u32: return get<std::uint32_t, T>(at);
  }
  return {};
}

std::string byte_message(const char* what, std::int64_t position, std::int64_t origin) {
  return std::string(what) + " at byte " + std::to_string(position - origin) + " from the first element";
}

}  // namespace

Buffer::Buffer(const TensorDesc& desc) : desc_(desc) {
  if (desc_.strides.empty()) desc_.strides = contiguous_strides(desc_.shape);
  offsets_ = element_offsets(desc_);
  std::int64_t low = 0, high = 0;
  for (std::int64_t offset : offsets_) low = std::min(low, offset), high = std::max(high, offset);
  const auto size = static_cast<std::int64_t>(size_of(desc_.dtype));
  origin_ = kGuard + size - low * size;  // one element past an aligned address
  constexpr std::int64_t kLine = 64;
  bytes_.assign(static_cast<std::size_t>(origin_ + kLine + (high + 1) * size + kGuard), kPoison);
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  if (offsets_.size() >= kLarge && desc_.shape[1] * size % kLine == 0)
    origin_ += kLine - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data()) % kLine);
  begin_ = origin_ + low * size;
  end_ = origin_ + (high + 1) * size;
}

void Buffer::guard() const {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(bytes_.data(), static_cast<std::size_t>(begin_));
  ASAN_POISON_MEMORY_REGION(bytes_.data() + end_, bytes_.size() - static_cast<std::size_t>(end_));
#endif
}

void Buffer::unguard() const {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(bytes_.data(), bytes_.size());
#endif
}

template <class T>
void Buffer::store(const std::vector<T>& values) {
  for (std::size_t i = 0; i < offsets_.size(); ++i) encode(desc_.dtype, element(offsets_[i]), values[i]);
}
template void Buffer::store(const std::vector<double>&);
template void Buffer::store(const std::vector<std::int64_t>&);

template <class T>
std::vector<T> Buffer::load() const {
  std::vector<T> values;
  values.reserve(offsets_.size());
  const auto size = static_cast<std::int64_t>(size_of(desc_.dtype));
  for (std::int64_t offset : offsets_)
    values.push_back(decode<T>(desc_.dtype, bytes_.data() + origin_ + offset * size));
  return values;
}
template std::vector<double> Buffer::load() const;
template std::vector<std::int64_t> Buffer::load() const;

std::string Buffer::stray_write() const {
  const auto size = static_cast<std::int64_t>(size_of(desc_.dtype));
  std::vector<char> is_element(static_cast<std::size_t>((end_ - begin_) / size), 0);
  for (std::int64_t offset : offsets_) is_element[static_cast<std::size_t>((origin_ - begin_) / size + offset)] = 1;
  const auto first_touched = [&](std::int64_t from, std::int64_t to) {
    return std::find_if(bytes_.begin() + from, bytes_.begin() + to, [](std::byte b) { return b != kPoison; }) -
           bytes_.begin();
  };
  const auto all = static_cast<std::int64_t>(bytes_.size());
  std::int64_t stray = first_touched(0, begin_), to = begin_;
  for (std::size_t i = 0; stray == to && i < is_element.size(); ++i) {
    const std::int64_t from = begin_ + static_cast<std::int64_t>(i) * size;
    to = from + size;
    stray = is_element[i] != 0 ? to : first_touched(from, to);
  }
  if (stray == to) stray = first_touched(end_, to = all);
  return stray == to ? "" : byte_message("written outside its elements,", stray, origin_);
}

std::string Buffer::changed() const {
  const auto [at, before] = std::mismatch(bytes_.begin(), bytes_.end(), frozen_.begin());
  return at == bytes_.end() ? "" : byte_message("an input was written to,", at - bytes_.begin(), origin_);
}

TensorDesc describe(Layout layout, DType dtype, const Shape& shape, int dims, std::uint64_t variant) {
  TensorDesc desc{dtype, shape, contiguous_strides(shape), cpu};
  const int rank = shape.rank(), channel = rank - dims - 1;
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  if (channel < 0 || channel > 1) return desc;  // no pool's input: only to be refused
  switch (layout) {
    case Layout::planar: break;
    case Layout::channels_last:
      order.erase(order.begin() + channel);
      order.push_back(channel);
      desc.strides = strides_in_order(shape, order, 1, 0);
      break;
    case Layout::strided:
      switch (variant % 4) {
        case 0: desc.strides = strides_in_order(shape, order, 2, 3); break;  // every other column
        case 1: desc.strides = strides_in_order(shape, order, 1, 5); break;  // a crop
        case 2:                                                              // a crop of channels, channels last
          order.erase(order.begin() + channel);
          order.push_back(channel);
          desc.strides = strides_in_order(shape, order, 1, 3);
          break;
        default:  // a transposed tensor
          std::reverse(order.begin(), order.end());
          desc.strides = strides_in_order(shape, order, 1, 0);
      }
      break;
    case Layout::spaced:
      desc.strides[channel] += 5;
      if (channel > 0) desc.strides[0] = desc.strides[channel] * shape[channel];
      break;
    case Layout::flipped:
      for (int i = channel + 1; i < rank; ++i) desc.strides[i] = -desc.strides[i];
      break;
    case Layout::broadcast: {
      Shape one_channel = shape;
      one_channel[channel] = 1;
      desc.strides = contiguous_strides(one_channel);
      desc.strides[channel] = 0;
      break;
    }
  }
  return desc;
}

}  // namespace cenote::testing
