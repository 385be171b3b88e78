// Where one way becomes faster than another: every number that decides, beside its reason. scripts/measure-thresholds.sh measures
// those that depend on the machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cenote::simd {

/// Below this many bytes a call is run on the calling thread: waking another costs more than it saves.
inline constexpr std::int64_t kSerialBytes = 128 * 1024;
/// Rows of planes that follow each other are those of one where it has so many at least, and so many elements at most: enough rows for a band of them, few enough elements to fill threads and blocks of small
/// planes. (Two threads, as planes of one row and so: 4/1 maxima over 49152 rows of 93 1137 us and 730, 3/2 over 2048 of 18 15 and 4, 1x3/1 over 7 x 7 28 and 10, 4/4 averages over 16384 of 135 234 and
/// 125, backward 219 and 134, 100 to 25 83 and 45; with 8 Ki instead of 2 Ki elements the same, but bf16 1x3/1 over 7 x 7, in blocks, 17 and 215.)
inline constexpr std::int64_t kFewestStacked = 4;
inline constexpr std::int64_t kStackedElements = 2 * 1024;
/// Pieces per thread: enough to even out threads that start late, few enough to keep rows together.
inline constexpr std::int64_t kPiecesPerThread = 4;

/// Planes deeper or higher than this have no tables of rows: a plan is made before memory for them is found.
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 20;
/// Rows of more columns than this have no tables, which take as much memory as the row: they are folded plainly. Not measured: a
/// plan of a few hundred megabytes is the most that anybody will expect.
inline constexpr std::int64_t kMostColumns = std::int64_t{1} << 24;

/// Source bytes of a tile in the compute type. Half of a 32 KiB L1 leaves room for the source rows themselves and the result.
inline constexpr std::int64_t kTileBytes = 16 * 1024;
/// The same where windows are wide, in L2; and where outputs are folded straight from their taps and there are rows enough for threads to share. (3x3/1
/// averages over 17 x 17 x 288, one thread: 19.8 us with tiles of 16 KiB, 18.6 with these, bf16 28.9 and 25.3. How many rows: not measured.)
inline constexpr std::int64_t kManyRows = 64;
inline constexpr std::int64_t kWideTileBytes = 96 * 1024;
/// The same where inputs gather straight from the outputs that see them, and nothing is buffered. (3x3/2 over 55 x 55 x 96, two threads: 245 us
/// with tiles of 16 KiB, 225 with 32, 253 with 8, 293 with 4.)
inline constexpr std::int64_t kGatherTileBytes = 32 * 1024;
/// From this many taps on, a vector along the window beats gathering across windows.
inline constexpr std::int64_t kSpannedTaps = 8;
/// From this many taps on, folding a row by doubling beats folding tap by tap: 3 passes with a store each against 7 loads.
inline constexpr std::int64_t kDoublingTaps = 7;
/// Windows of at least this many rows, a third of which at most is new in each, are folded in blocks: three folds and two stores per
/// row against so many loads. A block's rows take this much of an L2.
inline constexpr std::int64_t kTallTaps = 10;
inline constexpr std::int64_t kMostTallTaps = 1024;
inline constexpr std::int64_t kTallBytes = 256 * 1024;
/// Sums of more taps than this, in columns of many channels, or of neither two nor three along the row, are kept in L1 and not in registers, all channels
/// of a column before the next: memory is read as it lies. (Two threads: 7x7/7 over 26 MB 278 us, 358 down and along; 8x8/8 over 51 MB 1080 and 1165.) Maxima,
/// folded in row-major order, gain nothing: so many taps are folded straight only where they are no more than half of what is written around the caches
/// (8x8/8 over 51 MB 2415 straight, 1102 down and along).
inline constexpr std::int64_t kFewDirectTaps = 9;
/// And beyond the caches, where windows share nothing, so many bytes of a row further ahead than what is read next. (Two threads, the copy 52 GB/s, without, with 512 bytes, 1024, 1536, 2048 and 3072: 2x2/2 maxima over
/// 8 x 500 x 64 x 64 1779 to 1803 us, 1574, 1480, 1427, 1460, 1465, over 568 x 568 x 64 2014 to 2091, 1956, 1908, 1893, 1915, 1845, over 4 x 200 x 200 x 128 1813 to 1835, 1689, 1680, 1711, 1721, 1732; 3x3/3 over that x 96 1488 to
/// 1526, 1394, 1443, 1470, 1390, 1462.)
inline constexpr std::int64_t kStraightAheadBytes = 1536;
/// Columns of many channels are folded straight from their taps, as many vectors at once as registers hold. (Two threads, four vectors at once by a loop that asks more of each tap, and 16: 2x2/2 maxima over
/// 2 x 136 x 136 x 256 975 us and 530, over 8 x 56 x 56 x 256 475 and 287, 3x3/2 over 8 x 28 x 28 x 480 105 and 97; global averages of 8 x 112 x 112 x 256 3097 and 1202, of 8 x 56 x 56 x 256 176 and 133; averages
/// 7x7/7 over that 226 and 168.) Maxima whose windows share rows as well where columns have so many vectors; times that an element is read at most. (1x9/1 maxima over 8 x 56 x 56 x 128 324 and 209, 1x5/1 236 and
/// 160, 6x6/3 over 4 x 96 x 96 x 64 130 and 111, where channels are few 3x3/1 over 28 x 28 x 192 78 and 113, 3x3/2 over 35 x 35 x 288 86 and 95.) With indices eight at once, whatever windows share. (2x2/2 over 4 x 224 x 224 x 64 1870 us and 1510 to 1600, 3x3/1 over
/// 8 x 14 x 14 x 512 190 and 121, adaptive 56 to 7 1750 and 1205.) Columns have so many vectors at least, but for maxima with indices whose windows are not one apart. (One thread, row by row and so: 2x2/2 over 8 x 112 x 112 x 16 285 and 212, f16
/// 270 and 198, of 32 channels 270 and 293, f16 320 and 260, 3x3/2 605 and 430, f16 565 and 395; but 3x3/1 over 4 x 56 x 56 x 16 98 and 175, of 48 channels 313 and 363.)
inline constexpr std::int64_t kStraightVectors = 4;
inline constexpr std::int64_t kTileVectors = 16;
inline constexpr std::int64_t kSharedVectors = 24;
inline constexpr double kMostReadings = 9;
/// Sums whose windows share rows are taken in tiles whose rows stay in an L1, of so many columns of outputs at least (5x5/2 averages 71 us row by row and 48 in tiles, 52 without them; over six shapes 12 to 96 KiB are within
/// 7 % of each other); and threads want so many units to share: not measured.
/// Maxima with indices that come from memory have the wide tiles' bytes and all channels. (One thread, 8-byte indices, f32 and f16: 3x3/2 over 24 x 112 x 112 x 64 3300 and 3165 us row by row, 2940 and 2090 in tiles for an L1,
/// 2400 and 1960 so; 3x3x3/2 over 4 x 16 x 56 x 56 x 64 3400 and 2580, 3900 and 2150, 3500 and 1690.)
inline constexpr std::int64_t kStraightTileBytes = 24 * 1024;
inline constexpr std::int64_t kFewestTileColumns = 8;
inline constexpr std::int64_t kManyUnits = 16;
/// Windows that read no column more often than this, on average, sum it up each time: what waits in L1 for the next window costs more. (Two threads: averages 4/3 over 56 x 56 x 64 46 us with sums that
/// wait and 36 without, 5/3 53 and 41, 4/2 57 and 53, 5/2 60 and 63, 6/2 71 and 80; over 17 x 17 x 768 42 and 38, 56 and 50, 58 and 56, 71 and 75, 67 and 78.)
inline constexpr std::int64_t kFewReadings = 2;
/// Windows of so many rows that are summed up in lanes are taken some rows at a time, as memory lies. (Two threads: averages of 8 x 56 x 56 x 256 207 us and 150, of 8 x 112 x 112 x 64 318 and 155.)
inline constexpr std::int64_t kTallRows = 32;
/// Rows of a window that columns are summed up over at a time. (Two threads: averages of 56 x 56 over 8 x 256 channels 577 to 1020 us with all of them, 273 with 8, 290 with 16; 28 x 28 over
/// 8 x 512 127 to 147, 97, 105; 10 x 10 over 2 x 60 x 60 x 512 116 to 124 with all, 152 with 8.)
inline constexpr int kRowsAtOnce = 16;
/// Rows of a window, or of what is summed up after it, that columns of many channels are asked for early. (In a harness, 2 to 8 were within 3 % of each other.)
inline constexpr std::int64_t kRowsAhead = 4;
/// How far ahead of their use source rows are fetched where they come from memory.
inline constexpr std::int64_t kFetchBytes = 8192;
/// What the buffer between folding down and folding along costs, in loads: a store and a load for each element of it, and the
/// passes over the result that a fold straight from the taps does on the way.
inline constexpr std::int64_t kStoreAndLoad = 2;
inline constexpr std::int64_t kPasses = 4;

