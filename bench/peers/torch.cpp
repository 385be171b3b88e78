// libtorch on the suite's memory: results preallocated where an _out form exists, no gradient tape, backward kernels called directly.
#include "peers.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/nn/functional/pooling.h>
#include <torch/version.h>

#include <cstring>
#include <functional>
#include <optional>

namespace cenote::bench {

namespace {

std::optional<at::ScalarType> scalar_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return at::kFloat;
    case DType::f64: return at::kDouble;
    case DType::f16: return at::kHalf;
    case DType::bf16: return at::kBFloat16;
    case DType::i8: return at::kChar;
    case DType::u8: return at::kByte;
    case DType::i16: return at::kShort;
    case DType::i32: return at::kInt;
    case DType::i64: return at::kLong;
    default: return std::nullopt;
  }
}

class TorchCall final : public Call {
 public:
  using Body = std::function<void()>;

  TorchCall(Body body, bool inference, Body present = {})
      : body_(std::move(body)), present_(std::move(present)), inference_(inference) {}

  void run() override {
    const c10::InferenceMode mode(inference_);
    body_();
  }
  void present_result() override {
    if (present_) present_();
  }

 private:
  Body body_, present_;
  bool inference_;
};

/// The tensors of a workload as torch sees them. 1d pools are 2d ones of height 1, as they are inside torch.
struct Tensors {
  int dims;
  at::Tensor input, output, indices, grad_output, grad_input;
  std::vector<std::int64_t> kernel_size, stride, padding, dilation, output_size;
  std::vector<std::int64_t> spatial;  // dimensions of the tensor

  explicit Tensors(const Workload& w) : dims(std::max(2, w.spec().dims)) {
    const Geometry& g = w.geometry();
    const auto type = scalar_type(w.row.dtype);
    const bool unpool = w.spec().op == Op::max_unpool;
    input = view(w, g.input, w.input, *type);
    output = result_view(w, g.output, w.output, *type);
    // Forward without indices still computes them, torch having no other kernel: they go to memory of its own.
    if (w.saved_indices != nullptr) {
      indices = view(w, unpool ? g.input : g.output, w.saved_indices, at::kLong);
      if (!keeps_layout(w)) indices = indices.contiguous();  // as its own forward would have saved them
    } else if (w.indices != nullptr) {
      indices = result_view(w, g.output, w.indices, at::kLong);
    } else {
      indices = at::empty_strided(output.sizes(), output.strides(), at::kLong);
    }
    if (w.grad_input != nullptr) {
      grad_output = view(w, g.output, w.grad_output, *type);
      grad_input = result_view(w, g.input, w.grad_input, *type);
    }
    for (auto a = static_cast<std::size_t>(3 - dims); a < 3; ++a) {
      kernel_size.push_back(g.kernel_size[a]);
      stride.push_back(g.stride[a]);
      padding.push_back(g.padding[a]);
      dilation.push_back(g.dilation[a]);
      output_size.push_back(g.output[a]);
      spatial.push_back(static_cast<std::int64_t>(a) - 3);
    }
  }

  at::Tensor view(const Workload& w, const Geometry::PerAxis& size, const void* memory, at::ScalarType type) const {
    std::vector<std::int64_t> sizes{w.geometry().batch, w.geometry().channels};
    for (auto a = static_cast<std::size_t>(3 - dims); a < 3; ++a) sizes.push_back(size[a]);
    const auto format = !w.channels_last() ? at::MemoryFormat::Contiguous
                        : dims == 2        ? at::MemoryFormat::ChannelsLast
                                           : at::MemoryFormat::ChannelsLast3d;
    const auto strides =
        at::empty(sizes, at::TensorOptions(at::kMeta).dtype(type).memory_format(format)).strides().vec();
    return at::from_blob(const_cast<void*>(memory), sizes, strides, at::TensorOptions(type));
  }

  /// The suite's memory; or, where this torch answers in another layout than it was asked in, memory of its own: what it then
  /// writes is copied back only to be checked.
  at::Tensor result_view(const Workload& w, const Geometry::PerAxis& size, const void* memory,
                         at::ScalarType type) const {
    const at::Tensor wanted = view(w, size, memory, type);
    return keeps_layout(w) ? wanted : at::empty(wanted.sizes(), at::TensorOptions(type));
  }
  void present(const Workload& w) const {
    const c10::InferenceMode mode;
    const auto copy_back = [&](const at::Tensor& from, const Geometry::PerAxis& size, const void* memory) {
      if (memory == nullptr || from.data_ptr() == memory) return;
      view(w, size, memory, from.scalar_type()).copy_(from);
    };
    if (w.row.pass == RowPass::backward) {
      copy_back(grad_input, w.geometry().input, w.grad_input);
    } else {
      copy_back(output, w.geometry().output, w.output);
      copy_back(indices, w.geometry().output, w.indices);
    }
  }

