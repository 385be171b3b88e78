// One pooling call from file to file, cut into pieces: what `pool` and `unpool` share.
#pragma once

#include "arrays.hpp"
#include "command_line.hpp"
#include "device_memory.hpp"
#include "failure.hpp"
#include "pieces.hpp"
#include "progress.hpp"

#include <cenote/executor.hpp>
#include <cenote/plan.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cenote::tool {

/// Throws Failure with the library's message, behind the file's name, unless ok.
void require(const Status& status, const std::string& path);

/// The whole call's problem; throws Failure where the library refuses it, with the name of the file that is at fault: the input,
/// or that of the random samples.
Described describe_whole(const std::string& path, const TensorDesc& input, const PoolSpec& spec,
                         const PlanOptions& options = {}, const std::string& samples = {});

/// The shape a result of this logical shape has in the file `path`: the input's axes, or (height, width, channels) for a picture.
/// Throws Failure where an array is no picture.
Shape shape_in_file(const std::string& path, const FileAxes& axes, AxisOrder order, const Shape& logical);

/// --bits where no .png is written.
Failure bits_without_picture(const std::string& output);

/// Runs pieces: plans are made once for each different piece, buffers are kept between pieces.
class PieceRunner {
 public:
  PieceRunner(const PoolSpec& spec, const Described& whole, const Machine& machine);

  struct Buffers {
    const void* input = nullptr;
    void* output = nullptr;
    void* indices = nullptr;               ///< written (null: not wanted)
    const void* saved_indices = nullptr;   ///< read by unpool
    const void* random_samples = nullptr;  ///< fractional
    std::optional<TensorDesc> samples_desc{};
  };
  /// Refuses an index out of range.
  Status run(const Piece& piece, const TensorDesc& input, const TensorDesc& output, const Buffers& buffers);

  /// Which kernel was chosen for the first piece.
  const std::string& explanation() const noexcept { return explanation_; }

 private:
  const Plan& plan_for(const Piece& piece, const TensorDesc& input, const TensorDesc& output, const Buffers& buffers);

  PoolSpec spec_;
  const Described& whole_;
  bool cuda_;
  OpenMPExecutor executor_;
  std::map<std::vector<std::int64_t>, Plan> plans_;
  std::string explanation_;
  DeviceBuffer device_input_, device_output_, device_indices_, device_samples_;
};

/// The sentence, or JSON object, after a result is in its place.
struct Summary {
  std::string input, output, indices;
  TensorDesc input_desc, output_desc;
  Shape input_shape, output_shape;  ///< as the files have them
  std::int64_t bytes = 0;
  std::int64_t pieces = 0;
  double seconds = 0;
  std::string kernel;
};
void report(const Summary& summary, const Reporting& reporting);

}  // namespace cenote::tool