/// Windows one column apart are folded straight from their taps only where a column has at least so many vectors of channels: where
/// it has fewer, whole rows do without a start and an end for each column.
inline constexpr std::int64_t kDirectVectors = 4;

/// Instructions of folding a vector into a maximum (with its NaN), into one with its index, and into one with its index where the
/// order does not settle ties; and of a row's further passes, per vector of outputs.
inline constexpr std::int64_t kMaxFold = 3;
inline constexpr std::int64_t kIndexedFold = 5;
inline constexpr std::int64_t kUnorderedFold = 9;
inline constexpr std::int64_t kRowPass = 4;

/// What a scatter sums up in scratch before it is written: a quarter of a 1 MiB L2.
inline constexpr std::int64_t kBandBytes = 256 * 1024;
/// Where so many inputs and more have one output between them, outputs are located again for every band that their windows reach into, which costs next to nothing beside the band's zeros: bands are then as high
/// as is good for the caches and the threads, not as windows are. (Two threads, channels-last, in bands of four windows or some channels at a time, and so: whole planes of 76 x 76 x 512 194 us and 59, of 320 x 320 x 96
/// 2362 and 487, bf16 1338 and 89, of 10 x 64 x 64 x 80 787 and 59, adaptive 3 x 16 x 28 x 28 x 192 to 5 x 5 x 5 1080 and 463 to 506; bands of 128 KiB and 1 MiB within 10 % of those of 256.)
inline constexpr std::int64_t kLocatedAgain = 32;
/// Columns are taken apart only where a single window's slices take more than this.
inline constexpr std::int64_t kMostBandBytes = 4 * 1024 * 1024;
/// Elements of columns whose taps are looked at before their gradients are added: not measured beside others, 2 KiB of taps and 8 KiB of gradients stay in L1.
inline constexpr std::int64_t kTapElements = 2048;
/// Outputs in a row that see one input, from which on most have the winner of the one before: a branch then costs less than a sum that waits
/// for itself in memory. (One apart over 3 x 1024 x 1024: 31x31 4936 us without and 3059 with, 15x15 4136 and 3372, 9x9 3219 and 4128.)
inline constexpr std::int64_t kLongRuns = 12;
/// Outputs located in one go, and of each of several planes in turns. (5x5/1 over 40 x 40, in L2: 0.67 ns each 512 at a time, 0.64 all 1600.)
inline constexpr std::int64_t kSegment = 512;
inline constexpr std::int64_t kPlaneSegment = 2048;
/// Channels of a column are taken apart into no fewer than these: a cache line of 4-byte elements.
inline constexpr std::int64_t kLeastChunk = 16;
/// From this many channels on, the indices of a column are located on their own.
inline constexpr std::int64_t kWideColumn = 64;
/// Planes of so few outputs, with windows of so few rows, have the windows of all outputs in tables, of so many entries at most. (3x3/2 over 112 x
/// 112: 1416 us for 16 x 64 planes, 1614 row by row. Two threads: 3x3x3/1 over 192 planes of 8 x 28 x 28 475 and 1154, over 64 of 16 x 28 x 28 330 and 756; 3x3x3/2 over 64 of 8 x 112 x 112 718 and 860;
/// 5x5/1 over 64 of 112 x 112 319 and 415.)
inline constexpr std::int64_t kMostPlaneOutputs = 32 * 1024;
inline constexpr std::int64_t kMostPlaneRows = 32;
inline constexpr std::int64_t kMostPlaneEntries = 64 * 1024;
/// Planes that are added to in turns: neighbouring windows often have one winner, and a sum waits for the one before it.
inline constexpr std::int64_t kPlanesInTurns = 4;
/// Planes a multiple of 4 KiB apart, or so little more or less, are not added to at the same place in turns: a load that agrees with a store before it in its last 12 bits waits for it. One is so many outputs
/// ahead of the next then. (Additions alone, in L2: 3x3/1 over 64 x 64 1.84 ns each without and 0.71 so, 9x9/1 0.93 and 0.55, 7x7/1 over 160 x 160 0.90 and 0.58; 5x5/1 over 40 x 40, which does not lie so, 0.49 and 0.49.)
inline constexpr std::int64_t kLagOutputs = 16;
inline constexpr std::int64_t kLagBytes = 128;
/// The most bytes of planes that are added to in turns, half of a 1 MiB L2; only some rows of each are at a time. (3x3/2 over 16 planes of
/// 112 x 112, one thread: 44 us four at a time, 53 one by one.)
inline constexpr std::int64_t kGroupBytes = 512 * 1024;
/// The same where windows do not overlap, no sum waits for another, and most of what is written are zeros: an L1. (8x8/8 over 4096 planes of
/// 56 x 56, one thread: 3800 us with 256 KiB, 3346 with 64, 2851 with 32, 3447 with 16; bf16 3326, 3053, 2639, 2651.)
inline constexpr std::int64_t kApartBytes = 32 * 1024;
/// Windows of so few taps, in columns of so many channels, are compared with vectors of indices, tap by tap: a scalar scatter takes
/// some 8 instructions per index.
inline constexpr std::int64_t kComparedTaps = 12;
inline constexpr std::int64_t kComparedChannels = 32;
/// Planar rows of at least so many outputs, whose windows do not overlap and have so few taps, gather instead: an input is compared
/// with the index of the one output of a row that sees it. Shorter rows cost more to set up than they save.
inline constexpr std::int64_t kGatheredTaps = 64;
inline constexpr std::int64_t kGatheredColumns = 64;
/// The same for columns of many channels whose indices are taps: an input is compared with every output that sees it. Windows of more taps where so few do
/// and results go around the caches; within them few additions to zeros are faster (a whole plane of 14 x 14 x 512, 6 MB, two threads: 145 us scattered, 178 gathered).
/// (8x8/8 over 56 x 56 x 512, 51 MB, one thread: 2278 us gathered, 5012 scattered.)
inline constexpr std::int64_t kGatheredColumnTaps = 32;
inline constexpr std::int64_t kFewOutputs = 4;
/// Deep windows of so few taps have a bit for each in a table of planes located whole, and one bit to spare: measured when flat ones had it too. (One thread, 64 planes: 3x3/2 over 55 x 55
/// 43 us, 50 by places; 5x5/1 over 28 x 28 38 and 50.)
inline constexpr std::int64_t kFewTaps = 31;
/// Taps of windows of so few are taken apart by multiplications in 32 bits, see TapPlaces. More are divided, one by one.
inline constexpr std::int64_t kTabledTaps = 4096;
/// Columns seen by so many outputs, and no more, are gathered by loops for as many.
inline constexpr int kAlikeOutputs = 4;
/// Windows that share nothing are not gathered but stored, each gradient to all inputs of its window, where no more belong to an output in a slice. (Two threads, scattered and so: 8x8/8 over 48 x 48 x 192 25 us and
/// 9.6, bf16 17.5 and 5.1, 7x7/7 over 8 x 112 x 112 x 64 505 and 172 to 450, 15x15/15 over 256 x 256 x 64, bf16, 53 and 56, torch 62 to 245.)
inline constexpr int kMostOwned = 256;
/// Unpooled columns of all channels that take more than this are unpooled in bands of so many bytes. (Two threads, 2x2 to 64 x 360 x 480: 9.6 to 10.3 ms without and 1.5 to 2.0 so; planes gain
/// nothing, 1000 to 1607 us and 1019 to 1495.)
inline constexpr std::int64_t kUnpooledBytes = 256 * 1024;
/// Elements of halves that are f32 for a while, before and after: between 2 Ki and 64 Ki it made no difference that could be told. A single plane may have so many, an L2. Rows are shorter than
/// this, or have no step that loads could follow. (Two threads, as halves and as f32: 2x2/1 maxima over 76 x 76 749 us and 267, 3x4x4/2 over 8 x 32 x 32 668 and 242, 2x3 averages over 112 x 112
/// 618 and 307, backward 650 and 345, 7x7/6 over 224 x 224 80 and 56; of rows of 250 2/2 maxima 102 and 91, but of 500 73 and 86, of 1200 5/1 298 and 450, 4/4 averages 150 and 171.)
inline constexpr std::int64_t kWidened = 16 * 1024;
inline constexpr std::int64_t kMostWidened = 128 * 1024;
inline constexpr std::int64_t kLongWidened = 256;
/// Units of a scatter, or of unpooling, that there should be at least, for threads to share.
inline constexpr std::int64_t kFewestUnits = 8;

