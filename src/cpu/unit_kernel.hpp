// A kernel that is a plan and a function: the units of the plan are shared between threads, each with scratch.
#pragma once

#include "cpu/check_indices.hpp"
#include "cpu/rows/row_work.hpp"
#include "cpu/scratch.hpp"
#include "cpu/split.hpp"

#include <atomic>
#include <string>
#include <type_traits>
#include <utility>

namespace cenote::simd {

/// `units`: of work. Plan: has `bytes` of scratch. Function: (plan, pointers, begin, end, scratch); where it returns bool, false says that an index was
/// wrong, which is then looked for.
template <class Plan, class Function>
class UnitKernel final : public Kernel {
 public:
  UnitKernel(const Described& described, Plan plan, std::int64_t units, Function function, std::string why)
      : problem_(described.problem),
        plan_(std::move(plan)),
        units_(units),
        function_(function),
        bytes_(described.bytes_moved),
        scratch_(slot_count(), plan_.bytes) {
    explain = std::move(why);
  }

  Status run(const RunArgs& args) const noexcept override {
    const RowPointers pointers = row_pointers(problem_, args);
    std::atomic<bool> valid{true};
    split(args.executor, units_, bytes_, [&](std::int64_t begin, std::int64_t end) {
      const ScratchPool::Lease lease(scratch_);
      if constexpr (std::is_void_v<decltype(function_(plan_, pointers, begin, end, lease.data()))>) {
        function_(plan_, pointers, begin, end, lease.data());
      } else if (!function_(plan_, pointers, begin, end, lease.data())) {
        valid.store(false, std::memory_order_relaxed);
      }
    });
    if (valid) return {};
    return find_invalid_index(problem_, args.saved_indices);
  }

 private:
  Problem problem_;
  Plan plan_;
  std::int64_t units_;
  Function function_;
  std::int64_t bytes_;
  ScratchPool scratch_;
};

template <class Plan, class Function>
std::unique_ptr<Kernel> make_unit_kernel(const Described& described, Plan plan, std::int64_t units, Function function,
                                         std::string why) {
  return std::make_unique<UnitKernel<Plan, Function>>(described, std::move(plan), units, function, std::move(why));
}

}  // namespace cenote::simd
