// Small windows over planar rows, a band of rows at a time, in the order in which they lie in memory. Windows are of any number of taps and rows: only strides
// are compiled. Maxima fold each row along once and keep it in L1 for the windows that see it: row-major order, ties as they come. Sums add up the
// columns of a window's rows first, the order of all other ways to sum, and take them apart only then.
#if defined(CENOTE_CPU_PLANES_BANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_CPU_PLANES_BANDS_INL_H_
#undef CENOTE_CPU_PLANES_BANDS_INL_H_
#else
#define CENOTE_CPU_PLANES_BANDS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/planes/bands.hpp"
#include "cpu/rows/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cenote::simd::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // masks and permutations worth their name

/// Vectors of elements that follow each other, taken apart: tap t of neighbouring windows a stride apart. kTaps of them come from kLoads vectors.
template <int kStride, class D>
struct Apart {
  static_assert(kStride == 2 || kStride == 4);
  static constexpr int kTaps = kStride, kLoads = kStride;
  static constexpr std::int64_t kNext = hn::MaxLanes(D());  // elements from load to load

  explicit Apart(D) {}
  template <int kTap>
  HWY_INLINE hn::Vec<D> Get(D d, const hn::Vec<D> (&v)[kLoads]) const {
    auto half = [d](bool odd, hn::Vec<D> high, hn::Vec<D> low)
                    HWY_ATTR { return odd ? hn::ConcatOdd(d, high, low) : hn::ConcatEven(d, high, low); };
    if constexpr (kStride == 2) {
      return half(kTap == 1, v[1], v[0]);
    } else {
      return half(kTap >= 2, half(kTap % 2 == 1, v[3], v[2]), half(kTap % 2 == 1, v[1], v[0]));
    }
  }
};

/// Nothing to take apart: two taps are loaded at a time.
template <class D>
struct Apart<1, D> {
  static constexpr int kTaps = 2, kLoads = 2;
  static constexpr std::int64_t kNext = 1;

  explicit Apart(D) {}
  template <int kTap>
  HWY_INLINE hn::Vec<D> Get(D, const hn::Vec<D> (&v)[kLoads]) const {
    return v[kTap];
  }
};

/// Which lanes there are permutations of everywhere.
template <class C>
constexpr bool kHasThirds = sizeof(C) == 4;

/// Three vectors have the elements of a tap in lanes of their own: they are blended, then put in order.
template <class D>
struct Apart<3, D> {
  static constexpr int kTaps = 3, kLoads = 3;
  static constexpr std::int64_t kNext = hn::MaxLanes(D());
  using DU = hn::RebindToUnsigned<D>;
  using Index = hn::TFromD<DU>;

  hn::Mask<D> second[3], third[3];
  decltype(hn::IndicesFromVec(D(), hn::Zero(hn::RebindToSigned<D>()))) order[3];

  explicit Apart(D d) {
    constexpr std::int64_t kLanes = kNext;
    for (std::int64_t tap = 0; tap < 3; ++tap) {
      HWY_ALIGN Index from[kLanes], place[kLanes];
      for (std::int64_t i = 0; i < kLanes; ++i) {
        const std::int64_t element = 3 * i + tap;
        from[element % kLanes] = static_cast<Index>(element / kLanes);
        place[i] = static_cast<Index>(element % kLanes);
      }
      const DU du;
      second[tap] = hn::RebindMask(d, hn::Eq(hn::Load(du, from), hn::Set(du, Index{1})));
      third[tap] = hn::RebindMask(d, hn::Eq(hn::Load(du, from), hn::Set(du, Index{2})));
      order[tap] = hn::IndicesFromVec(d, hn::BitCast(hn::RebindToSigned<D>(), hn::Load(du, place)));
    }
  }
  template <int kTap>
  HWY_INLINE hn::Vec<D> Get(D, const hn::Vec<D> (&v)[kLoads]) const {
    const auto blended = hn::IfThenElse(third[kTap], v[2], hn::IfThenElse(second[kTap], v[1], v[0]));
    return hn::TableLookupLanes(blended, order[kTap]);
  }
};