/// Planes whose rows have fewer bytes than this (in the compute type) are folded side by side; a row costs some 40 ns whatever
/// its length.
inline constexpr std::int64_t kShortRowBytes = 256;
/// The most scratch that planes side by side may take: half of a 1 MiB L2.
inline constexpr std::int64_t kBlockBytes = 512 * 1024;

/// Rows so far apart, or a multiple of it, lie in the same lines of an L1. Of maxima of columns four rows of outputs are made at a time, two where all rows lie so. (One thread, 64 channels:
/// 3x3/2 over 4 x 56 x 56 73 us a row at a time, 61 with two rows, 58 with four; 4 x 64 x 64 94, 80, 86; 4x4/2 over that 155, 112, 128; 5x5/2 over 4 x 112 x 112 706, 493, 662. 3x3/1 over
/// 28 x 28 15.6 with one and 9.0 with four.) Slices of outputs that have a table: not measured.
inline constexpr std::int64_t kAliasBytes = 4096;
/// Taps of windows over columns of few channels that are folded straight, vectors of several columns at a time: of more, rows are folded down first. (One thread: 3x3/2 over 16 x 28 x 28 x 20 73 us row by
/// row and 46 straight, over 32 x 112 x 112 x 8 1273 and 767; 2x2/2 over 64 x 28 x 28 x 20 225 and 127; 5x5/2 over 16 x 28 x 28 x 20 58 and 104.)
/// Of more, too, where few are read twice. (Two threads: 7x7/7 over 103 x 28 x 28 x 16 42.9 us and 35.2, 11x11/11 over 4 x 224 x 224 x 20 170 and 102.) Rows are folded down first in L1 where fewer vectors are
/// read and written that way. (7x7/6 over 224 x 224 x 20 56.7 us and 32.5, 4x4/4 of bf16 over 512 x 28 x 28 x 6 182 straight and 119, 3x3/3 of bf16 over 183 x 35 x 26 x 4 42.7 and 37.2.)
inline constexpr std::int64_t kMostNarrowTaps = 16;
/// Averages of columns of fewer than so many vectors, which do not fill them or are shared by windows, are summed up down the rows and then along by a table. (Two threads, along by gathers or straight from the taps, and so:
/// 3x3/3 over 2 x 128 x 128 x 4 10.1 us and 4.6, over 291 x 38 x 76 x 3 229 and 138, 8x8/8 over 512 x 32 x 32 x 8 244 and 176, 3x3/1 over 400 x 16 x 16 x 24 407 and 305, 3x3/3 over 7 x 21 x 42 x 40 7.3 and 6.2, of bf16 7.5 and 5.4; but
/// 1x2x2 of bf16 over 660 x 16 x 16 x 48 184 straight and 288.) Bytes of any number of channels. (3x3/3 over 291 x 38 x 76 x 3 205 us and 89, 2x2/2 over 98 x 10 x 7 x 384 86 and 43, 13x13/13 over 2 x 24 x 24 x 160 11.1 and 5.0.)
inline constexpr std::int64_t kMostNarrowSums = 4;
/// Columns that fill more than half of a vector of so many lanes at most take it whole, with what lies beside them, not two shorter ones; longer ones cross lines. (One thread: 2x2/2 over 64 x 28 x 28 x 6 43.7 us
/// with two of 4 lanes and 39.0 with one of 8, over 32 x 56 x 56 x 5 82 and 59, 3x3/3 x 7 68 and 55; 3x3/2 x 10 157 with two of 8 and 166 with one of 16, 2x2/2 x 12 102 and 98.)
inline constexpr std::int64_t kMostLanesBeyond = 8;
/// Bytes of a row that are asked for in one go, beyond the caches, and columns of outputs that they belong to, at most; or as many as belong to one, up to another most. Such stretches of a row at least. Times that an element is read at most, for windows that
/// read more wait less. (Two threads, one column of outputs after the other and with 2 KiB, two columns at least, while the copy took 60 GB/s: 3x3/2 over 8 x 109 x 109 x 96 787 to 910 us and 510 to 580, 16 x 112 x 112 x 64 1112 to 1140 and 552 to 827, 16 x 150 x 151 x 32
/// 1032 to 1083 and 817, 4x4/2 over 4 x 256 x 256 x 64 1683 to 1701 and 1295, 3x3x3/2 over 32 x 112 x 112 x 64 4148 to 4263 and 3522 to 3668; one column at a time, 3x3/2 over 16 x 71 x 71 x 192, 1384 to 1440
/// and 1491; 3x3/1 over 4 x 128 x 128 x 80 490 to 539 and 559 to 564, 5x5/2 over 2 x 400 x 400 x 32 557 to 791 and 732 to 769. With that, 1 KiB and 512 bytes, the copy 52 GB/s: 3x3/2 over 3000 x 2000 x 16 12.0 ms, 11.2 and 10.5,
/// 4 x 700 x 600 x 16 2966 us, 2589 and 2430, 16 x 150 x 151 x 32 842, 754 and 760, 2 x 600 x 500 x 48 3681, 3508 and 3257, 8 x 224 x 224 x 64 3053, 2603 and 2408, 4 x 200 x 200 x 128 2366, 2213 and 2184. The copy 85 GB/s, 3000 x 2000 x 16
/// 7.9 ms, 7.6 and 6.8, 6.8 with 384, 7.1 with 256; but 4x4/2 over 4 x 500 x 400 x 32 1960 us, 2120 and 2200. Four columns of outputs, three, two and one, the
/// copy 52 GB/s: 3x3/2 over 3000 x 2000 x 16 10.1 to 10.6 ms, 9.8 to 10.1, 9.3 to 9.7 and 12.7, 2x2/2 over 8 x 500 x 400 x 16 3250 us, 3060 and 2990; 3x3/2 over 16 x 150 x 151 x 32 716 with two and 850 with one.)
inline constexpr std::int64_t kColumnTileBytes = 512;
inline constexpr std::int64_t kMostTileColumns = 2;
inline constexpr std::int64_t kMostColumnTileBytes = 1024;
inline constexpr std::int64_t kMostTiledReadings = 4;
inline constexpr std::int64_t kFewestColumnTiles = 4;
inline constexpr std::int64_t kMostColumnSlices = std::int64_t{1} << 20;

