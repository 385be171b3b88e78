// ONNX models of one node, written straight as protocol-buffer bytes: no onnx or protobuf library is needed for so little.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cenote::bench {

/// Element types as ONNX numbers them (TensorProto.DataType).
enum class OnnxType : int { f32 = 1, u8 = 2, i8 = 3, i64 = 7, f16 = 10, f64 = 11, bf16 = 16 };

struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::f32;
  std::vector<std::int64_t> shape;
};

struct OnnxNode {
  std::string op;
  std::vector<OnnxTensor> inputs, outputs;
  std::vector<std::pair<std::string, std::int64_t>> integers{};  ///< attributes
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> lists{};
};

/// A serialised ModelProto whose graph is this node.
std::string onnx_model(const OnnxNode& node);

}  // namespace cenote::bench