/// Where one of the two is NaN. (One comparison: Highway has none of this kind.)
template <class D>
HWY_INLINE hn::Mask<D> IsEitherNaN(D, hn::Vec<D> a, hn::Vec<D> b) {
  using C = hn::TFromD<D>;
  constexpr std::size_t kBytes = hn::MaxLanes(D()) * sizeof(C);
  static_assert(kBytes == 32 || kBytes == 64);
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kBytes == 64 && sizeof(C) == 4) {
    return hn::Mask<D>{_mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q)};
  } else if constexpr (kBytes == 64) {
    return hn::Mask<D>{_mm512_cmp_pd_mask(a.raw, b.raw, _CMP_UNORD_Q)};
  } else if constexpr (sizeof(C) == 4) {
    return hn::Mask<D>{_mm256_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q)};
  } else {
    return hn::Mask<D>{_mm256_cmp_pd_mask(a.raw, b.raw, _CMP_UNORD_Q)};
  }
#else
  if constexpr (sizeof(C) == 4) {
    return hn::Mask<D>{_mm256_cmp_ps(a.raw, b.raw, _CMP_UNORD_Q)};
  } else {
    return hn::Mask<D>{_mm256_cmp_pd(a.raw, b.raw, _CMP_UNORD_Q)};
  }
#endif
}

/// The taps of one vector of outputs along one row, two by two: fold(first, second) or fold(first).
template <int kStride, bool kCutOff, class D, class Fold>
HWY_INLINE void ForTaps(D d, const Apart<kStride, D>& apart, std::int64_t taps, const hn::Mask<D>* inside,
                        hn::Vec<D> outside, const Fold& fold) {
  using A = Apart<kStride, D>;
  for (std::int64_t tap = 0; tap < taps; tap += A::kTaps) {
    const std::int64_t left = taps - tap;
    hn::Vec<D> v[A::kLoads];
    fold.template Load<A::kNext>(tap, v);
    auto get = [&](auto t) HWY_ATTR CENOTE_ALWAYS_INLINE {
      const auto one = apart.template Get<decltype(t)::value>(d, v);
      return kCutOff ? hn::IfThenElse(inside[tap + decltype(t)::value], one, outside) : one;
    };
    const auto first = get(std::integral_constant<int, 0>());
    if (left == 1) {
      fold.One(first);
      continue;
    }
    fold.Two(first, get(std::integral_constant<int, 1>()));
    if constexpr (A::kTaps > 2) {
      if (left == 2) continue;
      const auto third = get(std::integral_constant<int, 2>());
      if constexpr (A::kTaps > 3) {
        if (left > 3) {
          fold.Two(third, get(std::integral_constant<int, 3>()));
          continue;
        }
      }
      fold.One(third);
    }
  }
}

/// Maxima of numbers, and where there was a NaN: one instruction for two elements, where keeping it would take two for each.
template <class D, class T>
struct NumberMax {
  D d;
  const T* at;
  hn::Vec<D>& value;
  hn::Mask<D>& nan;

  template <std::int64_t kNext, int kLoads>
  HWY_INLINE void Load(std::int64_t tap, hn::Vec<D> (&v)[kLoads]) const {
    CENOTE_UNROLL
    for (int i = 0; i < kLoads; ++i) v[i] = LoadAs(d, at + tap + i * kNext);
  }
  // What the instruction gives for equal ones, and where there is a NaN, is its second operand.
  HWY_INLINE void One(hn::Vec<D> v) const {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) nan = hn::Or(nan, hn::IsNaN(v));
    value = hn::Max(v, value);
  }
  HWY_INLINE void Two(hn::Vec<D> v, hn::Vec<D> w) const {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) nan = hn::Or(nan, IsEitherNaN(d, v, w));
    value = hn::Max(w, hn::Max(v, value));
  }
};

/// Maxima with the last NaN, if there is one.
template <class D, class T>
struct AnyMax {
  D d;
  const T* at;
  Accumulator<D, Fold::max, false>& a;