/// Input bytes of the rows that small windows are folded from strip by strip, and how far ahead of its use a call's input is fetched that
/// comes from memory. (Two threads, planar: 2x2/2 over 224 x 224 2095 us with 8 KiB, 2250 with 16, 2460 with 64; (1,3,3)/2 over 112 x 112 2234, 2453,
/// 2507; 3x3/2 over 109 x 109 1642, 1733, 1911, and 2295 where nothing is fetched. Fetched as it lies in memory and not as strips read it, the first took
/// 1606 where it had taken 2826.) The most outputs of a plane that may have a table.
inline constexpr std::int64_t kStripBytes = 8 * 1024;
/// Outputs of planes that one strip each covers whose indices are put together, at least: an eighth of an L1 as 4-byte codes. (Two threads, plane by plane and so: 2x2/2 over 64 planes
/// of 7 x 7 1.79 us and 0.74, over 4096 of 14 x 14 87 and 56, 3x3/1 over 1024 of 12 x 12 41 and 34.)
inline constexpr std::int64_t kNarrowOutputs = 1024;
/// Rows of outputs that strips are folded of at least. (Two threads: 2x2/2 over 64 planes of 388 x 388 770 us with two rows, 655 with four, 667 with eight; of f16 over 16 of 1000 x 1000 608 with one, 472, 490. In bands,
/// as memory lies: 1285, where strips of f32 take 1580 with one and 1360 to 1440 with four.)
inline constexpr std::int64_t kFewestStripRows = 4;
inline constexpr std::int64_t kMostStripOutputs = std::int64_t{1} << 20;
/// The most scratch of a thread for slices that are kept and for a copy of the tensor's last: not measured, a few megabytes are the most that anybody
/// will expect.
inline constexpr std::int64_t kMostStripBytes = 4 * 1024 * 1024;

