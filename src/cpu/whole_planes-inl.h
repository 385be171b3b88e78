// Averages and maxima over whole planes. The columns of a plane are summed up in the lanes of a vector, whose rows need not be aligned; those sums are
// turned for as many planes as it has lanes, and added along. Maxima need no order, but for the sign of a zero and the choice of a NaN.
#if defined(CENOTE_CPU_WHOLE_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_WHOLE_PLANES_INL_H_
#undef CENOTE_CPU_WHOLE_PLANES_INL_H_
#else
#define CENOTE_CPU_WHOLE_PLANES_INL_H_
#endif

#include "cpu/along-inl.h"
#include "cpu/finish-inl.h"
#include "cpu/stream-inl.h"
#include "cpu/transpose-inl.h"
#include "cpu/whole_planes.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // see kHasVectors

/// Planes [first, first + count), no more than D has lanes.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE void AverageGroup(D d, const WholePlanes& plan, const T* from, std::int64_t first, std::int64_t count,
                             T* packed, T* to) {
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN C sums[kLanes * kLanes];
  HWY_ALIGN C columns[kLanes * kLanes];
  const std::int64_t last_row = (plan.rows - 1) * plan.width;
  for (std::int64_t i = 0; i < count; ++i) {
    const T* plane = from + (first + i) * plan.pitch;
    if ((first + i) * plan.pitch + last_row + static_cast<std::int64_t>(kLanes) > plan.extent) {
      // A vector of its last row would reach beyond the tensor.
      std::memcpy(static_cast<void*>(packed), plane, static_cast<std::size_t>(plan.rows * plan.width) * sizeof(T));
      plane = packed;
    }
    auto sum = LoadAs(d, plane);
    for (std::int64_t at = plan.width; at <= last_row; at += plan.width) sum = hn::Add(sum, LoadAs(d, plane + at));
    hn::Store(sum, d, sums + static_cast<std::size_t>(i) * kLanes);
  }
  PlanesToColumns<static_cast<int>(kLanes), hwy::MakeUnsigned<C>>(sums, kLanes, count, plan.width, columns);
  auto total = hn::Zero(d);
  if (plan.sums_in_lanes) {
    LaneSums<D> parts(d);
    for (std::int64_t x = 0; x < plan.width; ++x)
      parts.Add(x, hn::Load(d, columns + static_cast<std::size_t>(x) * kLanes));
    total = parts.Total();
  } else {
    for (std::int64_t x = 0; x < plan.width; ++x)
      total = hn::Add(total, hn::Load(d, columns + static_cast<std::size_t>(x) * kLanes));
  }
  hn::Store(Quotient(d, total, hn::Set(d, static_cast<C>(plan.divisor)), plan.divisor < 0), d, sums);
  StoreAs(sums, to + first, count);
}

template <class T, class C>
void AverageWholePlanes(const WholePlanes& plan, const void* from, void* to, std::int64_t begin, std::int64_t end,
                        char* scratch) {
  auto average = [&](auto d) HWY_ATTR {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first = unit * kWholeLanes, count = smaller(kWholeLanes, plan.planes - first);
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      for (std::int64_t i = 0; i < count; i += lanes) {
        AverageGroup(d, plan, static_cast<const T*>(from), first + i, smaller(lanes, count - i),
                     reinterpret_cast<T*>(scratch), static_cast<T*>(to));
      }
    }
  };
  // The shorter the vectors, the fewer of them cross a line.
  plan.width <= kWholeLanes / 2 ? average(hn::CappedTag<C, kWholeLanes / 2>())
                                : average(hn::CappedTag<C, kWholeLanes>());
}

