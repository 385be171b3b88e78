// Memory that running plans borrow: allocated when the plan is made, so that run() allocates nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

namespace cenote::simd {

/// A number of the calling thread, the same in every call: threads of a team have different ones.
inline std::size_t thread_number() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

/// A few equal slots. A worker takes one for as long as it works on a piece, the same each time where it can: its memory is then in the worker's caches, and
/// no other core asks for its flag. Where all are taken it waits for one, which always comes back since holders never wait.
class ScratchPool {
 public:
  ScratchPool(std::size_t slots, std::size_t bytes)
      : slots_(slots), bytes_((bytes + 63) / 64 * 64 + 64), taken_(new Flag[slots]) {
    memory_.reset(static_cast<char*>(std::aligned_alloc(64, slots_ * bytes_)));
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, slots_ * bytes_);  // lanes beyond a row are computed with, never used
  }

  /// A slot, given back on destruction.
  class Lease {
   public:
    explicit Lease(const ScratchPool& pool) noexcept : pool_(pool) {
      const std::size_t own = thread_number() % pool.slots_;
      for (slot_ = own; pool.taken_[slot_].value.exchange(true, std::memory_order_acquire);) {
        slot_ = (slot_ + 1) % pool.slots_;
        if (slot_ == own) std::this_thread::yield();
      }
    }
    ~Lease() { pool_.taken_[slot_].value.store(false, std::memory_order_release); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    char* data() const noexcept { return pool_.memory_.get() + slot_ * pool_.bytes_; }

   private:
    const ScratchPool& pool_;
    std::size_t slot_;
  };

 private:
  struct alignas(64) Flag {
    std::atomic<bool> value{false};
  };
  struct Free {
    void operator()(char* p) const noexcept { std::free(p); }
  };
  std::size_t slots_, bytes_;
  std::unique_ptr<Flag[]> taken_;
  std::unique_ptr<char, Free> memory_;
};

}  // namespace cenote::simd