/// Input bytes of the rows that other small windows are folded from in one go, half of an L1: not measured beside others. (One thread, row by row or in blocks before: 4x4/2 maxima
/// over 256 planes of 64 x 64 510 us and 195, 2x2/1 over 512 of 26 x 26 160 and 125, 5x5/2 over 256 of 112 x 112 1325 and 900, 4x4/4 over 128 of 128 x 128 374 and 130; 4x4/4 averages over
/// 512 of 64 x 64 503 and 105, 5x5/3 over 6144 of 17 x 17 586 and 457; 3x3/2 maxima of bytes over 512 of 112 x 112 1450 and 315.) Nothing is fetched early: those took 214, 120, 951, 205, 160, 516
/// and 322 with the next band asked for. Calls that
/// write around the caches have it asked for: two threads, without and with, 4x4/4 maxima over 36 MB 345 to 790 and 246, over 54 MB 1583 to 2200 and 420, 3x3/3 over 57 MB 2200 and 510, 4x4/2 over 32 MB 1090 and 560,
/// 4x4/4 averages over 41 MB 500 and 286, over 98 MB 2670 and 950; over 16 MB as fast either way.
inline constexpr std::int64_t kBandRowBytes = 16 * 1024;
/// Windows along a row that see an element, above which sums over rows of at least so many bytes are left to rows. (One thread, in bands and row by row: averages over 32 or 64 planes of
/// 64 x 64 5x5/2 106 us and 161, 7x7/2 79 and 106, 4x4/1 104 and 175, 6x6/2 52 and 97, 8x8/3 53 and 85; of 112 x 112 5x5/2 385 and 455; of 224 x 224 5x5/1 2637 and 1870, 7x7/2 1895
/// and 989.)
inline constexpr std::int64_t kMostBandOverlap = 2;
inline constexpr std::int64_t kOverlappingRowBytes = 512;

/// Windows more than one row high over rows of so few outputs are folded in blocks, planes side by side: where they overlap along the row, one apart and further, where they do not, and where they come from memory, in which blocks do not go
/// straight on. (Two threads, 4 MB, in bands and in blocks: 3x3/3 over 8 x 8 maxima 166 us and 82, averages 164 and 102, over 14 x 14 93 and 71, 91 and 67, over 20 x 20 63 and 73, 63 and 67; 4x4/4 over 10 x 10 134 and 103, 110 and 67;
/// 5x5/2 with padding over 8 x 8 357 and 162, 419 and 161, without over 20 x 20 93 and 125, 133 and 93, 5x3/2 over 16 x 16 108 and 116, 116 and 170; 4x4/1 over 10 x 10 252 and 193, 417 and 199, over 16 x 16 197 and 195, 230 and 184; 3x2/1
/// over 10 x 10 269 and 216, 257 and 263. 45 MB: 3x3/3 over 8 x 8 2157 and 1608, 2152 and 2201, over 14 x 14 1146 and 1627, 1373 and 1703, 5x3/2 over 16 x 16 1355 and 2557, 1616 and 3004.)
inline constexpr std::int64_t kFewOneApart = 10;
inline constexpr std::int64_t kFewOverlapping = 6;
inline constexpr std::int64_t kFewFromMemory = 2;
inline constexpr std::int64_t kFewApart = 4;
/// Taps along the row of maxima one apart, over rows up to as long as those that are joined, that are compared one by one at most, not by doubling. (Two threads, 4 MB in rows of 117, 400 and 2000, doubled and so: 7/1 296 us and 147, 181 and 143, 131 and
/// 146, 8/1 347 and 161, 237 and 175, 169 and 172, 10/1 368 and 187, 207 and 199, 169 and 183, 13/1 with padding 385 and 328, 238 and 281, 157 and 214.)
inline constexpr std::int64_t kMostApartTaps = 8;

/// Windows one apart over rows that stay as long as they are have joined rows up to so many columns, and maxima up to so many taps along them. (Two threads, in bands, row by row or in blocks, and
/// joined: 5x5 maxima over 2048 planes of 20 x 20 256 us and 127, of 13 x 13 99 and 67, over 512 of 40 x 40 175 and 108, over 256 of 64 x 64 185 and 146, over 32 of 200 x 200 231 and 186; 7x7 over 64 x 64 603
/// and 187, 9x9 over 20 x 20 283 and 234; 5x5 averages over 20 x 20 489 and 124, 64 x 64 376 and 134, 32 of 600 x 600 6038 and 3418. In strips, 3x3 averages over 6144 of 17 x 17 292 and 203, but over 28 x 28 120
/// and 134, maxima over 28 x 28 92 and 100.) Bytes that are folded one way before they are read the other way: not measured beside others.
inline constexpr std::int64_t kLongestJoined = 1024;
inline constexpr std::int64_t kMostJoinedTaps = 9;
inline constexpr std::int64_t kJoinedBytes = 8 * 1024;