/// The maximum of a plane of at least a vector.
template <class D, class T, class C = hn::TFromD<D>>
HWY_INLINE C MaxOfPlane(D d, const T* plane, std::int64_t elements) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Accumulator<D, Fold::max, false> a{LoadAs(d, plane)}, b{LoadAs(d, plane + elements - lanes)};
  std::int64_t x = lanes;
  for (; x + 2 * lanes <= elements; x += 2 * lanes) {
    a.Next(d, LoadAs(d, plane + x), nullptr);
    b.Next(d, LoadAs(d, plane + x + lanes), nullptr);
  }
  if (x + lanes <= elements) a.Next(d, LoadAs(d, plane + x), nullptr);
  a.Next(d, b.value, nullptr);
  HWY_ALIGN C found[hn::MaxLanes(d)];
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(a.value)))) {  // the last one
    for (x = elements - lanes;; x = larger(0, x - lanes)) {
      const auto v = LoadAs(d, plane + x);
      if (hn::AllFalse(d, hn::IsNaN(v))) continue;
      hn::Store(v, d, found);
      std::int64_t lane = lanes - 1;
      while (!std::isnan(found[lane])) --lane;
      return found[lane];
    }
  }
  const C best = hn::GetLane(hn::MaxOfLanes(d, a.value));
  if (best != C{0}) return best;
  for (x = 0;; x = smaller(x + lanes, elements - lanes)) {  // the first zero
    const auto v = LoadAs(d, plane + x);
    const auto lane = hn::FindFirstTrue(d, hn::Eq(v, hn::Zero(d)));
    if (lane < 0) continue;
    hn::Store(v, d, found);
    return found[lane];
  }
}

template <class T, class C>
void MaxOfWholePlanes(const WholePlanes& plan, const void* from, void* to, std::int64_t begin, std::int64_t end,
                      char*) {
  const hn::ScalableTag<C> d;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit * kWholeLanes, count = smaller(kWholeLanes, plan.planes - first);
    C maxima[kWholeLanes];
    for (std::int64_t i = 0; i < count; ++i) {
      maxima[i] = MaxOfPlane(d, static_cast<const T*>(from) + (first + i) * plan.pitch, plan.rows * plan.width);
    }
    StoreAs(maxima, static_cast<T*>(to) + first, count);
  }
}

/// Every element of a plane gets its share: of no sum, but as if it had been added to one.
template <class T, class C>
void SpreadWholePlanes(const WholePlanes& plan, const void* from, void* to, std::int64_t begin, std::int64_t end,
                       char* scratch) {
  using U = hwy::UnsignedFromSize<sizeof(T)>;
  const hn::ScalableTag<C> d;
  const hn::ScalableTag<U> du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  const std::int64_t elements = plan.rows * plan.width;
  const std::int64_t piece = plan.streams ? smaller(elements, kStreamedPiece) : elements;
  StreamWriter writer;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit * kWholeLanes, count = smaller(kWholeLanes, plan.planes - first);
    HWY_ALIGN C values[kWholeLanes + hn::MaxLanes(d)] = {};
    T shares[kWholeLanes];
    LoadElements(static_cast<const T*>(from) + first, values, count);
    const auto divisor = hn::Set(d, static_cast<C>(plan.divisor));
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto share = Quotient(d, hn::LoadU(d, values + i), divisor, plan.divisor < 0);
      hn::StoreU(hn::Add(hn::Zero(d), share), d, values + i);
    }
    StoreAs(values, shares, count);
    for (std::int64_t i = 0; i < count; ++i) {
      U* target = static_cast<U*>(to) + (first + i) * plan.pitch;
      U* filled = plan.streams ? reinterpret_cast<U*>(scratch) : target;
      U bits;
      std::memcpy(&bits, shares + i, sizeof(bits));
      const auto share = hn::Set(du, bits);
      std::int64_t x = 0;
      for (; x + lanes <= piece; x += lanes) hn::StoreU(share, du, filled + x);
      if (x < piece && piece >= lanes) {
        hn::StoreU(share, du, filled + piece - lanes);
      } else {
        for (; x < piece; ++x) filled[x] = bits;
      }
      for (std::int64_t at = 0; plan.streams && at < elements; at += piece)
        writer.Write(filled, target + at, smaller(piece, elements - at));
    }
  }
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
