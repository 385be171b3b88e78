// Memory that running plans borrow: allocated when the plan is made, so that run() allocates nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

namespace cenote::simd {

/// A few equal slots. A worker takes one for as long as it works on a piece; where all are taken it waits for one, which always
/// comes back since holders never wait.
class ScratchPool {
 public:
  ScratchPool(std::size_t slots, std::size_t bytes)
      : slots_(slots), bytes_((bytes + 63) / 64 * 64 + 64), taken_(new std::atomic<bool>[slots]) {
    memory_.reset(static_cast<char*>(std::aligned_alloc(64, slots_ * bytes_)));
    if (!memory_) throw std::bad_alloc();
    for (std::size_t i = 0; i < slots_ * bytes_; ++i)
      memory_.get()[i] = 0;  // lanes beyond a row are computed with, never used
    for (std::size_t i = 0; i < slots_; ++i) taken_[i] = false;
  }

  /// A slot, given back on destruction.
  class Lease {
   public:
    explicit Lease(const ScratchPool& pool) noexcept : pool_(pool) {
      for (std::size_t i = 0;; i = (i + 1) % pool.slots_) {
        if (!pool.taken_[i].exchange(true, std::memory_order_acquire)) {
          slot_ = i;
          return;
        }
        if (i + 1 == pool.slots_) std::this_thread::yield();
      }
    }
    ~Lease() { pool_.taken_[slot_].store(false, std::memory_order_release); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    char* data() const noexcept { return pool_.memory_.get() + slot_ * pool_.bytes_; }

   private:
    const ScratchPool& pool_;
    std::size_t slot_ = 0;
  };

 private:
  struct Free {
    void operator()(char* p) const noexcept { std::free(p); }
  };
  std::size_t slots_, bytes_;
  std::unique_ptr<std::atomic<bool>[]> taken_;
  std::unique_ptr<char, Free> memory_;
};

}  // namespace cenote::simd