  /// Old releases pool channels-last volumes into contiguous ones, and write them wrongly where told otherwise.
  bool keeps_layout(const Workload& w) const {
    if (dims == 2 || !w.channels_last()) return true;
    const auto volume = at::zeros({1, 2, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast3d);
    return at::max_pool3d(volume, 2, 1).is_contiguous(at::MemoryFormat::ChannelsLast3d);
  }
};

TorchCall::Body max_pool(Tensors t, const Workload& w) {
  const bool ceil = w.spec().ceil_mode;
  if (w.row.pass == RowPass::backward) {
    if (t.dims == 2) {
      return [t, ceil]() mutable {
        at::max_pool2d_with_indices_backward_out(t.grad_input, t.grad_output, t.input, t.kernel_size, t.stride,
                                                 t.padding, t.dilation, ceil, t.indices);
      };
    }
    return [t, ceil]() mutable {
      at::max_pool3d_with_indices_backward_out(t.grad_input, t.grad_output, t.input, t.kernel_size, t.stride, t.padding,
                                               t.dilation, ceil, t.indices);
    };
  }
  if (t.dims == 2) {
    return [t, ceil]() mutable {
      at::max_pool2d_with_indices_out(t.output, t.indices, t.input, t.kernel_size, t.stride, t.padding, t.dilation,
                                      ceil);
    };
  }
  return [t, ceil]() mutable {
    at::max_pool3d_with_indices_out(t.output, t.indices, t.input, t.kernel_size, t.stride, t.padding, t.dilation, ceil);
  };
}

TorchCall::Body avg_pool(Tensors t, const Workload& w) {
  const bool ceil = w.spec().ceil_mode, count_pad = w.spec().count_include_pad;
  const c10::optional<std::int64_t> divisor =
      w.spec().divisor_override ? c10::optional<std::int64_t>(*w.spec().divisor_override) : c10::nullopt;
  if (w.row.pass == RowPass::backward) {
    if (t.dims == 2) {
      return [=]() mutable {
        at::avg_pool2d_backward_out(t.grad_input, t.grad_output, t.input, t.kernel_size, t.stride, t.padding, ceil,
                                    count_pad, divisor);
      };
    }
    return [=]() mutable {
      at::avg_pool3d_backward_out(t.grad_input, t.grad_output, t.input, t.kernel_size, t.stride, t.padding, ceil,
                                  count_pad, divisor);
    };
  }
  if (t.dims == 2) {
    return [=]() mutable {
      at::avg_pool2d_out(t.output, t.input, t.kernel_size, t.stride, t.padding, ceil, count_pad, divisor);
    };
  }
  return [=]() mutable {
    at::avg_pool3d_out(t.output, t.input, t.kernel_size, t.stride, t.padding, ceil, count_pad, divisor);
  };
}

TorchCall::Body adaptive_max_pool(Tensors t, const Workload& w) {
  if (w.row.pass == RowPass::backward) {
    if (t.dims == 2) {
      return [t]() mutable { at::adaptive_max_pool2d_backward_out(t.grad_input, t.grad_output, t.input, t.indices); };
    }
    return [t]() mutable { at::adaptive_max_pool3d_backward_out(t.grad_input, t.grad_output, t.input, t.indices); };
  }
  if (t.dims == 2) return [t]() mutable { at::adaptive_max_pool2d_out(t.output, t.indices, t.input, t.output_size); };
  return [t]() mutable { at::adaptive_max_pool3d_out(t.output, t.indices, t.input, t.output_size); };
}

/// The global average is a mean in torch's front end; the same is called here.
TorchCall::Body mean(Tensors t, const Workload& w) {
  if (w.row.pass != RowPass::backward) return [t]() mutable { at::mean_out(t.output, t.input, t.spatial, true); };
  const at::Tensor spread = t.grad_output.expand(t.input.sizes());
  const auto count = at::scalar_tensor(static_cast<double>(Geometry::volume(w.geometry().input)), t.input.options());
  return [t, spread, count]() mutable { at::div_out(t.grad_input, spread, count); };
}

TorchCall::Body unpool(Tensors t, const Workload& w) {
  if (w.row.pass == RowPass::backward) {
    const at::Tensor from = t.grad_output.flatten(2), at_ = t.indices.flatten(2);
    at::Tensor to = t.grad_input.flatten(2);
    return [=]() mutable { at::gather_out(to, from, 2, at_); };
  }
  if (t.dims == 2) return [t]() mutable { at::max_unpool2d_out(t.output, t.input, t.indices, t.output_size); };
  return [t]() mutable { at::max_unpool3d_out(t.output, t.input, t.indices, t.output_size, t.stride, t.padding); };
}

/// A call that writes into the tensors it was given.
std::unique_ptr<Call> in_place(TorchCall::Body body, const Tensors& t, const Workload& w) {
  return std::make_unique<TorchCall>(std::move(body), true, [t, w] { t.present(w); });
}

/// A call whose result torch allocates itself: kept, and copied out only to be checked.
std::unique_ptr<Call> allocating(std::function<at::Tensor()> compute, const at::Tensor& target, bool inference) {
  auto result = std::make_shared<at::Tensor>();
  return std::make_unique<TorchCall>([compute = std::move(compute), result] { *result = compute(); }, inference,
                                     [result, target]() mutable {
                                       if (result->is_quantized()) *result = result->int_repr();
                                       const c10::InferenceMode mode;
                                       target.copy_(result->view_as(target));
                                     });
}

std::unique_ptr<Call> adaptive_avg_pool(Tensors t, const Workload& w) {
  if (Geometry::volume(w.geometry().output) == 1) return in_place(mean(t, w), t, w);
  TorchCall::Body body;
  if (w.row.pass == RowPass::backward) {
    if (t.dims == 2) {
      return allocating([t] { return at::_adaptive_avg_pool2d_backward(t.grad_output, t.input); }, t.grad_input, true);
    }
    body = [t]() mutable { at::adaptive_avg_pool3d_backward_out(t.grad_input, t.grad_output, t.input); };
  } else if (t.dims == 2) {
    body = [t]() mutable { at::adaptive_avg_pool2d_out(t.output, t.input, t.output_size); };
  } else {
    body = [t]() mutable { at::adaptive_avg_pool3d_out(t.output, t.input, t.output_size); };
  }
  return in_place(std::move(body), t, w);
}

std::unique_ptr<Call> lp_pool(const Tensors& t, const Workload& w) {
  namespace F = torch::nn::functional;
  if (w.spec().dims == 3) return nullptr;
  const auto options = F::LPPool2dFuncOptions(w.spec().norm_type, {t.kernel_size[0], t.kernel_size[1]})
                           .stride(torch::ExpandingArray<2>({t.stride[0], t.stride[1]}))
                           .ceil_mode(w.spec().ceil_mode);
  if (w.row.pass != RowPass::backward) {
    return allocating([t, options] { return F::lp_pool2d(t.input, options); }, t.output, true);
  }
  // The backward of a composite has no kernel to call: the graph is built once and walked each time.
  const at::Tensor input = t.input.detach().requires_grad_(true);
  const at::Tensor output = F::lp_pool2d(input, options);
  return allocating([=] { return torch::autograd::grad({output}, {input}, {t.grad_output}, /*retain_graph=*/true)[0]; },
                    t.grad_input, false);
}

/// torch pools bytes as quantized tensors.
std::unique_ptr<Call> quantized_max_pool(const Tensors& t, const Workload& w) {
  if (w.row.pass != RowPass::forward || t.dims != 2 || w.row.dtype != DType::u8) return nullptr;
  at::Tensor input =
      at::_empty_affine_quantized(t.input.sizes(), at::TensorOptions(at::kQUInt8), 1.0, 0,
                                  w.channels_last() ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  std::memcpy(input.data_ptr(), w.input, static_cast<std::size_t>(w.geometry().input_count()));
  const bool ceil = w.spec().ceil_mode;
  return allocating(
      [=] { return at::quantized_max_pool2d(input, t.kernel_size, t.stride, t.padding, t.dilation, ceil); }, t.output,
      true);
}

std::unique_ptr<Call> prepare_call(const Workload& w) {
  const Op op = w.spec().op;
  if (!scalar_type(w.row.dtype) || op == Op::min_pool || op == Op::sum_pool) return nullptr;
  const Tensors t(w);
  const bool dilated = w.geometry().dilation != Geometry::PerAxis{1, 1, 1};
  switch (op) {
    case Op::max_pool:
      if (!is_floating(w.row.dtype)) return quantized_max_pool(t, w);
      if (w.spec().dims == 1 && w.row.pass == RowPass::forward) {  // the one pool with a kernel that leaves indices out
        const at::Tensor line = t.input.squeeze(2);
        const bool ceil = w.spec().ceil_mode;
        return allocating(
            [=] { return at::max_pool1d(line, t.kernel_size[1], t.stride[1], t.padding[1], t.dilation[1], ceil); },
            t.output, true);
      }
      return in_place(max_pool(t, w), t, w);
    case Op::avg_pool: return dilated ? nullptr : in_place(avg_pool(t, w), t, w);
    case Op::adaptive_max_pool: return in_place(adaptive_max_pool(t, w), t, w);
    case Op::adaptive_avg_pool: return adaptive_avg_pool(t, w);
    case Op::lp_pool: return dilated ? nullptr : lp_pool(t, w);
    case Op::max_unpool: return in_place(unpool(t, w), t, w);
    default: return nullptr;
  }
}

class Torch final : public Competitor {
 public:
  std::string name() const override { return "torch"; }
  std::string version() const override { return TORCH_VERSION; }
  std::unique_ptr<Call> prepare(const Workload& w) override {
    at::set_num_threads(w.threads);
    return prepare_call(w);
  }
};

}  // namespace

std::unique_ptr<Competitor> make_torch() { return std::make_unique<Torch>(); }

}  // namespace cenote::bench
