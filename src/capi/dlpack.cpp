#include <cenote/dlpack.hpp>

#include <new>

namespace cenote::dlpack {
namespace {

enum : std::int32_t { kCpu = 1, kCuda = 2, kPinned = 3, kManaged = 13 };
enum : std::uint8_t { kSigned = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4 };
constexpr Version kVersion{1, 0};

bool dtype_of_tag(DataTag tag, DType& dtype) noexcept {
  if (tag.lanes != 1) return false;
  for (int i = 0; i <= static_cast<int>(DType::u32); ++i) {
    dtype = static_cast<DType>(i);
    const bool is_unsigned = dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32;
    const std::uint8_t code = dtype == DType::bf16 ? kBfloat
                              : is_floating(dtype) ? kFloat
                              : is_unsigned        ? kUnsigned
                                                   : kSigned;
    if (tag.code == code && tag.bits == 8 * size_of(dtype)) return true;
  }
  return false;
}

DataTag tag_of(DType dtype) noexcept {
  const bool is_unsigned = dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32;
  const std::uint8_t code = dtype == DType::bf16 ? kBfloat
                            : is_floating(dtype) ? kFloat
                            : is_unsigned        ? kUnsigned
                                                 : kSigned;
  return {code, static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

/// The struct handed out, with what it points to.
template <class Managed>
struct Exported {
  Managed managed;
  std::int64_t shape[kMaxRank];
  std::int64_t strides[kMaxRank];
  void* owner;
  void (*release)(void*);

  static void destroy(Managed* managed) {
    auto* self = static_cast<Exported*>(managed->manager);
    if (self->release != nullptr) self->release(self->owner);
    delete self;
  }
};

template <class Managed>
Managed* make(const TensorView& view, void* owner, void (*release)(void*), Status& status) noexcept {
  auto* exported = new (std::nothrow) Exported<Managed>{};
  if (exported == nullptr) {
    status = Status::failure(ErrorCode::out_of_memory, "tensor", "dlpack: no memory for the tensor's description");
    return nullptr;
  }
  exported->owner = owner;
  exported->release = release;
  std::int64_t dense = 1;
  for (int i = view.rank() - 1; i >= 0; --i) {
    exported->shape[i] = view.shape[i];
    exported->strides[i] = view.strides.empty() ? dense : view.strides[i];
    dense *= view.shape[i] > 0 ? view.shape[i] : 1;
  }
  Managed& managed = exported->managed;
  managed.manager = exported;
  managed.deleter = &Exported<Managed>::destroy;
  managed.tensor = {view.data,
                    {view.device.type == DeviceType::cuda ? kCuda : kCpu, view.device.index},
                    view.rank(),
                    tag_of(view.dtype),
                    exported->shape,
                    exported->strides,
                    0};
  status = Status();
  return &managed;
}

}  // namespace

Status view_of(const PlainTensor& tensor, TensorView& view) noexcept {
  DType dtype;
  if (!dtype_of_tag(tensor.dtype, dtype)) {
    return Status::failure(ErrorCode::invalid_argument, "dtype",
                           "dlpack: no such dtype here: code %d, %d bits, %d lanes", tensor.dtype.code,
                           tensor.dtype.bits, tensor.dtype.lanes);
  }
  const std::int32_t type = tensor.device.type;
  if (type != kCpu && type != kPinned && type != kCuda && type != kManaged) {
    return Status::failure(ErrorCode::invalid_argument, "device", "dlpack: no such device type here: %d", type);
  }
  if (tensor.rank < 0 || tensor.rank > kMaxRank) {
    return Status::failure(ErrorCode::invalid_argument, "shape", "dlpack: a tensor has at most %d dimensions, got %d",
                           kMaxRank, tensor.rank);
  }
  view = TensorView{};
  view.dtype = dtype;
  const bool on_device = type == kCuda || type == kManaged;
  view.device = on_device ? Device{DeviceType::cuda, tensor.device.index} : cpu;
  const auto rank = static_cast<std::size_t>(tensor.rank);
  if (rank > 0) view.shape = Shape(std::span<const std::int64_t>(tensor.shape, rank));
  if (rank > 0 && tensor.strides != nullptr)
    view.strides = Strides(std::span<const std::int64_t>(tensor.strides, rank));
  view.data = tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
  return {};
}

Status view_of(const ManagedTensor& tensor, TensorView& view) noexcept { return view_of(tensor.tensor, view); }

Status view_of(const VersionedTensor& tensor, TensorView& view) noexcept {
  if (tensor.version.major != kVersion.major) {
    return Status::failure(ErrorCode::invalid_argument, "version", "dlpack: version %u.%u is not %u.x",
                           tensor.version.major, tensor.version.minor, kVersion.major);
  }
  return view_of(tensor.tensor, view);
}

ManagedTensor* managed(const TensorView& view, void* owner, void (*release)(void*), Status& status) noexcept {
  return make<ManagedTensor>(view, owner, release, status);
}

VersionedTensor* versioned(const TensorView& view, void* owner, void (*release)(void*), Status& status) noexcept {
  VersionedTensor* result = make<VersionedTensor>(view, owner, release, status);
  if (result != nullptr) {
    result->version = kVersion;
    result->flags = 0;
  }
  return result;
}

}  // namespace cenote::dlpack
