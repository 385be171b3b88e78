// What the compiler must be told to inline and to unroll, and what not.
#pragma once

/// A loop over a fixed number of vectors, which must be unrolled for the vectors to stay in registers; -O2 does that only where told.
#if defined(__clang__)
#define CENOTE_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define CENOTE_UNROLL _Pragma("GCC unroll 16")
#else
#define CENOTE_UNROLL
#endif

/// A lambda that must be inlined for the vectors it captures to stay in registers.
#if defined(__GNUC__) || defined(__clang__)
#define CENOTE_ALWAYS_INLINE __attribute__((always_inline))
#else
#define CENOTE_ALWAYS_INLINE
#endif

/// A function that is called where speed does not matter, from too many places to be inlined in each.
#if defined(__GNUC__) || defined(__clang__)
#define CENOTE_NOINLINE __attribute__((noinline))
#else
#define CENOTE_NOINLINE
#endif
