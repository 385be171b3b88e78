// The rows of a comparison: cases read from a suite file, with their windows worked out for peers that know no defaults.
#pragma once

#include <cenote/options.hpp>
#include <cenote/view.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cenote::bench {

/// forward: no indices. forward_indices: flat64. backward: given the indices that each library saves for it, where the op has any.
enum class RowPass : std::uint8_t { forward, forward_indices, backward };
const char* name_of(RowPass pass) noexcept;

using cenote::name_of;
const char* name_of(MemoryFormat layout) noexcept;  ///< "planar", "channels_last"

/// One pool with every number spelled out. Axes are depth, height, width; missing leading ones have size 1.
struct Geometry {
  using PerAxis = std::array<std::int64_t, 3>;
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  PerAxis input{1, 1, 1};
  PerAxis output{1, 1, 1};
  PerAxis kernel_size{1, 1, 1};  ///< adaptive: input / output where `uniform`, else meaningless
  PerAxis stride{1, 1, 1};
  PerAxis padding{0, 0, 0};
  PerAxis dilation{1, 1, 1};
  bool uniform =
      true;  ///< every window has the same size before clipping: false for adaptive pools that do not divide evenly

  std::int64_t planes() const { return batch * channels; }
  static std::int64_t volume(const PerAxis& size) { return size[0] * size[1] * size[2]; }
  std::int64_t input_count() const { return planes() * volume(input); }
  std::int64_t output_count() const { return planes() * volume(output); }
};

struct Case {
  std::string name;
  std::string op;  ///< "max_pool2d"
  PoolSpec spec;
  std::vector<std::int64_t> shape;  ///< N, C, spatial
  Geometry geometry;
  std::vector<DType> dtypes;
  std::vector<MemoryFormat> layouts;
  std::vector<RowPass> passes;
};

/// Works out `geometry` from `spec` and `shape`. Throws std::runtime_error for what a benchmark has no use for
/// (unbatched tensors, fractional pools, padding of other kinds than PyTorch's).
Geometry resolve(const PoolSpec& spec, const std::vector<std::int64_t>& shape);

/// Throws std::runtime_error naming the case and the key at fault.
std::vector<Case> parse_suite(std::string_view json);
std::vector<Case> load_suite(const std::string& path);
/// bench/suite.json as it was when this was built.
std::string_view default_suite() noexcept;

struct Row {
  const Case* pool = nullptr;
  DType dtype = DType::f32;
  MemoryFormat layout = MemoryFormat::contiguous;
  RowPass pass = RowPass::forward;
  IndexKind saved_kind =
      IndexKind::window;  // what cenote is given in the max family's backward: its tape keeps the taps of windows
};
std::string label(const Row& row);  ///< "resnet50-stem f32 planar forward"; what --filter looks at

/// Every row of the suite whose label matches, grouped so that rows of one case and dtype follow each other.
std::vector<Row> rows_of(const std::vector<Case>& cases, const std::string& filter,
                         IndexKind saved_kind = IndexKind::window);

bool uses_saved_indices(const Row& row);
/// The type of the indices that cenote is given.
DType saved_index_dtype(const Row& row);
/// Each input read once, each result written once.
std::int64_t bytes_of(const Row& row);

}  // namespace cenote::bench
