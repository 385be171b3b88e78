#include "call.hpp"
#include "commands.hpp"

#include "tensor/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
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

/// The inputs with directories replaced by the arrays and pictures in them.
std::vector<std::string> files_of(const std::vector<std::string>& names) {
  std::vector<std::string> inputs;
  for (const std::string& name : names) {
    if (!is_directory(name)) {
      inputs.push_back(name);
      continue;
    }
    std::vector<std::string> found;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(name, error)) {
      if (entry.is_regular_file() && is_array_name(entry.path())) found.push_back(entry.path().string());
    }
    if (error) throw Failure::make(ExitCode::input, "{}: cannot be read: {}", name, error.message());
    if (found.empty()) throw Failure::make(ExitCode::input, "{}: holds no .npy or .png file", name);
    std::sort(found.begin(), found.end());
    inputs.insert(inputs.end(), found.begin(), found.end());
  }
  return inputs;
}

void make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !is_directory(path)) {
    throw Failure::make(ExitCode::output, "{}: several results go into a directory, and this cannot be one: {}", path,
                        error ? error.message() : "it is a file");
  }
}

/// Every result has a name of its own, and no indices take an input's.
void check_names(const std::vector<Job>& jobs) {
  std::map<std::string, std::string> taken;  // by result: the input it comes from
  const auto take = [&](const std::string& result, const std::string& input) {
    const auto [place, fresh] = taken.emplace(result, input);
    if (!fresh) throw Failure::make(ExitCode::usage, "{} and {} would both become {}", place->second, input, result);
  };
  for (const Job& job : jobs) {
    take(plain_name(job.output), job.input);
    if (!job.indices.empty()) take(plain_name(job.indices), job.input);
  }
  for (const Job& job : jobs) {
    const auto found = taken.find(plain_name(job.input));
    if (found != taken.end() && found->second != job.input) {
      throw Failure::make(ExitCode::usage, "{}: a result of {} would replace it before it is read", job.input,
                          found->second);
    }
  }
}

/// One job for each input: a file to a file, or everything into a directory that is made when it is not there.
std::vector<Job> jobs_of(const PoolCommand& command) {
  const std::vector<std::string> inputs = files_of(command.inputs);
  const bool many = inputs.size() > 1 || is_directory(command.inputs[0]);
  const bool into_directory = many || command.output.ends_with('/') || is_directory(command.output);
  if (!into_directory) return {{inputs[0], command.output, command.indices.value_or("")}};
  std::vector<std::string> directories = {command.output};
  if (command.indices) directories.push_back(*command.indices);
  for (const std::string& directory : directories) {
    if (directory == "-" || (is_array_name(directory) && !is_directory(directory))) {
      throw Failure::make(ExitCode::usage, "{}: several inputs need a directory for their results, not a file",
                          directory);
    }
  }
  std::vector<Job> jobs;
  for (const std::string& input : inputs) {
    if (input == "-")
      throw Failure(ExitCode::usage, "standard input has no name for its result in a directory; name the output file");
    const fs::path name = fs::path(input).filename();
    Job job{input, (fs::path(command.output) / name).string(), ""};
    if (command.indices) job.indices = (fs::path(*command.indices) / name).replace_extension(".npy").string();
    jobs.push_back(std::move(job));
  }
  check_names(jobs);
  for (const std::string& directory : directories) make_directory(directory);
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
                   detail::random_uniform(command.seed.value_or(0), static_cast<std::uint64_t>(i), bits));
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
  const Reading reading = read_for(source, command.op, command.layout);
  const FileAxes& axes = reading.axes;
  const TensorDesc& input = reading.desc;

  PoolSpec spec = to_spec(command.op, axes.dims);
  spec.return_indices = command.indices.has_value();
  spec.index_kind = command.index_kind.value_or(IndexKind::flat64);
  const bool fractional = spec.op == Op::fractional_max_pool;
  const Described whole =
      describe_whole(source.path(), input, spec, fractional ? Samples::options_for(command) : PlanOptions(),
                     command.samples.value_or(""));

  const Shape output_shape = file_shape(axes, whole.output.shape);
  const TensorDesc output = logical_desc(axes, source.dtype(), output_shape, source.fortran_order());
  const int bits = command.bits.value_or(source.picture() ? source.picture()->bits : 8);
  ArraySink sink(job.output, source.dtype(), shape_in_file(job.output, axes, reading.order, whole.output.shape),
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
      require(runner.run(piece, in, out, buffers), source.path());
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
  report(summary, command.reporting);
}

}  // namespace

void run_pool(const PoolCommand& command) {
  const std::vector<Job> jobs = jobs_of(command);
  const bool pictures =
      std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return format_of(job.output) == FileFormat::png; });
  if (command.bits && !pictures) throw bits_without_picture(command.output);
  for (const Job& job : jobs) pool_one(command, job);
}

}  // namespace cenote::tool
