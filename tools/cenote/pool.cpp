#include "call.hpp"
#include "commands.hpp"

#include "tensor/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

namespace cenote::tool {
namespace {

namespace fs = std::filesystem;

struct Job {
  std::string input, output, indices;
};

bool is_array_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".npy" || ending == ".png";
}

/// One job for each input: a file to a file, or everything into a directory that is made when it is not there.
std::vector<Job> jobs_of(const PoolCommand& command) {
  std::vector<std::string> inputs;
  bool many = command.inputs.size() > 1;
  for (const std::string& input : command.inputs) {
    if (!is_directory(input)) {
      inputs.push_back(input);
      continue;
    }
    many = true;
    std::vector<std::string> found;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(input, error)) {
      if (entry.is_regular_file() && is_array_name(entry.path())) found.push_back(entry.path().string());
    }
    if (error) throw Failure::make(ExitCode::input, "{}: cannot be read: {}", input, error.message());
    if (found.empty()) throw Failure::make(ExitCode::input, "{}: holds no .npy or .png file", input);
    std::sort(found.begin(), found.end());
    inputs.insert(inputs.end(), found.begin(), found.end());
  }
  const bool into_directory = many || is_directory(command.output);
  std::vector<Job> jobs;
  if (!into_directory) {
    jobs.push_back({inputs[0], command.output, command.indices.value_or("")});
    return jobs;
  }
  const auto make_directory = [](const std::string& path) {
    if (is_array_name(path) && !is_directory(path)) {
      throw Failure::make(ExitCode::usage, "{}: several inputs need a directory for their results, not a file", path);
    }
    std::error_code error;
    fs::create_directories(path, error);
    if (error || !is_directory(path)) {
      throw Failure::make(ExitCode::output, "{}: several results go into a directory, and this cannot be one: {}", path,
                          error ? error.message() : "it is a file");
    }
  };
  make_directory(command.output);
  if (command.indices) make_directory(*command.indices);
  for (const std::string& input : inputs) {
    if (input == "-")
      throw Failure(ExitCode::usage, "standard input has no name for its result in a directory; name the output file");
    const fs::path name = fs::path(input).filename();
    Job job{input, (fs::path(command.output) / name).string(), ""};
    if (command.indices) job.indices = (fs::path(*command.indices) / name).replace_extension(".npy").string();
    for (const Job& other : jobs) {
      if (other.output == job.output) {
        throw Failure::make(ExitCode::usage, "{} and {} would both become {}", other.input, input, job.output);
      }
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// The samples of every plane, given or drawn: the library's rand() with the same seed draws the same ones.
class Samples {
 public:
  Samples(const PoolCommand& command, const Described& whole) : desc_(whole.random_samples) {
    if (command.samples) {
      source_ = std::make_unique<ArraySource>(*command.samples);
      desc_.strides = source_->strides();
      data_ = source_->load(0, desc_.numel());
      return;
    }
    desc_.strides = contiguous_strides(desc_.shape);
    const std::int64_t count = desc_.numel();
    drawn_.resize(static_cast<std::size_t>(count) * size_of(desc_.dtype));
    const int bits = desc_.dtype == DType::f64   ? 53
                     : desc_.dtype == DType::f32 ? 24
                     : desc_.dtype == DType::f16 ? 11
                                                 : 8;
    for (std::int64_t i = 0; i < count; ++i) {
      store_double(desc_.dtype, drawn_.data() + static_cast<std::size_t>(i) * size_of(desc_.dtype),
                   detail::random_uniform(command.seed, static_cast<std::uint64_t>(i), bits));
    }
    data_ = drawn_.data();
  }

  static PlanOptions options_for(const PoolCommand& command) {
    PlanOptions options;
    if (command.samples) {
      const ArraySource source(*command.samples);
      options.random_samples =
          TensorDesc{.dtype = source.dtype(), .shape = source.shape(), .strides = source.strides()};
    }
    return options;
  }

  void fill(const Piece& piece, PieceRunner::Buffers& buffers) const {
    TensorDesc part = desc_;
    part.shape[0] = piece.input_size[0];
    part.shape[1] = piece.input_size[1];
    buffers.samples_desc = part;
    const std::int64_t first = piece.input_begin[0] * desc_.strides[0] + piece.input_begin[1] * desc_.strides[1];
    buffers.random_samples = data_ + static_cast<std::size_t>(first) * size_of(desc_.dtype);
  }

 private:
  TensorDesc desc_;
  std::unique_ptr<ArraySource> source_;
  std::vector<std::byte> drawn_;
  const std::byte* data_ = nullptr;
};

void pool_one(const PoolCommand& command, const Job& job) {
  ArraySource source(job.input);
  if (source.shape().rank() == 0)
    throw Failure::make(ExitCode::refused, "{}: a single number has no axis to pool", source.path());
  const bool picture = source.picture().has_value();
  const AxisOrder order = command.layout.value_or(picture ? AxisOrder::channels_last : AxisOrder::channels_first);
  if (picture && order != AxisOrder::channels_last) {
    throw Failure::make(ExitCode::usage, "--layout nchw: {} is a picture, whose channels are last", source.path());
  }
  const int dims = picture ? command.op.dims.value_or(2) : spatial_rank(command.op, source.shape().rank());
  if (picture && dims != 2)
    throw Failure::make(ExitCode::refused, "{}: a picture has 2 spatial axes, not {}", source.path(), dims);
  const FileAxes axes = file_axes(source.path(), source.shape(), dims, order);

  PoolSpec spec = to_spec(command.op, dims);
  spec.return_indices = command.indices.has_value();
  spec.index_kind = command.index_kind;
  const TensorDesc input = logical_desc(axes, source.dtype(), source.shape(), source.fortran_order());
  const bool fractional = spec.op == Op::fractional_max_pool;
  if (!fractional && command.samples) throw Failure(ExitCode::usage, "--samples: only fractional-max takes samples");
  const Described whole =
      describe_whole(source.path(), input, spec, fractional ? Samples::options_for(command) : PlanOptions());
  if (spec.return_indices && !whole.problem.with_indices) {
    throw Failure::make(ExitCode::usage, "--indices: {} has no indices; max, min, adaptive-max and fractional-max have",
                        name_of(spec.op));
  }

  const Shape output_shape = file_shape(axes, whole.output.shape);
  const TensorDesc output = logical_desc(axes, source.dtype(), output_shape, source.fortran_order());
  const int bits = command.bits.value_or(picture ? source.picture()->bits : 8);
  ArraySink sink(job.output, source.dtype(), shape_in_file(job.output, axes, order, whole.output.shape),
                 source.fortran_order(), bits);
  std::unique_ptr<ArraySink> index_sink;
  if (spec.return_indices) {
    if (same_file(job.indices, job.output)) {
      throw Failure::make(ExitCode::usage, "--indices: {} is the output's name too", job.indices);
    }
    if (same_file(job.indices, job.input)) {
      throw Failure::make(ExitCode::usage, "--indices: {} is the input; name another file", job.indices);
    }
    if (format_of(job.indices) != FileFormat::npy) {
      throw Failure::make(ExitCode::usage, "--indices: {}: indices are written as .npy", job.indices);
    }
    index_sink =
        std::make_unique<ArraySink>(job.indices, whole.problem.index_dtype, output_shape, source.fortran_order());
  }

  std::optional<Samples> samples;
  if (fractional) samples.emplace(command, whole);
  const Pieces pieces(whole, axes, source.fortran_order(), command.machine.memory, !fractional);
  PieceRunner runner(spec, whole, command.machine);
  const std::int64_t total = input.numel() * static_cast<std::int64_t>(size_of(source.dtype()));
  Progress progress(job.input, total, !command.reporting.quiet && !command.reporting.json);
  std::vector<std::byte> output_buffer, index_buffer;
  for (std::int64_t i = 0; i < pieces.count(); ++i) {
    const Piece piece = pieces.at(i);
    const TensorDesc in = input_of(piece, input), out = output_of(piece, output);
    const std::int64_t length = extent(in), outputs = out.numel();
    output_buffer.resize(static_cast<std::size_t>(outputs) * size_of(out.dtype));
    if (index_sink) index_buffer.resize(static_cast<std::size_t>(outputs) * size_of(whole.problem.index_dtype));
    if (outputs > 0 && length > 0) {
      PieceRunner::Buffers buffers{.input = source.load(first_element(piece.input_begin, input), length),
                                   .output = output_buffer.data(),
                                   .indices = index_sink ? index_buffer.data() : nullptr};
      if (samples) samples->fill(piece, buffers);
      if (i + 1 < pieces.count()) {
        const Piece next = pieces.at(i + 1);
        source.prefetch(first_element(next.input_begin, input), extent(input_of(next, input)));
      }
      runner.run(piece, in, out, buffers);
    }
    sink.write(output_buffer);
    if (index_sink) {
      shift_indices(piece, whole.problem, whole.problem.index_dtype, index_buffer.data(), outputs);
      index_sink->write(index_buffer);
    }
    progress.add(total / std::max<std::int64_t>(pieces.count(), 1));
  }
  progress.clear();
  sink.file().finish();
  if (index_sink) index_sink->file().finish();
  sink.file().commit();
  if (index_sink) index_sink->file().commit();

  const Summary summary{.input = job.input,
                        .output = job.output,
                        .indices = job.indices,
                        .input_desc = input,
                        .output_desc = output,
                        .input_shape = source.shape(),
                        .output_shape = output_shape,
                        .bytes = total + output.numel() * static_cast<std::int64_t>(size_of(output.dtype)),
                        .pieces = pieces.count(),
                        .seconds = progress.seconds(),
                        .kernel = runner.explanation()};
  // With the result on standard output there is no room for a summary there.
  if (!(job.output == "-" && command.reporting.json)) report(summary, command.reporting);
}

}  // namespace

void run_pool(const PoolCommand& command) {
  for (const Job& job : jobs_of(command)) pool_one(command, job);
}

}  // namespace cenote::tool