/// Rows of fewer outputs are not gathered by narrow windows, nor by those that overlap: the scatter is as fast. (One thread, 256 planes: 3x3/1 over 16 x 16
/// 60.9 us gathered and 52.5 scattered, 20 x 20 101 and 83, 28 x 28 133 and 182; 3x3/2 over 40 x 40 30.8 and 27.7, 48 x 48 35.0 and 42.9; 2x2/2 over 32 x 32 57
/// and 80.) Windows five columns wide and one apart: 5x5/1 over 16 planes of 56 x 56 44 us gathered and 37 scattered, 64 x 64 50 and 53, 96 x 96 112 and 119, four of 128 x 128 49 and 112. Bytes of taps that are looked at before rows are gathered, so that none is read while it is still being written, and rows of a slice that threads
/// share at least: not measured beside others.
inline constexpr std::int64_t kLeastGathered = 16;
inline constexpr std::int64_t kLeastOverlapping = 24;
inline constexpr std::int64_t kLeastWide = 64;
inline constexpr std::int64_t kTapBytes = 8 * 1024;
inline constexpr std::int64_t kLeastBand = 16;
/// Gradients that are put together while as many are written around the caches, a line at a time (see PacedRows): more than the stores that wait in a core, 64 bytes each, so
/// that none is read while it is still being written. (Two threads: 2x2/2 over 256 planes of 224 x 224 1474 us with 2 KiB, 1483 with 4, 1300 with 8, 1358 with 16; 3x3/2 over 512 of
/// 112 x 112 869, 947, 838, 877; bf16, 1024 of them, 2063, 2300, 1921, 1933.)
inline constexpr std::int64_t kStagedBytes = 8 * 1024;

/// Windows that share nothing are picked from a vector of inputs at a time where they have so few taps, and columns: the scatter has less to do for many. (Two threads, 512 planes: 4x4/4 over
/// 64 x 64 77 us picked and 129 otherwise, 5x5/5 over 50 x 50 58 and 57, 6x6/6 over 48 x 48 82 and 46; 10 columns of one row, one thread, 95 and 78.) Rows have so many columns at least, and slices
/// that are not joined so many inputs. (One thread: 2x2/2 over 4096 planes of 8 x 8 29 us and 56, of 6 x 6 34 and 31; 2x2x2/2 over 256 of 8 x 8 x 8 40 and 16, over 1024 of 4 x 14 x 14 112 and
/// 111, two threads over 64 of 32 x 32 x 32 84 and 239.)
inline constexpr std::int64_t kPickedTaps = 16;
inline constexpr std::int64_t kPickedColumns = 8;
inline constexpr std::int64_t kLeastPicked = 8;
inline constexpr std::int64_t kLeastPickedSlice = 256;
/// Calls that move more than this, and whose rows are long enough to be gathered an output row at a time, are: memory is written in order. (Two threads, 2x2x2/2 over 30 MB: 764 us picked, 488
/// gathered; 2x2/2 over 4 MB 39 and 45.) Where they are not, bytes of rows that vectors go down, one vector of columns after the other; columns of the rows that short ones are joined to, and pieces
/// that joined planes are cut into: not measured beside others.
inline constexpr std::int64_t kPickedCall = std::int64_t{20} << 20;
inline constexpr std::int64_t kPickedBytes = 4 * 1024;
inline constexpr std::int64_t kJoinedColumns = 512;
inline constexpr std::int64_t kMostPickedUnits = 64;

/// Windows that overlap along the row alone are gathered where so few outputs see a column, and rows have so many at least. (One thread, f32: 5/2 over 1024 rows of 1000 435 us scattered and 197 so, f64 550 and
/// 333; 8/4 over 256 of 4000 271 and 140; 3/1 over 2048 of 64 108 and 73; 9/1 over 1024 of 512 437 and 309, 16/1 475 and 497; 7/3 over 1024 of 300 93 and 92.) Bytes of columns that are looked at
/// together, in an L1, and columns that windows span at most, so that a block's own outputs are most of what it looks at: not measured beside others.
inline constexpr std::int64_t kMostLineOutputs = 12;
/// The same of f64. (Two threads, 1024 rows of 1000: 8/1 502 us gathered and 331 scattered, 16/2 446 and 193, 4/1 216 to 260 gathered, torch 332.)
inline constexpr std::int64_t kMostLineOutputs64 = 6;
inline constexpr std::int64_t kMostLineSpan = 1024;
inline constexpr std::int64_t kLeastLine = 64;
inline constexpr std::int64_t kLineBytes = 8 * 1024;

/// Bytes of a plane whose maximum is known before that of the next are looked at, so that where it lies is looked for in an L1: not measured
/// beside others. (Two threads, with indices, folded with codes and so: 12 planes of 1000 x 1000 1550 us and 517 to 547, 8192 rows of 1024 1181 to 1229 and 380 to 406.)
inline constexpr std::size_t kWholePieceBytes = 16 * 1024;
/// Bytes ahead of their use that planes longer than a vector are fetched which are averaged. (Two threads: 12288 planes of 196 78 us without and 62 so, torch 56; 4096 of 28 x 28 73 and 66, torch 67; of
/// 33 x 33 109 and 98, 1024 of 56 x 56 65 and 57; f64, 12288 of 196 241 and, in rows, 133.)
inline constexpr std::uintptr_t kWholeAhead = 4096;

/// Planes of so many outputs at least, whose small windows overlap, are collected from a vector of inputs at a time; of fewer, several are scattered at once. (Two threads: 3x3/2 over 3840
/// planes of 28 x 28 287 us and 574 scattered, 3x3/1 over 4096 of 14 x 14 193 and 369, over 13312 of 7 x 7 287 and 400; one thread, 3x3/2 over 4096 of 7 x 7 81 and 56. 3x3/2 over 1536 of
/// 56 x 56, 24 MB, two threads: 667, and 533 gathered an output row at a time.)
inline constexpr std::int64_t kLeastCollected = 36;
inline constexpr std::int64_t kMostCollected = 16 * 1024;

