// One run of a plan on guarded memory.
#pragma once

#include "problems/data.hpp"

#include <optional>
#include <string>
#include <vector>

namespace cenote::testing {

/// A device that buffers are sent to, guards and all, before a run, and fetched from after it.
class Elsewhere {
 public:
  virtual ~Elsewhere() = default;
  virtual Device device() const = 0;
  /// Copies `size` bytes there; the address of byte `origin` comes back.
  virtual void* send(const void* bytes, std::size_t size, std::size_t origin) = 0;
  /// Waits for the runs so far, then copies the bytes of the `number`-th send since the last forget() back.
  virtual void fetch(std::size_t number, void* bytes) = 0;
  virtual void forget() = 0;
};

/// Where and how a call runs.
struct Setting {
  std::string target{};                ///< one of cpu_targets(); empty: the best
  const Executor* executor = nullptr;  ///< null: serial_executor()
  Elsewhere* elsewhere = nullptr;      ///< null: on the CPU
};

/// What a run left behind. `trouble`: it was refused, or wrote where it may not.
template <class T>
struct Outcome {
  std::vector<T> result;  ///< output, or grad_input
  Shape shape;            ///< of the result
  Integers indices{};     ///< as stored: all ones of an unsigned type read back as -1
  Shape indices_shape{};
  std::string trouble{};
};

/// Forward. `kind`: also write indices of this kind (max_unpool: read them); none: without indices.
template <class T>
Outcome<T> run_forward(const Problem& problem, const Given<T>& given, std::optional<IndexKind> kind,
                       const Setting& setting);

/// Backward. `saved`: the indices of a max-family op or max_unpool, in that kind.
template <class T>
Outcome<T> run_backward(const Problem& problem, const Given<T>& given, IndexKind kind, const Integers& saved,
                        const Setting& setting);

}  // namespace cenote::testing
