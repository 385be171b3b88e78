// Loops over a fixed number of vectors must be unrolled for the vectors to stay in registers; -O2 does that only where told.
#pragma once

#if defined(__clang__)
#define CENOTE_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define CENOTE_UNROLL _Pragma("GCC unroll 16")
#else
#define CENOTE_UNROLL
#endif