/// Small windows one apart that leave planes as large as they are go through the whole tensor as one plane where planar rows have no more columns than this, or columns no more channels. (Two threads, 3x3/1, planar:
/// over 2304 planes of 17 x 17 199 to 202 us scattered and 144 so, 2048 of 20 x 20 224 to 232 and 150, 1536 of 28 x 28 266 to 283, gathered an output row at a time, and 160 to 200, 7680 of those 1737 to 1786 and 943 to
/// 951, bf16 277 and 182, 256 of 64 x 64 143 to 153 and 130 to 133, 128 of 96 x 96 151 to 162 and 160, 320 of 128 x 128 1222 to 1248 and 2104 to 2175; rows of less than a vector, 8192 of 9 x 9 123 to 126, collected, and 166.
/// Channels-last: 480 x 640 x 3 901 to 945 and 335 to 343, 16 x 64 x 64 x 6 134 to 146 and 55 to 57, 8 x 32 x 32 x 48 68 to 70 and 57 to 62, 4 x 40 x 40 x 64 61 and 62 to 66.) Bytes of the rows that vectors go down
/// one after the other (28 x 28, 480 x 640 x 3 and four others within 8 % of each other with 16, 64 and 256 KiB, 64 x 64 and 512 x 512 x 8 134 to 142 us and 810 to 833 with 256, 167 and 1182 to 1209 with 1 MiB), and of planes that
/// have a table of what their windows' taps may be: not measured beside others.
inline constexpr std::int64_t kMostFlatColumns = 64;
inline constexpr std::int64_t kMostFlatChannels = 48;
inline constexpr std::int64_t kFlatBytes = 256 * 1024;
inline constexpr std::int64_t kFlatTable = 32 * 1024;

/// Windows over planar rows at no step that loads could follow are folded down and taken from there where rows have so many columns at least, and planes so many inputs to each output; maxima also where windows have so many rows, or two and
/// so many columns, or blocks leave them. (Two threads, as they were and so: adaptive 100 to 60, f32, averages 532 us and 212, 64 to 40 306 and 217, 200 to 150 233 and 261, 10 to 3 138 and 132, 9 to 4 184 and 236, 10 to 7 390 and 393, 8 to 7 415 and 525; maxima 2x5 132 and 172, with
/// indices 204 and 257, 2x6 185 and 181, 2x8 174 and 160, 2x16 174 and 131, 3x5 170 and 161, 1x5 172 and 292, where blocks leave them 1042 and 387, 1x16 201 and 227, averages of one row, 5 and 64 columns, 24 and 16, 236 and 130.)
inline constexpr std::int64_t kLeastWideColumns = 10;
inline constexpr std::int64_t kLeastWideShare = 5;  // halves
inline constexpr std::int64_t kLeastWideRows = 3;
inline constexpr std::int64_t kLeastWideTaps = 8;
/// Longer rows have no tables of their columns. Bytes of folded rows from which outputs are taken, a part of an L1, and of the input between what is folded and what is asked for: not measured beside others.
inline constexpr std::int64_t kWidestRow = 16 * 1024;
inline constexpr std::int64_t kWideBytes = 8 * 1024;
inline constexpr std::int64_t kWideAhead = 8 * 1024;

/// Whole planes of so many inputs at least are written as zeros and their winners; smaller ones are scattered. (Two threads: 8192 planes of 14 x 14 64 us scattered and 55 so, 32768 of 7 x 7 76 and
/// 79, bf16 145 and 57, 6400 of 50 14.2 and 15.2, 64000 of 8 48 and 73; 8192 of 1024, around the caches, 930 and 711.)
inline constexpr std::int64_t kLeastWinner = 32;

/// Averages whose windows share nothing are taken back a vector of columns at a time where rows have so many columns at least; halves, of which blocks turn twice as many planes at
/// once, twice as many. (One thread, 4096 planes: 2x2/2 over 10 x 10 210 us, 187 in blocks, 14 x 14 231 and 403; f16 14 x 14 236 and 195, 20 x 20 415 and 437.)
inline constexpr std::int64_t kLeastExpanded = 12;
/// Longer rows have no tables of their columns: not measured. Bytes of gradients that are divided before the first is taken, so that none is read while it is still being written: not measured beside others.
inline constexpr std::int64_t kMostExpanded = 16 * 1024;
inline constexpr std::int64_t kDividedBytes = 4 * 1024;

/// Gradients of averages whose windows overlap are lanes of sums where rows have so many columns at least, halves so many. (Two threads, in blocks or by tables for each row, and so: 3x3/2 over 32768 planes of 4 x 4 171 us and 165, f16 114 and 154,
/// 16384 of 6 x 6 149 and 107, f16 98 and 99, 8192 of 8 x 8 106 and 60, f16 68 and 50; 3x3/2 over 1344 of 42 x 42 375 and 180, f16 385 and 148; 5x5/3 over 6144 of 17 x 17 248 and 121.) Bytes of sums that are taken before they are read, so that
/// none is while it is still being written (nasnet's 42 x 42 with 4, 8, 12, 16 and 24 KiB 250 us, 202, 186, 182, 169; 3x3/1 over 56 x 56 288, 223, 207, 200, 199; where no window overlaps much 10 % between them).
inline constexpr std::int64_t kLeastLaneColumns = 4;
inline constexpr std::int64_t kLeastLaneHalves = 6;
inline constexpr std::int64_t kLaneBytes = 16 * 1024;
/// Rows of small planes are one up to so many columns, planes up to so many results, whose vectors have a table: a plan for 28 x 28 takes 40 us instead of 27, for 56 x 56 81 instead of 31.
inline constexpr std::int64_t kLongestLaneRow = 64;
inline constexpr std::int64_t kMostLaneResults = 8 * 1024;
/// Forward, averages of halves over 3x3 windows one apart have rows of so many columns at most; strips take longer ones. (Two threads, f16, in strips and so: 10240 planes of 8 x 8 167 us and 90, 6144 of 17 x 17 291 and 205, 2304 of 35 x 35 349 and
/// 294, 1024 of 40 x 40 152 and 175, of 48 x 48 211 and 343. Others: 2x2/1 over 64 x 64 335 and 247, 5x5/1 1047 and 586, but over 12 x 12, in blocks, 155 and 165; 3/1 over 4096 rows of 257 697 and 94; 3x3x3/2 over 64 of 16 x 56 x 56 588 and
/// 307; 3x3/2 over 42 x 42, in strips, 121 and 158. f32 only where nothing else has a divisor for each slice: 3x3x3/1 over 64 of 16 x 28 x 28 1094 and 295.)
inline constexpr std::int64_t kLongestLaneHalves = 36;
/// And averages of f32 over windows one row high that overlap, or rows of so few outputs. (Two threads, 4 MB in rows of 18, 40, 93 and 200, in bands and so: 3/2 148 us and 89, 141 and 115, 87 and 92, 82 and 71; 4/1 339 and 138, 227 and
/// 180, 164 and 112, 255 and 125; 4/2 181 and 125, 166 and 123, 102 and 112, 101 and 76; 3/3 176 and 92, 81 and 78, 65 and 79, 61 and 68; rows of 9, 4/4 257 and 249.)
inline constexpr std::int64_t kFewLaneColumns = 16;
/// The former in calls that move less than this, the latter less than kStreamSmallBytes: bands ask for more at once. (12 MB, 3/2 over rows of 93 258 us and 317, 5/1 over 2000 416 and 538, 3/3 over 18 430 and 233; 28 MB 746 and 1045, 1124 and 1607, 1059 and
/// 1034.)
inline constexpr std::int64_t kLaneBytesMoved = std::int64_t{8} << 20;
/// Columns that an output of averages that do not overlap is stored to at once, in columns of many channels, at most. (Two threads, as ratios to oneDNN's in the same runs: 4x4/4 over 64 x 64 x 64
/// 1.53 and 1.32 row by row, 2x2/2 over 256 x 256 x 32 1.25 and 1.09, of bf16 over 112 x 112 x 64 1.13 and 0.74; 7x7/7 over 26 MB 0.67 and 1.32.)
inline constexpr std::int64_t kMostSpreadColumns = 4;
/// The most divisors of a slice that have a table: not measured, a few megabytes are the most that anybody will expect.
inline constexpr std::int64_t kMostDivisors = std::int64_t{1} << 20;

