// ONNX Runtime, loaded when asked for: forward passes on planar tensors, as sessions of one node on the suite's memory.
//
// The library is used through its C interface, a table of functions whose order is fixed for good (new ones are only ever appended), so
// that no headers of it are needed: npm's package has none.
#include "onnx_model.hpp"
#include "peers.hpp"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <stdexcept>

namespace cenote::bench {

namespace {

/// Positions in the function table (OrtApi).
enum Slot : std::size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kSetInterOpNumThreads = 25,
  kCreateTensorWithData = 49,
  kCreateCpuMemoryInfo = 69,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseSessionOptions = 100,
};
constexpr std::uint32_t kApiVersion = 1;  // the first: it has all of the above
constexpr int kLogErrors = 3, kDeviceAllocator = 0, kDefaultMemory = 0;

struct ApiBase {
  const void* const* (*get_api)(std::uint32_t version);
  const char* (*get_version)();
};

class Library {
 public:
  Library() {
    std::vector<std::string> places{"libonnxruntime.so", "libonnxruntime.so.1"};
#if defined(CENOTE_BENCH_ONNXRUNTIME)
    places.insert(places.begin(), CENOTE_BENCH_ONNXRUNTIME);
#endif
    if (const char* chosen = std::getenv("CENOTE_ONNXRUNTIME")) places = {chosen};
    std::string tried;
    for (const std::string& place : places) {
      handle_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) break;
      tried += (tried.empty() ? "" : ", ") + place;
    }
    if (handle_ == nullptr) {
      throw std::runtime_error("not found as " + tried +
                               " (set CENOTE_ONNXRUNTIME to libonnxruntime.so.1 of npm's onnxruntime-node)");
    }
    const auto base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle_, "OrtGetApiBase"));
    if (base == nullptr || (table_ = base()->get_api(kApiVersion)) == nullptr) {
      throw std::runtime_error("the library found is not ONNX Runtime");
    }
    version_ = base()->get_version();
    check(kCreateEnv, kLogErrors, "cenote", &env_);
    check(kCreateCpuMemoryInfo, kDeviceAllocator, kDefaultMemory, &memory_);
  }
  ~Library() {
    release(kReleaseMemoryInfo, memory_);
    release(kReleaseEnv, env_);  // the library itself stays loaded: its threads may outlive us
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class... Arguments>
  void* call(Slot slot, Arguments... arguments) const {
    return reinterpret_cast<void* (*)(Arguments...)>(const_cast<void*>(table_[slot]))(arguments...);
  }
  /// Calls a function that returns a status, and throws what it says.
  template <class... Arguments>
  void check(Slot slot, Arguments... arguments) const {
    void* status = call(slot, arguments...);
    if (status == nullptr) return;
    const std::string message = static_cast<const char*>(call(kGetErrorMessage, status));
    release(kReleaseStatus, status);
    throw std::runtime_error(message);
  }
  void release(Slot slot, void* object) const {
    reinterpret_cast<void (*)(void*)>(const_cast<void*>(table_[slot]))(object);
  }

  const std::string& version() const { return version_; }
  void* env() const { return env_; }
  void* memory() const { return memory_; }

 private:
  void* handle_ = nullptr;
  const void* const* table_ = nullptr;
  void* env_ = nullptr;
  void* memory_ = nullptr;
  std::string version_;
};

std::size_t size_of(OnnxType type) {
  switch (type) {
    case OnnxType::u8:
    case OnnxType::i8: return 1;
    case OnnxType::f16:
    case OnnxType::bf16: return 2;
    case OnnxType::f32: return 4;
    case OnnxType::i64:
    case OnnxType::f64: return 8;
  }
  return 0;
}

