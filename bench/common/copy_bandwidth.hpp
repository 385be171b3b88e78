// How fast this machine copies: the floor every row is measured against.
#pragma once

#include "data.hpp"

#include <vector>

namespace cenote::bench {

/// Copies a block far larger than any cache on the executor's threads, in the ways programs do it (library calls in cache-sized and in
/// whole pieces, streaming stores), and keeps the fastest way's median. Bytes read and bytes written both count.
class CopyBandwidth {
 public:
  explicit CopyBandwidth(const Executor& executor);

  /// Takes a third of a second or so. Meant to be called several times through a run.
  void measure();
  /// The median of the measurements so far, in GB/s (10^9 bytes).
  double gigabytes_per_second() const;

 private:
  const Executor& executor_;
  Buffer from_, to_;
  std::vector<double> measured_;
};

double median(std::vector<double> values);  ///< 0 for none

}  // namespace cenote::bench
