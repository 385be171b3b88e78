#include "onnx_model.hpp"

namespace cenote::bench {

namespace {

constexpr std::int64_t kIrVersion = 8;
constexpr std::int64_t kOpset = 18;  // the newest that every op here is defined in and that old runtimes still read
constexpr std::int64_t kAttributeInt = 2, kAttributeInts = 7;

/// A message under construction. Field numbers are those of onnx.proto.
class Message {
 public:
  Message& integer(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.bytes_); }
  const std::string& str() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

Message value_info(const OnnxTensor& tensor) {
  Message shape;
  for (const std::int64_t size : tensor.shape) shape.message(1, Message().integer(1, size));
  const Message tensor_type = Message().integer(1, static_cast<int>(tensor.type)).message(2, shape);
  return Message().bytes(1, tensor.name).message(2, Message().message(1, tensor_type));
}

}  // namespace

std::string onnx_model(const OnnxNode& node) {
  Message node_proto;
  for (const OnnxTensor& input : node.inputs) node_proto.bytes(1, input.name);
  for (const OnnxTensor& output : node.outputs) node_proto.bytes(2, output.name);
  node_proto.bytes(4, node.op);
  for (const auto& [name, value] : node.integers) {
    node_proto.message(5, Message().bytes(1, name).integer(3, value).integer(20, kAttributeInt));
  }
  for (const auto& [name, values] : node.lists) {
    Message attribute;
    attribute.bytes(1, name);
    for (const std::int64_t value : values) attribute.integer(8, value);
    node_proto.message(5, attribute.integer(20, kAttributeInts));
  }
  Message graph;
  graph.message(1, node_proto).bytes(2, "pool");
  for (const OnnxTensor& input : node.inputs) graph.message(11, value_info(input));
  for (const OnnxTensor& output : node.outputs) graph.message(12, value_info(output));
  return Message().integer(1, kIrVersion).message(7, graph).message(8, Message().bytes(1, "").integer(2, kOpset)).str();
}

}  // namespace cenote::bench