  template <std::int64_t kNext, int kLoads>
  HWY_INLINE void Load(std::int64_t tap, hn::Vec<D> (&v)[kLoads]) const {
    CENOTE_UNROLL
    for (int i = 0; i < kLoads; ++i) v[i] = LoadAs(d, at + tap + i * kNext);
  }
  HWY_INLINE void One(hn::Vec<D> v) const { a.Next(d, v, nullptr); }
  HWY_INLINE void Two(hn::Vec<D> v, hn::Vec<D> w) const {
    a.Next(d, v, nullptr);
    a.Next(d, w, nullptr);
  }
};

/// Sums along of sums down the rows of a slice or several.
template <class D, class T>
struct SumOfRows {
  D d;
  const T* at;
  std::int64_t rows, pitch, slices, slice_pitch;
  bool squares;  // of elements are summed up
  hn::Vec<D>& total;

  template <std::int64_t kNext, int kLoads>
  HWY_INLINE void Load(std::int64_t tap, hn::Vec<D> (&v)[kLoads]) const {
    CENOTE_UNROLL
    for (int i = 0; i < kLoads; ++i) v[i] = hn::Zero(d);
    for (std::int64_t z = 0; z < slices; ++z) {
      const T* row = at + tap + z * slice_pitch;
      for (std::int64_t y = 0; y < rows; ++y, row += pitch) {
        CENOTE_UNROLL
        for (int i = 0; i < kLoads; ++i) {
          const auto one = LoadAs(d, row + i * kNext);
          v[i] = hn::Add(v[i], squares ? hn::Mul(one, one) : one);
        }
      }
    }
  }
  HWY_INLINE void One(hn::Vec<D> v) const { total = hn::Add(total, v); }
  HWY_INLINE void Two(hn::Vec<D> v, hn::Vec<D> w) const { total = hn::Add(hn::Add(total, v), w); }
};

/// A band of a slice: where it is read and written. Rows are counted from the first that it sees.
template <class T>
struct Band {
  const T* from;  // its first row
  std::int64_t slice_pitch, slices;
  std::int64_t first_row, end_row;  // of outputs
  std::int64_t first_y, rows;       // of the input
  T* to;
  // What is asked for meanwhile, of each slice: numbers, for it may lie beyond the tensor.
  std::uintptr_t ahead, ahead_end;
};

/// Asks for what a later band reads, as it lies in memory, a share of it with each vector of this one. kAsks: or for nothing.
template <bool kAsks, class T>
class BandAhead {
 public:
  /// `elements`: that each vector reads for the first time, or may.
  BandAhead(const Band<T>& band, std::int64_t elements)
      : next_(band.ahead),
        end_(band.ahead_end),
        slices_(band.slices),
        pitch_(static_cast<std::uintptr_t>(band.slice_pitch) * sizeof(T)),
        share_(static_cast<std::uintptr_t>(elements) * sizeof(T)) {}

  HWY_INLINE void Move() {
    if (!kAsks || next_ >= end_) return;
    for (const std::uintptr_t share_end = next_ + share_; next_ < share_end; next_ += 64) {
      std::uintptr_t at = next_;
      for (std::int64_t z = 0; z < slices_; ++z, at += pitch_) hwy::Prefetch(reinterpret_cast<const char*>(at));
    }
  }

 private:
  std::uintptr_t next_, end_;
  std::int64_t slices_;
  std::uintptr_t pitch_, share_;
};