/// How far ahead of their use the indices and gradients of a scatter's columns are fetched.
inline constexpr std::int64_t kPrefetchBytes = 512;

/// Calls that move at least this many bytes write their results around the caches, and fetch early what they read down the rows: as many as the
/// last cache of most cores holds. (What the system says it holds is often the sum over all of a package's caches.)
inline constexpr std::int64_t kStreamBytes = std::int64_t{32} << 20;
/// And where the result is at most half of the input, in columns that are whole lines: the input has the last-level cache to itself. (Two threads, through the caches and around them: 2x2/2 maxima over 64 x 32 x 32 x 64,
/// 21 MB, 131 us and 107, averages over 8 x 112 x 112 x 64, 32 MB, 283 to 292 and 249 to 253, 3x3/2 maxima over 4 x 147 x 147 x 64 393 to 402 and 284 to 358, 54 x 54 x 256, 30 MB, 358 to 425 and 276 to 310; 16 MB as fast either way.)
inline constexpr std::int64_t kStreamSmallBytes = std::int64_t{16} << 20;
/// The same where there are indices beside the values, for the rows of columns, and for small windows over planar rows. (Two threads: bf16 3x3/2 over 112 x 112 x 64, 29 MB with indices, 1643 us and
/// 1418 around the caches; f32 planar, 32 MB without, 1021 and 880; 16 MB 426 and 462.)
/// So do gradients of maxima that fill whole lines of columns, and those of whole planes. (Two threads, channels-last: 3x3/2 over 4 x 147 x 147 x 64, 29 MB, 1009 to 1499 us and 738 to 766; 2x2x2/2 over
/// 16 x 56 x 56 x 128, 30 MB, 1189 to 1612 and 446 to 784. Not planar rows, which are put together before: 3x3/2 over 256 planes of 147 x 147 803 to 1306 and 961 to 1008, bf16 over 1536 of 71 x 71,
/// 21 MB, 1125 to 1373 and 1273 to 1362; nor columns of halves: 899 to 1566 and 1137 to 1613. Zeros alone, 33 MB: 800 us, 407 around the caches; 20 MB 227 and 243.)
inline constexpr std::int64_t kStreamIndexBytes = std::int64_t{20} << 20;
/// And other gradients in columns. (Two threads, a last-level cache of 32 MiB that others leave alone, through the caches and around them: 2x2/2 averages of 256 channels over 56 x 56, 32 MB, 141 to 149 us and 288, 40 MB 222 to 242
/// and 360, 48 MB 371 to 404 and 430 to 436, 2x2/2 maxima over 160 x 160 x 64, 43 MB, 233 to 254 and 363, 52 MB 368 to 412 and 435, 69 MB 700 and 589; 3x3/2 averages, 40 MB, 308 to 320 and 375, 48 MB 459 to 485 and 458; 2x2x2/2, 58 MB, 612 and 588.
/// Where others use the cache around it is faster from 20 to 30 MB on, 747 to 773 us and 1134 to 1357 for 2x2x2/2 maxima over 30 MB; but the other libraries write through it, and take
/// longer still.)
inline constexpr std::int64_t kStreamGradientBytes = std::int64_t{44} << 20;
/// Gradients of maxima of so many taps that share nothing, of which next to nothing is read. (Two threads, channels-last, through the caches and around them: 6x6/6 of f64 over 8 x 96 x 96 x 64, 39 MB, 750 to 820 us and 425, 15x15/15 over 256 x 256 x 64,
/// 34 MB, 495 to 770 and 366 to 381, f32 7x7/7 over 8 x 112 x 112 x 64, 26 MB, 166 to 465 and 291 to 323, 10x10/10 over 4 x 150 x 150 x 64, 23 MB, 141 to 249 and 255; 3x3/3, 29 MB, 267 to 438 and 470, 2x2/2, 34 MB, 246 to 501 and 590 to 655.)
inline constexpr std::int64_t kStreamSparseBytes = std::int64_t{25} << 20;
inline constexpr std::int64_t kSparseTaps = 16;
/// And those of averages far apart, of which next to nothing is read: stores around the caches are no faster than 88 GB/s. (7x7/7, 52 MB, 373 to 393 us and 586, 79 MB 816 and 874, 105 MB 1225 and 1257, 157 MB 2100 and 1750.)
inline constexpr std::int64_t kStreamSpreadBytes = std::int64_t{96} << 20;
/// Windows over planar rows fetch early what they read where a call moves more than this, as much as the L2 caches of a few cores hold. (3x3/2
/// over 16 MB of f16 455 us and 487 without; nothing is lost at 4 MB. Row by row, one thread: 5x5/2 averages over 16 MB 1152 and 2318, 7x7/2 over 8 MB 649 and 978.)
inline constexpr std::int64_t kFetchedBytes = std::int64_t{4} << 20;

}  // namespace cenote::simd
