// Memory for one tensor of a test: poisoned, with guard bytes on both sides, at an address no vector is aligned to; large ones whose channels fill
// cache lines begin with one.
#pragma once

#include "problems/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cenote::testing {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(const TensorDesc& desc);

  /// Writes values given in logical order where the description's strides put them.
  template <class T>
  void store(const std::vector<T>& values);
  template <class T>
  std::vector<T> load() const;

  /// Where element (0, 0, ...) lies, whatever the sign of the strides.
  void* data() { return bytes_.empty() ? nullptr : bytes_.data() + origin_; }
  const TensorDesc& desc() const { return desc_; }
  /// Everything, guards included, and where in it data() is.
  std::vector<std::byte>& bytes() { return bytes_; }
  std::int64_t origin() const { return origin_; }

  /// The first byte that changed and is no part of an element (a guard or a gap); empty when there is none.
  std::string stray_write() const;
  /// To the address sanitizer the guard bytes are out of bounds, for reads too, until they are unguarded.
  void guard() const;
  void unguard() const;
  /// Marks what is there as input; changed() then names the first byte that differs from it.
  void freeze() { frozen_ = bytes_; }
  std::string changed() const;

 private:
  std::byte* element(std::int64_t offset) {
    return bytes_.data() + origin_ + offset * static_cast<std::int64_t>(size_of(desc_.dtype));
  }

  TensorDesc desc_;
  std::int64_t origin_ = 0;
  std::int64_t begin_ = 0, end_ = 0;   // of what lies between the guards
  std::vector<std::int64_t> offsets_;  // of every element, in logical order
  std::vector<std::byte> bytes_;
  std::vector<std::byte> frozen_;
};

/// The description of a tensor in the problem's layout. `variant` picks among the strided ones.
TensorDesc describe(Layout layout, DType dtype, const Shape& shape, int dims, std::uint64_t variant);

}  // namespace cenote::testing