class OnnxCall final : public Call {
 public:
  OnnxCall(const Library& library, const OnnxNode& node, std::vector<void*> inputs, std::vector<void*> outputs,
           int threads)
      : library_(library), node_(node) {
    void* options = nullptr;
    library_.check(kCreateSessionOptions, &options);
    try {
      library_.check(kSetIntraOpNumThreads, options, threads);
      library_.check(kSetInterOpNumThreads, options, 1);
      const std::string model = onnx_model(node_);
      library_.check(kCreateSessionFromArray, library_.env(), static_cast<const void*>(model.data()), model.size(),
                     options, &session_);
    } catch (...) {
      library_.release(kReleaseSessionOptions, options);
      throw;
    }
    library_.release(kReleaseSessionOptions, options);
    bind(node_.inputs, inputs, input_values_, input_names_);
    bind(node_.outputs, outputs, output_values_, output_names_);
  }
  ~OnnxCall() override {
    for (void* value : input_values_) library_.release(kReleaseValue, value);
    for (void* value : output_values_) library_.release(kReleaseValue, value);
    library_.release(kReleaseSession, session_);
  }

  void run() override {
    library_.check(kRun, session_, static_cast<void*>(nullptr), input_names_.data(), input_values_.data(),
                   input_values_.size(), output_names_.data(), output_names_.size(), output_values_.data());
  }

  /// ONNX counts indices through the whole tensor, the suite within each plane.
  void present_result() override {
    if (indices_ == nullptr) return;
    for (std::int64_t plane = 0; plane < planes_; ++plane) {
      for (std::int64_t i = 0; i < outputs_per_plane_; ++i)
        indices_[plane * outputs_per_plane_ + i] -= plane * inputs_per_plane_;
    }
  }
  void indices_count_from_tensor(std::int64_t* indices, const Geometry& g) {
    indices_ = indices;
    planes_ = g.planes();
    outputs_per_plane_ = Geometry::volume(g.output);
    inputs_per_plane_ = Geometry::volume(g.input);
  }
  std::vector<std::int64_t> own_indices;  // max_unpool's, counted through the whole tensor

 private:
  void bind(const std::vector<OnnxTensor>& tensors, const std::vector<void*>& memory, std::vector<void*>& values,
            std::vector<const char*>& names) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::size_t bytes = size_of(tensors[i].type);
      for (const std::int64_t size : tensors[i].shape) bytes *= static_cast<std::size_t>(size);
      void* value = nullptr;
      library_.check(kCreateTensorWithData, library_.memory(), memory[i], bytes, tensors[i].shape.data(),
                     tensors[i].shape.size(), static_cast<int>(tensors[i].type), &value);
      values.push_back(value);
      names.push_back(tensors[i].name.c_str());
    }
  }

  const Library& library_;
  OnnxNode node_;
  void* session_ = nullptr;
  std::vector<void*> input_values_, output_values_;
  std::vector<const char*> input_names_, output_names_;
  std::int64_t* indices_ = nullptr;
  std::int64_t planes_ = 0, outputs_per_plane_ = 0, inputs_per_plane_ = 0;
};

std::optional<OnnxType> onnx_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return OnnxType::f32;
    case DType::f64: return OnnxType::f64;
    case DType::f16: return OnnxType::f16;
    case DType::bf16: return OnnxType::bf16;
    case DType::i8: return OnnxType::i8;
    case DType::u8: return OnnxType::u8;
    default: return std::nullopt;
  }
}

