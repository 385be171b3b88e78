// oneDNN on the suite's memory, in the suite's layouts: no reorders to its blocked ones are timed or allowed.
#include "peers.hpp"

#include <oneapi/dnnl/dnnl.hpp>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace cenote::bench {

namespace {

using Dims = dnnl::memory::dims;

std::optional<dnnl::memory::data_type> data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return dnnl::memory::data_type::f32;
    case DType::f16: return dnnl::memory::data_type::f16;
    case DType::bf16: return dnnl::memory::data_type::bf16;
    case DType::i8: return dnnl::memory::data_type::s8;
    case DType::u8: return dnnl::memory::data_type::u8;
    case DType::i32: return dnnl::memory::data_type::s32;
    default: return std::nullopt;
  }
}

class OneDnnCall final : public Call {
 public:
  OneDnnCall(const dnnl::primitive& primitive, const dnnl::engine& engine,
             std::unordered_map<int, dnnl::memory> arguments)
      : primitive_(primitive), stream_(engine), arguments_(std::move(arguments)) {}

  void run() override {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

struct Windows {
  Dims kernel_size, stride, dilation, padding_begin, padding_end;
  bool overhang = false;  // ceil_mode reaches beyond the right padding

  explicit Windows(const Workload& w) {
    const Geometry& g = w.geometry();
    for (auto a = static_cast<std::size_t>(3 - w.spec().dims); a < 3; ++a) {
      const std::int64_t reach = (g.output[a] - 1) * g.stride[a] + (g.kernel_size[a] - 1) * g.dilation[a] + 1;
      const std::int64_t needed = reach - g.input[a] - g.padding[a];
      overhang = overhang || needed > g.padding[a];
      kernel_size.push_back(g.kernel_size[a]);
      stride.push_back(g.stride[a]);
      dilation.push_back(g.dilation[a] - 1);  // oneDNN counts the gaps
      padding_begin.push_back(g.padding[a]);
      padding_end.push_back(std::max(g.padding[a], needed));
    }
  }
};

dnnl::memory::desc tensor(const Workload& w, const Geometry::PerAxis& size, dnnl::memory::data_type type) {
  using Tag = dnnl::memory::format_tag;
  constexpr Tag kPlanar[] = {Tag::ncw, Tag::nchw, Tag::ncdhw}, kChannelsLast[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc};
  const int dims = w.spec().dims;
  Dims sizes{w.geometry().batch, w.geometry().channels};
  for (auto a = static_cast<std::size_t>(3 - dims); a < 3; ++a) sizes.push_back(size[a]);
  return {sizes, type, (w.channels_last() ? kChannelsLast : kPlanar)[dims - 1]};
}

std::optional<dnnl::algorithm> algorithm(const Workload& w, const Windows& windows) {
  const PoolSpec& spec = w.spec();
  switch (spec.op) {
    case Op::max_pool:
    case Op::adaptive_max_pool: return dnnl::algorithm::pooling_max;
    case Op::adaptive_avg_pool: return dnnl::algorithm::pooling_avg_exclude_padding;
    case Op::avg_pool:
      if (spec.divisor_override || (spec.count_include_pad && windows.overhang)) return std::nullopt;
      return spec.count_include_pad ? dnnl::algorithm::pooling_avg_include_padding
                                    : dnnl::algorithm::pooling_avg_exclude_padding;
    default: return std::nullopt;
  }
}

class OneDnn final : public Competitor {
 public:
  std::string name() const override { return "onednn"; }
  std::string version() const override {
    const auto* v = dnnl::version();
    return std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch);
  }

  std::unique_ptr<Call> prepare(const Workload& w) override {
#if defined(_OPENMP)
    omp_set_num_threads(w.threads);
#endif
    const Geometry& g = w.geometry();
    const auto type = data_type(w.row.dtype);
    const Windows windows(w);
    const auto kind = algorithm(w, windows);
    // Its workspace says where each maximum was, but only to itself: no indices that could be handed out.
    if (!type || !kind || !g.uniform || w.row.pass == RowPass::forward_indices) return nullptr;
    const bool backward = w.row.pass == RowPass::backward;
    const dnnl::memory::desc input = tensor(w, g.input, *type), output = tensor(w, g.output, *type);
    const dnnl::pooling_v2_forward::primitive_desc forward(
        {backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, *kind, input, output,
         windows.stride, windows.kernel_size, windows.dilation, windows.padding_begin, windows.padding_end},
        engine_);
    std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, {input, engine_, const_cast<void*>(w.input)}},
                                                    {DNNL_ARG_DST, {output, engine_, w.output}}};
    if (!backward)
      return std::make_unique<OneDnnCall>(dnnl::pooling_v2_forward(forward), engine_, std::move(arguments));

    const bool has_workspace = *kind == dnnl::algorithm::pooling_max;
    if (has_workspace) arguments.emplace(DNNL_ARG_WORKSPACE, dnnl::memory(forward.workspace_desc(), engine_));
    OneDnnCall(dnnl::pooling_v2_forward(forward), engine_, arguments).run();
    const dnnl::pooling_v2_backward::primitive_desc gradient(
        {*kind, input, output, windows.stride, windows.kernel_size, windows.dilation, windows.padding_begin,
         windows.padding_end},
        engine_, forward);
    std::unordered_map<int, dnnl::memory> back{{DNNL_ARG_DIFF_DST, {output, engine_, const_cast<void*>(w.grad_output)}},
                                               {DNNL_ARG_DIFF_SRC, {input, engine_, w.grad_input}}};
    if (has_workspace) back.emplace(DNNL_ARG_WORKSPACE, arguments.at(DNNL_ARG_WORKSPACE));
    return std::make_unique<OneDnnCall>(dnnl::pooling_v2_backward(gradient), engine_, std::move(back));
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
};

}  // namespace

std::unique_ptr<Competitor> make_onednn() { return std::make_unique<OneDnn>(); }

}  // namespace cenote::bench