/// What a run of bands has in common.
template <Fold kFold, class D, class T>
class BandFolder {
  using C = hn::TFromD<D>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());
  static constexpr bool kWhole = std::is_same_v<D, hn::ScalableTag<C>>;

 public:
  BandFolder(const BandPlan& plan, char* scratch)
      : plan_(plan),
        packed_(reinterpret_cast<T*>(scratch + plan.packed_at) + plan.left),
        kept_(reinterpret_cast<C*>(scratch + plan.kept_at)),
        staged_(reinterpret_cast<T*>(scratch + plan.result_at)),
        thirds_(D()),
        reach_(larger(ceil_div(plan.width, kLanes) * kLanes,
                      ceil_div(plan.columns, kLanes) * kLanes * plan.stride - plan.left + plan.taps)) {
    // Outputs between which none sees padding; vectors that do are the first, the last, and perhaps the one before that.
    const std::int64_t first = ceil_div(plan.left, plan.stride);
    const std::int64_t last =
        plan.width + plan.left < plan.taps ? -1 : (plan.width + plan.left - plan.taps) / plan.stride;
    for (std::int64_t x = 0; x < plan.columns; x += kLanes) {
      if (x >= first && smaller(x + kLanes, plan.columns) - 1 <= last) {
        if (whole_.end == 0) whole_.x = x;
        whole_.end = x + kLanes;
      } else {
        FindInside(x, inside_[cut_off_]);
        segment_[cut_off_] = {x, x + kLanes, inside_[cut_off_]};
        ++cut_off_;
      }
    }
  }

  void Run(const T* source, T* target, std::int64_t begin, std::int64_t end) {
    // Counted on, for planes may be so small that three divisions each are felt.
    std::int64_t in_slice = begin % plan_.bands, z = begin / plan_.bands % plan_.slices;
    std::int64_t plane = begin / plan_.bands / plan_.slices;
    const auto next = [&] {
      if (++in_slice < plan_.bands) return;
      in_slice = 0;
      if (++z < plan_.slices) return;
      z = 0;
      ++plane;
    };
    for (std::int64_t unit = begin; unit < end; ++unit, next()) {
      const RowRange& depth = plan_.depth_rows[static_cast<std::size_t>(z)];
      Band<T> band;
      band.first_row = in_slice * plan_.band;
      band.end_row = smaller(band.first_row + plan_.band, plan_.rows);
      const RowRange& last = Rows(band.end_row - 1);
      band.first_y = Rows(band.first_row).first;
      band.rows = last.first + last.count - band.first_y;
      band.slices = depth.count;
      const std::int64_t at = plane * plan_.source_pitch + (depth.first * plan_.heights + band.first_y) * plan_.width;
      FindRows(source, at, band);
      band.ahead = reinterpret_cast<std::uintptr_t>(source) +
                   static_cast<std::uintptr_t>(at + band.rows * plan_.width) * sizeof(T);
      band.ahead_end = plan_.ahead == 0 ? 0 : band.ahead + static_cast<std::uintptr_t>(plan_.ahead) * sizeof(T);
      T* to = target + plane * plan_.target_pitch + (z * plan_.rows + band.first_row) * plan_.columns;
      band.to = plan_.streams ? staged_ : to;
      // Bands of rows as short as few lanes are soon read.
      plan_.ahead != 0 ? FoldBand<kWhole>(band) : FoldBand<false>(band);
      const std::int64_t first = band.first_row * plan_.columns, count = band.end_row * plan_.columns - first;
      if constexpr (kFold == Fold::sum) {
        if (plan_.powers.roots) TakeRoots(plan_.powers, first, count, band.to);
      }
      if (plan_.streams) writer_.Write(staged_, to, count);
    }
  }

 private:
  const RowRange& Rows(std::int64_t o) const { return plan_.height_rows[static_cast<std::size_t>(o)]; }

  /// Of the vector of outputs from `x` on, tap by tap.
  void FindInside(std::int64_t x, hn::Mask<D>* inside) const {
    const D d;
    auto lanes_before = [&](std::int64_t column) HWY_ATTR {
      return hn::FirstN(d, static_cast<std::size_t>(smaller(kLanes, ceil_div(larger(0, column), plan_.stride))));
    };
    for (std::int64_t tap = 0; tap < plan_.taps; ++tap) {
      const std::int64_t column = x * plan_.stride - plan_.left + tap;
      inside[tap] = hn::AndNot(lanes_before(-column), lanes_before(plan_.width - column));
    }
  }

  /// The rows of a band, or a copy of them where vectors would reach beyond the tensor.
  void FindRows(const T* source, std::int64_t at, Band<T>& band) const {
    const std::int64_t slice = plan_.heights * plan_.width, rows = band.rows * plan_.width;
    band.from = source + at;
    band.slice_pitch = slice;
    if (at >= plan_.left && at + (band.slices - 1) * slice + rows - plan_.width + reach_ <= plan_.extent) return;
    for (std::int64_t z = 0; z < band.slices; ++z) {
      std::memcpy(static_cast<void*>(packed_ + z * rows), source + at + z * slice,
                  static_cast<std::size_t>(rows) * sizeof(T));
    }
    band.from = packed_;
    band.slice_pitch = rows;
  }

  /// Vectors [x, end) of a row of outputs. `inside`: where each tap has an input, null where all have.
  struct Segment {
    std::int64_t x, end;
    const hn::Mask<D>* inside;
  };

  HWY_INLINE void Put(hn::Vec<D> v, std::int64_t x, T* to) const {
    StoreFirst(RoundedTag<T, D>(), RoundVector<T>(D(), v), plan_.columns - x,
               reinterpret_cast<RoundedLane<T>*>(to) + x);
  }

  /// Calls fold(x, end, inside, cut_off) for the vectors of a row of outputs: those that see no padding first, for they read most of a row.
  template <class Fold>
  HWY_INLINE void ForSegments(const Fold& fold) const {
    if (whole_.end > whole_.x) fold(whole_.x, whole_.end, nullptr, std::false_type());
    for (int i = 0; i < cut_off_; ++i) fold(segment_[i].x, segment_[i].end, segment_[i].inside, std::true_type());
  }

  template <bool kAsks>
  HWY_INLINE void FoldBand(const Band<T>& band) const {
    switch (plan_.stride) {
      case 1: return FoldBand<1, kAsks>(band);
      case 2: return FoldBand<2, kAsks>(band);
      case 4: return FoldBand<4, kAsks>(band);
      default:
        if constexpr (kHasThirds<C>) FoldBand<3, kAsks>(band);
    }
  }

  template <int kStride, bool kAsks>
  HWY_NOINLINE void FoldBand(const Band<T>& band) const {
    const Apart<kStride, D> apart = [this]() HWY_ATTR {
      if constexpr (kStride == 3) {
        return thirds_;
      } else {
        return Apart<kStride, D>(D());
      }
    }();
    if constexpr (kFold == Fold::sum) {
      Sum<kAsks>(band, apart);
    } else {
      const D d;
      auto nan = hn::MaskFromVec(hn::Zero(d));
      plan_.shares ? MaxOfKept<kAsks>(band, apart, nan) : MaxOfTaps<kAsks>(band, apart, nan);
      if constexpr (hwy::IsFloat<C>()) {
        if (HWY_UNLIKELY(!hn::AllFalse(d, nan))) MaxWithNaN(band, apart);
      }
    }
  }

  /// Down the rows that each row of outputs sees, as they lie in memory. Elements of Lp are raised here.
  HWY_NOINLINE void SumDown(const Band<T>& band) const {
    const D d;
    BandAhead<true, T> ahead(band, kLanes * plan_.row_stride);
    const std::int64_t pitch = plan_.width;
    const int factors = plan_.powers.factors;
    C* to = kept_ + plan_.left;
    for (std::int64_t o = band.first_row; o < band.end_row; ++o, to += plan_.kept_pitch) {
      const RowRange& height = Rows(o);
      const T* first = band.from + (height.first - band.first_y) * pitch;
      for (std::int64_t x = 0; x < pitch; x += kLanes) {
        auto sum = hn::Zero(d);
        ahead.Move();
        for (std::int64_t z = 0; z < band.slices; ++z) {
          const T* row = first + x + z * band.slice_pitch;
          for (std::int64_t y = 0; y < height.count; ++y, row += pitch)
            sum = hn::Add(sum, Product(LoadAs(d, row), factors));
        }
        hn::StoreU(sum, d, to + x);
      }
    }
  }

  template <bool kAsks, int kStride>
  HWY_INLINE void Sum(const Band<T>& band, const Apart<kStride, D>& apart) const {
    const D d;
    const bool shares = plan_.shares;
    if (shares) SumDown(band);
    const bool squares = !shares && plan_.powers.factors == 2;
    const std::int64_t pitch = plan_.width, taps = plan_.taps, columns = plan_.columns;
    const std::int64_t slices = shares ? 1 : band.slices, slice_pitch = band.slice_pitch;
    const T* at = band.from - plan_.left;
    const SliceDivisors& divisors = plan_.divisors;
    const float* each = divisors.all == 0 ? divisors.each.data() + band.first_row * columns : nullptr;
    const auto all = hn::Set(d, static_cast<C>(divisors.all)), inverse = hn::Div(hn::Set(d, C{1}), all);
    const bool multiplies = divisors.multiplies, negative = divisors.all < 0;
    BandAhead<kAsks, T> ahead(band, shares ? 0 : kLanes * kStride * plan_.row_stride);
    ForSegments([&](std::int64_t begin, std::int64_t end, const hn::Mask<D>* inside,
                    auto cut_off) HWY_ATTR CENOTE_ALWAYS_INLINE {
      T* to = band.to;
      const float* divisor = each;
      const T* kept = kept_;
      for (std::int64_t o = band.first_row; o < band.end_row; ++o, to += columns, divisor += columns) {
        const RowRange& height = Rows(o);
        const T* row = shares ? kept : at + (height.first - band.first_y) * pitch;
        const std::int64_t rows = shares ? 1 : height.count;
        kept += plan_.kept_pitch;
        for (std::int64_t x = begin; x < end; x += kLanes) {
          auto total = hn::Zero(d);
          ahead.Move();
          ForTaps<kStride, decltype(cut_off)::value>(
              d, apart, taps, inside, hn::Zero(d),
              SumOfRows<D, T>{d, row + x * kStride, rows, pitch, slices, slice_pitch, squares, total});
          total = multiplies ? hn::Mul(total, inverse)
                             : Quotient(d, total, each == nullptr ? all : LoadAs(d, divisor + x), negative);
          Put(total, x, to);
        }
      }
    });
  }

  /// Straight from the taps.
  template <bool kAsks, int kStride>
  HWY_INLINE void MaxOfTaps(const Band<T>& band, const Apart<kStride, D>& apart, hn::Mask<D>& nan) const {
    const D d;
    const auto identity = hn::Set(d, IdentityOf<Fold::max, C>());
    const std::int64_t pitch = plan_.width, taps = plan_.taps, columns = plan_.columns;
    const std::int64_t slices = band.slices, slice_pitch = band.slice_pitch;
    const T* at = band.from - plan_.left;
    BandAhead<kAsks, T> ahead(band, kLanes * kStride * plan_.row_stride);
    ForSegments([&](std::int64_t begin, std::int64_t end, const hn::Mask<D>* inside, auto cut_off)
                    HWY_ATTR CENOTE_ALWAYS_INLINE {
                      T* to = band.to;
                      for (std::int64_t o = band.first_row; o < band.end_row; ++o, to += columns) {
                        const RowRange& height = Rows(o);
                        const T* first = at + (height.first - band.first_y) * pitch;
                        for (std::int64_t x = begin; x < end; x += kLanes) {
                          auto value = identity;
                          ahead.Move();
                          for (std::int64_t z = 0; z < slices; ++z) {
                            const T* row = first + x * kStride + z * slice_pitch;
                            for (std::int64_t y = 0; y < height.count; ++y, row += pitch) {
                              ForTaps<kStride, decltype(cut_off)::value>(d, apart, taps, inside, identity,
                                                                         NumberMax<D, T>{d, row, value, nan});
                            }
                          }
                          Put(value, x, to);
                        }
                      }
                    });
  }

  /// Each row along, then down those that a window sees.
  template <bool kAsks, int kStride>
  HWY_INLINE void MaxOfKept(const Band<T>& band, const Apart<kStride, D>& apart, hn::Mask<D>& nan) const {
    const D d;
    const auto identity = hn::Set(d, IdentityOf<Fold::max, C>());
    const std::int64_t taps = plan_.taps, kept_pitch = ceil_div(plan_.columns, kLanes) * kLanes;
    const std::int64_t pitch = plan_.width;
    BandAhead<kAsks, T> ahead(band, kLanes * kStride);
    ForSegments([&](std::int64_t begin, std::int64_t end, const hn::Mask<D>* inside, auto cut_off)
                    HWY_ATTR CENOTE_ALWAYS_INLINE {
                      C* kept = kept_;
                      for (std::int64_t z = 0; z < band.slices; ++z) {
                        const T* row = band.from - plan_.left + z * band.slice_pitch;
                        for (std::int64_t y = 0; y < band.rows; ++y, row += pitch, kept += kept_pitch) {
                          if (!decltype(cut_off)::value && plan_.streams) {
                            // What vectors at the ends of the row will read.
                            hwy::Prefetch(row + plan_.left);
                            hwy::Prefetch(row + pitch);
                          }
                          for (std::int64_t x = begin; x < end; x += kLanes) {
                            auto value = identity;
                            ahead.Move();
                            ForTaps<kStride, decltype(cut_off)::value>(
                                d, apart, taps, inside, identity, NumberMax<D, T>{d, row + x * kStride, value, nan});
                            hn::Store(value, d, kept + x);
                          }
                        }
                      }
                    });
    T* to = band.to;
    for (std::int64_t o = band.first_row; o < band.end_row; ++o, to += plan_.columns) {
      const RowRange& height = Rows(o);
      const C* first = kept_ + (height.first - band.first_y) * kept_pitch;
      for (std::int64_t x = 0; x < plan_.columns; x += kLanes) {
        const C* slice = first + x;
        auto value = hn::Load(d, slice);
        for (std::int64_t z = 0; z < band.slices; ++z, slice += band.rows * kept_pitch) {
          for (std::int64_t y = 0; y < height.count; ++y) value = hn::Max(hn::Load(d, slice + y * kept_pitch), value);
        }
        Put(value, x, to);
      }
    }
  }

  /// Once more where there are NaNs, of which the last is kept.
  template <int kStride>
  HWY_NOINLINE void MaxWithNaN(const Band<T>& band, const Apart<kStride, D>& apart) const {
    const D d;
    const auto identity = hn::Set(d, IdentityOf<Fold::max, C>());
    hn::Mask<D> all[kMostBandTaps];
    for (auto& one : all) one = hn::FirstN(d, kLanes);
    T* to = band.to;
    for (std::int64_t o = band.first_row; o < band.end_row; ++o, to += plan_.columns) {
      const RowRange& height = Rows(o);
      const T* first = band.from - plan_.left + (height.first - band.first_y) * plan_.width;
      ForSegments([&](std::int64_t begin, std::int64_t end, const hn::Mask<D>* inside, auto) HWY_ATTR {
        for (std::int64_t x = begin; x < end; x += kLanes) {
          Accumulator<D, Fold::max, false> a{identity};
          for (std::int64_t z = 0; z < band.slices; ++z) {
            const T* row = first + x * kStride + z * band.slice_pitch;
            for (std::int64_t y = 0; y < height.count; ++y, row += plan_.width) {
              ForTaps<kStride, true>(d, apart, plan_.taps, inside != nullptr ? inside : all, identity,
                                     AnyMax<D, T>{d, row, a});
            }
          }
          Put(a.value, x, to);
        }
      });
    }
  }

  const BandPlan& plan_;
  T* packed_;
  C* kept_;
  T* staged_;
  std::conditional_t<kHasThirds<C>, Apart<3, D>, Apart<1, D>> thirds_;
  std::int64_t reach_;  // elements from a row's first on that are read
  hn::Mask<D> inside_[3][kMostBandTaps];
  Segment whole_{0, 0, nullptr};
  Segment segment_[3];  // those that see padding
  int cut_off_ = 0;     // so many
  StreamWriter writer_;
};

template <Fold kFold, class T, class C>
void FoldBands(const BandPlan& plan, const void* source, void* target, std::int64_t begin, std::int64_t end,
               char* scratch) {
  auto fold = [&](auto d) HWY_ATTR {
    BandFolder<kFold, decltype(d), T> folder(plan, scratch);
    folder.Run(static_cast<const T*>(source), static_cast<T*>(target), begin, end);
  };
  // The shorter the vectors, the less is done that no output needs.
  constexpr std::int64_t kFew = 8;
  if constexpr (std::is_same_v<T, float>) {
    if (plan.columns <= kFew) return fold(hn::CappedTag<C, kFew>());
  }
  fold(hn::ScalableTag<C>());
}

#endif

}  // namespace cenote::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
