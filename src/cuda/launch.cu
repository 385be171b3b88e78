#include "cuda/launch.hpp"

#include "geometry/checked.hpp"

#include <cmath>
#include <cstdlib>

namespace cenote::gpu {
namespace {

constexpr std::int64_t kLimit = INT32_MAX - 65536;  // room for a window's reach beyond either end

/// |stride| * (size - 1 + reach) summed over the axes.
bool spans_fit(const Layout& layout, const Problem& p, bool large) {
  const std::int64_t strides[3] = {layout.d, layout.h, layout.w};
  std::int64_t span = 0;
  if (std::llabs(layout.c) > kLimit) return false;
  for (int a = 0; a < 3; ++a) {
    const Axis& axis = p.axis[a];
    const std::int64_t size = large ? axis.input + axis.pad_begin + axis.pad_end : axis.output;
    std::int64_t extent = 0;
    if (size > kLimit || !checked_mul(std::llabs(strides[a]), size + 4, extent) || !checked_add(span, extent, span))
      return false;
  }
  return span < kLimit;
}

template <class Int>
Params<Int> make_params(const Problem& p, bool large, bool channels_fastest, int lanes, const Function& function) {
  Params<Int> result{};
  std::int64_t size[3];
  for (int a = 0; a < 3; ++a) {
    result.axis[a] = DeviceAxis<Int>(p.axis[a]);
    size[a] = large ? p.axis[a].input : p.axis[a].output;
  }
  result.grid.channels_fastest = channels_fastest;
  result.grid.lanes = lanes;
  result.grid.flat = size[0] == 1;
  result.grid.single = p.batch == 1;
  result.grid.channel_groups = Divisor<Int>(larger(p.channels / lanes, 1));
  // An empty tensor is never launched, but its plan is made.
  result.grid.depth = Divisor<Int>(larger(size[0], 1));
  result.grid.height = Divisor<Int>(larger(ceil_div(size[1], function.rows), 1));
  result.grid.width = Divisor<Int>(larger(ceil_div(size[2], function.columns), 1));
  result.input = Steps<Int>(p.input);
  result.output = Steps<Int>(p.output);
  result.indices = Steps<Int>(p.indices);
  result.grad_output = Steps<Int>(p.grad_output);
  result.grad_input = Steps<Int>(p.grad_input);
  result.samples_n = p.random_samples.n;
  result.samples_c = p.random_samples.c;
  result.samples_axis = p.random_samples.w;
  result.norm_type = p.norm_type;
  result.divisor_override = p.divisor_override;
  result.index_dtype = p.index_dtype;
  result.index_kind = p.index_kind;
  result.dims = p.dims;
  result.average = p.reduction == Reduction::average;
  result.count_include_pad = p.count_include_pad && p.axis[2].rule == WindowRule::sliding;
  result.absolute = p.absolute;
  result.leaves_first = leaves_first(p);
  // Quotients of integers truncate one by one; sums of floating-point numbers may be divided once.
  bool uniform = is_floating(p.dtype);
  for (const Axis& axis : p.axis) {
    if (!result.average || p.divisor_override != 0) break;
    if (axis.rule == WindowRule::adaptive) {
      uniform = uniform && axis.output > 0 && axis.input % axis.output == 0;
    } else {
      const Window first = window(axis, 0), last = window(axis, larger(axis.output - 1, 0));
      uniform = uniform && (p.count_include_pad ? last.padded == axis.kernel
                                                : first.count == axis.kernel && last.count == axis.kernel);
    }
  }
  result.uniform_divisor = uniform;
  std::int64_t taps = 1;
  result.exact_scale = p.reduction == Reduction::power;
  for (const Axis& axis : p.axis) {
    taps = taps > kLimit ? taps : taps * smaller(axis.kernel, kLimit);
    result.exact_scale = result.exact_scale && axis.output > 0 && window(axis, axis.output - 1).padded == axis.kernel;
  }
  result.exact_scale = result.exact_scale && (taps & (taps - 1)) == 0;
  result.plain_windows = p.index_kind != IndexKind::window;
  for (int a = 0; a < 3; ++a) {
    result.plain_windows =
        result.plain_windows && p.axis[a].rule == WindowRule::sliding && (a == 0 || p.axis[a].dilation == 1);
  }
  result.small_plane = Divisor<Int>(larger(p.axis[0].output * p.axis[1].output * p.axis[2].output, 1));
  double divisor = 1;
  if (result.average && uniform && p.axis[0].output * p.axis[1].output * p.axis[2].output > 0) {
    divisor = static_cast<double>(divisor_of(result, taps_of(result.axis[0], Int{0}), taps_of(result.axis[1], Int{0}),
                                             taps_of(result.axis[2], Int{0})));
  }
  int exponent = 0;
  result.exact_reciprocal = uniform && std::fabs(std::frexp(divisor, &exponent)) == 0.5;
  result.ordinary_divisor = uniform && std::fabs(divisor) >= 1 && std::fabs(divisor) < 1e9;
  result.divisor_f64 = divisor;
  result.reciprocal_f64 = 1 / divisor;
  result.divisor_f32 = static_cast<float>(divisor);
  result.reciprocal_f32 = static_cast<float>(1 / divisor);
  return result;
}

cudaError_t start(const Launch& launch, dim3 blocks, dim3 threads, void** arguments, bool early,
                  cudaStream_t stream) noexcept {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelExC(&config, launch.entry, arguments);
}

}  // namespace

bool fits_in_31_bits(const Problem& p) {
  std::int64_t large = 1, small = 1, taps = 1;
  for (const Axis& axis : p.axis) {
    std::int64_t reach = 0, travel = 0;
    if (axis.kernel > kLimit || axis.dilation > kLimit || axis.stride > kLimit || axis.pad_begin > kLimit ||
        axis.pad_end > kLimit) {
      return false;
    }
    if (!checked_mul(axis.kernel, axis.dilation, reach) || !checked_mul(axis.output + 1, axis.stride, travel))
      return false;
    if (reach + axis.input + axis.pad_begin + axis.pad_end + axis.stride + axis.dilation > kLimit || travel > kLimit)
      return false;
    if (axis.rule == WindowRule::adaptive) {
      std::int64_t product = 0;
      if (!checked_mul(axis.input + 1, axis.output + 1, product) || product > kLimit) return false;
    }
    if (!checked_mul(large, axis.input + axis.pad_begin + axis.pad_end + 4, large) || large > kLimit ||
        !checked_mul(small, axis.output + 4, small) || small > kLimit || !checked_mul(taps, axis.kernel, taps) ||
        taps > kLimit) {
      return false;
    }
  }
  const bool unpool = p.op == Op::max_unpool;
  const bool spans = spans_fit(p.input, p, !unpool) && spans_fit(p.output, p, unpool) &&
                     spans_fit(p.indices, p, false) && spans_fit(p.grad_output, p, unpool) &&
                     spans_fit(p.grad_input, p, !unpool);
  std::int64_t threads = 0;
  return spans && checked_mul(larger(large, small), p.channels, threads) && threads < kLimit;
}

bool leaves_first(const Problem& p) {
  constexpr std::int64_t kMostBytes = 300 << 20;
  std::int64_t bytes = p.batch * p.channels * static_cast<std::int64_t>(size_of(p.dtype)),
               outputs = p.batch * p.channels;
  for (const Axis& axis : p.axis) {
    bytes = bytes > kMostBytes ? bytes : bytes * axis.input;
    outputs = outputs > kMostBytes ? outputs : outputs * axis.output;
  }
  return p.pass == Pass::forward && bytes <= kMostBytes &&
         outputs * static_cast<std::int64_t>(size_of(p.dtype)) * 4 <= bytes;
}

bool has_no_empty_window(const Axis& axis) {
  if (axis.rule != WindowRule::sliding) return true;
  if (axis.dilation == 1) {
    return axis.pad_begin < axis.kernel && (axis.output - 1) * axis.stride - axis.pad_begin < axis.input;
  }
  // A window that begins before the input and ends inside or behind it has a tap among the first `dilation` elements.
  if (axis.dilation <= axis.input && axis.pad_begin <= (axis.kernel - 1) * axis.dilation &&
      (axis.output - 1) * axis.stride - axis.pad_begin < axis.input) {
    return true;
  }
  for (std::int64_t o = 0; o < axis.output; ++o) {
    if (window(axis, o).count == 0) return false;
    if (o >= 4096) return false;  // not worth a longer look
  }
  return true;
}

bool is_channels_fastest(const Layout& layout, const Problem& p, std::int64_t width) {
  return p.channels > 1 && layout.c == 1 && !(width > 1 && layout.w == 1);
}

bool has_channel_vectors(const Layout& layout, int lanes) {
  return layout.c == 1 && layout.n % lanes == 0 && layout.d % lanes == 0 && layout.h % lanes == 0 &&
         layout.w % lanes == 0;
}

Launch make_launch(const Problem& p, const Function& function, bool wide, bool large, bool channels_fastest,
                   int lanes) {
  Launch launch;
  launch.entry = function.entry;
  launch.wide = wide;
  launch.lanes = lanes;
  if (wide) {
    launch.broad = make_params<std::int64_t>(p, large, channels_fastest, lanes, function);
  } else {
    launch.narrow = make_params<std::int32_t>(p, large, channels_fastest, lanes, function);
  }
  std::int64_t threads = p.channels / lanes;
  for (int a = 0; a < 3; ++a) {
    const std::int64_t size = large ? p.axis[a].input : p.axis[a].output;
    threads *= a == 0 ? size : ceil_div(size, a == 1 ? function.rows : function.columns);
  }
  launch.threads_per_entry = threads;
  launch.batch_per_launch = wide ? p.batch : smaller(p.batch, larger(kLimit / larger(threads, 1), 1));
  return launch;
}

void cut_planes(Launch& launch, const Problem& p, std::int64_t range, int block, std::size_t bytes_per_element) {
  const std::int64_t plane = p.axis[0].input * p.axis[1].input * p.axis[2].input;
  const std::int64_t used = larger(smaller(range, plane), 1), ranges = larger(ceil_div(plane, used), 1);
  auto fill = [&]<class Int>(Params<Int>& params) {
    params.range = static_cast<Int>(used);
    params.ranges = static_cast<Int>(ranges);
    params.grid.width = Divisor<Int>(ranges);
    params.grid.channel_groups = Divisor<Int>(larger(p.channels, 1));
  };
  fill(launch.narrow);
  fill(launch.broad);
  launch.block = block;
  launch.blocks_not_threads = true;
  launch.shared_bytes = static_cast<std::size_t>(used) * bytes_per_element;
  launch.threads_per_entry = ranges * p.channels;
  launch.batch_per_launch = smaller(p.batch, larger(kLimit / larger(launch.threads_per_entry, 1), 1));
}

void cut_rectangles(Launch& launch, const Problem& p, std::int64_t most_elements, std::size_t bytes_per_element) {
  const std::int64_t depth = larger(p.axis[0].input, 1), height = larger(p.axis[1].input, 1),
                     width = larger(p.axis[2].input, 1);
  // As square as may be: the outputs that see a rectangle reach beyond it on every side.
  std::int64_t columns = smaller(width, 64), rows = smaller(height, most_elements / columns);
  if (rows == height) columns = smaller(width, most_elements / rows);
  cut_planes(launch, p, most_elements, 32, bytes_per_element);
  const std::int64_t parts = depth * ceil_div(height, rows) * ceil_div(width, columns);
  auto fill = [&]<class Int>(Params<Int>& params) {
    params.range = static_cast<Int>(rows * columns);
    params.ranges = static_cast<Int>(parts);
    params.rectangle_width = static_cast<Int>(columns);
    params.grid.width = Divisor<Int>(parts);
    params.grid.height = Divisor<Int>(ceil_div(width, columns));
  };
  fill(launch.narrow);
  fill(launch.broad);
  launch.shared_bytes = static_cast<std::size_t>(rows * columns) * bytes_per_element;
  launch.threads_per_entry = parts * p.channels;
  launch.batch_per_launch = smaller(p.batch, larger(kLimit / larger(launch.threads_per_entry, 1), 1));
}

cudaError_t run_launch(const Launch& launch, const Problem& p, const Pointers& pointers, bool early,
                       cudaStream_t stream) noexcept {
  if (launch.few_blocks.x > 0) {
    Few few = launch.few;
    const bool backward = p.pass == Pass::backward;
    few.read = backward ? pointers.grad_output : pointers.input;
    few.written = backward ? pointers.grad_input : pointers.output;
    few.indices = backward ? const_cast<void*>(pointers.saved_indices) : pointers.indices;
    few.fault = pointers.fault;
    void* arguments[] = {&few};
    return start(launch, launch.few_blocks, launch.few_threads, arguments, early, stream);
  }
  const auto element = static_cast<std::int64_t>(size_of(p.dtype)),
             index = static_cast<std::int64_t>(size_of(p.index_dtype));
  for (std::int64_t n = 0; n<p.batch; n += launch.tiles> 0 ? p.batch : launch.batch_per_launch) {
    const std::int64_t entries = smaller(launch.batch_per_launch, p.batch - n);
    const std::int64_t count = entries * launch.threads_per_entry;
    Pointers at = pointers;
    if (n != 0) {
      auto advance = [n](auto*& pointer, std::int64_t stride, std::int64_t size) {
        using Byte =
            std::conditional_t<std::is_const_v<std::remove_pointer_t<std::remove_reference_t<decltype(pointer)>>>,
                               const char, char>;
        if (pointer != nullptr) pointer = static_cast<Byte*>(pointer) + n * stride * size;
      };
      advance(at.input, p.input.n, element);
      advance(at.output, p.output.n, element);
      advance(at.indices, p.indices.n, index);
      advance(at.saved_indices, p.indices.n, index);
      advance(at.random_samples, p.random_samples.n, element);
      advance(at.grad_output, p.grad_output.n, element);
      advance(at.grad_input, p.grad_input.n, element);
    }
    Params<std::int32_t> narrow = launch.narrow;
    Params<std::int64_t> broad = launch.broad;
    narrow.grid.threads = static_cast<std::int32_t>(count);
    broad.grid.threads = count;
    const void* result = p.pass == Pass::backward ? at.grad_input : at.output;
    narrow.paired_columns =
        launch.paired > 1 && reinterpret_cast<std::uintptr_t>(result) % (launch.paired * element) == 0;
    void* params = launch.wide ? static_cast<void*>(&broad) : static_cast<void*>(&narrow);
    void* arguments[] = {params, &at};
    std::int64_t blocks = launch.tiles > 0            ? launch.tiles
                          : launch.blocks_not_threads ? count
                                                      : ceil_div(count * launch.threads_per_result, launch.block);
    if (launch.most_blocks > 0) blocks = smaller(blocks, launch.most_blocks);
    const cudaError_t error = start(launch, dim3(static_cast<unsigned>(blocks)),
                                    dim3(static_cast<unsigned>(launch.block)), arguments, early, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace cenote::gpu