/// The node's op and attributes; an empty op where ONNX has none for this pool.
OnnxNode describe(const Workload& w) {
  const Geometry& g = w.geometry();
  const PoolSpec& spec = w.spec();
  OnnxNode node;
  const bool global = g.output == Geometry::PerAxis{1, 1, 1};
  switch (spec.op) {
    case Op::max_pool: node.op = "MaxPool"; break;
    case Op::avg_pool: node.op = spec.divisor_override ? "" : "AveragePool"; break;
    case Op::lp_pool: node.op = "LpPool"; break;
    case Op::max_unpool: node.op = "MaxUnpool"; break;
    // What exporters write: an adaptive pool that divides evenly is an ordinary one. A global one has ops of its own.
    case Op::adaptive_max_pool:
      node.op = !g.uniform ? "" : global && w.indices == nullptr ? "GlobalMaxPool" : "MaxPool";
      break;
    case Op::adaptive_avg_pool: node.op = !g.uniform ? "" : global ? "GlobalAveragePool" : "AveragePool"; break;
    default: break;
  }
  if (spec.op == Op::lp_pool) {
    // ONNX takes absolute values, which even whole exponents do not notice, and whole exponents only.
    if (std::fmod(spec.norm_type, 2) != 0) node.op.clear();
    node.integers.emplace_back("p", static_cast<std::int64_t>(spec.norm_type));
  }
  if (node.op.starts_with("Global")) return node;
  std::vector<std::int64_t> kernel_size, strides, pads, dilations;
  bool dilated = false;
  for (auto a = static_cast<std::size_t>(3 - spec.dims); a < 3; ++a) {
    kernel_size.push_back(g.kernel_size[a]);
    strides.push_back(g.stride[a]);
    pads.push_back(g.padding[a]);
    dilations.push_back(g.dilation[a]);
    dilated = dilated || g.dilation[a] != 1;
  }
  const std::vector<std::int64_t> ends = pads;
  pads.insert(pads.end(), ends.begin(), ends.end());
  node.lists = {{"kernel_shape", kernel_size}, {"strides", strides}, {"pads", pads}};
  if (dilated && node.op != "MaxPool") node.op.clear();
  if (dilated) node.lists.emplace_back("dilations", dilations);
  if (spec.ceil_mode) node.integers.emplace_back("ceil_mode", 1);
  if (node.op == "AveragePool") node.integers.emplace_back("count_include_pad", spec.count_include_pad ? 1 : 0);
  return node;
}

class OnnxRuntime final : public Competitor {
 public:
  std::string name() const override { return "onnxruntime"; }
  // Its workers spin long after a call and take a core from whoever comes next: after 3 ms cenote still ran at two thirds of its speed.
  std::chrono::milliseconds settles_in() const override { return std::chrono::milliseconds(80); }
  std::string version() const override { return library_.version(); }

  std::unique_ptr<Call> prepare(const Workload& w) override {
    const Geometry& g = w.geometry();
    const auto type = onnx_type(w.row.dtype);
    if (w.row.pass == RowPass::backward || w.channels_last() || !type) return nullptr;
    OnnxNode node = describe(w);
    if (node.op.empty()) return nullptr;
    std::vector<std::int64_t> output_shape = w.row.pool->shape;
    for (int i = 0; i < w.spec().dims; ++i) {
      output_shape[static_cast<std::size_t>(i + 2)] = g.output[static_cast<std::size_t>(3 - w.spec().dims + i)];
    }
    node.inputs.push_back({"input", *type, w.row.pool->shape});
    node.outputs.push_back({"output", *type, output_shape});
    std::vector<void*> inputs{const_cast<void*>(w.input)}, outputs{w.output};
    std::vector<std::int64_t> indices;
    if (w.spec().op == Op::max_unpool) {
      const std::int64_t small = Geometry::volume(g.input), large = Geometry::volume(g.output);
      indices.assign(w.saved_indices, w.saved_indices + g.input_count());
      for (std::int64_t i = 0; i < g.input_count(); ++i) indices[static_cast<std::size_t>(i)] += i / small * large;
      node.inputs.push_back({"indices", OnnxType::i64, w.row.pool->shape});
      inputs.push_back(indices.data());
    }
    if (w.indices != nullptr) {
      node.outputs.push_back({"indices", OnnxType::i64, output_shape});
      outputs.push_back(w.indices);
    }
    auto call = std::make_unique<OnnxCall>(library_, node, std::move(inputs), std::move(outputs), w.threads);
    call->own_indices = std::move(indices);  // moving keeps the address the session was given
    if (w.indices != nullptr) call->indices_count_from_tensor(w.indices, g);
    return call;
  }

 private:
  Library library_;
};

}  // namespace

std::unique_ptr<Competitor> make_onnxruntime() { return std::make_unique<OnnxRuntime>(); }

}  // namespace cenote::bench
