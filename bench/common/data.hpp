// The tensors of a case: inputs, what must come out, and a check of what did.
#pragma once

#include "competitor.hpp"

#include <cenote/executor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cenote::bench {

/// Uninitialised memory on its own cache lines.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  std::size_t size() const { return size_; }
  std::byte* data() const { return data_.get(); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// Planar tensors of one case in one dtype: random inputs, and the results the reference gives.
struct CaseData {
  Buffer input, output, indices, saved_indices, grad_output, grad_input;
  /// Most that a correct result may differ from ours: the rounding of a sum of that many terms of that size, in any order.
  double output_tolerance = 0;  ///< times max(1, |value|)
  double grad_tolerance = 0;
};

/// Computes what the rows of this case and dtype need. The seed is fixed: every run sees the same numbers.
CaseData make_case_data(const Case& pool, DType dtype, const Executor& executor);

/// The same in a row's layout, with room for a competitor's results.
class RowData {
 public:
  RowData(const CaseData& data, const Case& pool, DType dtype, MemoryFormat layout);

  Workload workload(const Row& row, int threads) const;
  /// Overwrites the results, so that one competitor's cannot pass for the next one's.
  void spoil(const Row& row) const;
  /// Empty when the results are right, else the first difference.
  std::string difference(const Row& row) const;

 private:
  const CaseData& data_;
  Buffer input_, expected_output_, expected_indices_, saved_indices_, grad_output_,
      expected_grad_input_;  // unused if planar
  Buffer output_, indices_, grad_input_;
  bool planar_;
};

}  // namespace cenote::bench
