#include "option_groups.hpp"

#include "failure.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace cenote::tool {

CLI::Option* add_text(CLI::App* app, const std::string& names, const std::string& type, const std::string& text,
                      const std::function<void(const std::string&)>& store) {
  return app->add_option_function<std::string>(names, store, text)->type_name(type);
}

std::string file_name(const std::string& option, const std::string& text) {
  if (text.empty()) throw Failure::make(ExitCode::usage, "{}: the name of a file is empty", option);
  return text;
}

void add_op_options(CLI::App* app, OpArguments& a, OpChoice choice) {
  const char* group = "The op";
  const bool unpool = choice == OpChoice::pools_and_unpool;
  if (choice != OpChoice::none) {
    add_text(app, "--op", "OP",
             fmt::format("{}; PyTorch's names (max_pool2d) work too", fmt::join(op_names(unpool), ", ")),
             [&a, unpool](const std::string& t) { parse_op(t, unpool, a); })
        ->required()
        ->group(group);
  }
  add_text(app, "-k,--kernel,--kernel-size", "SIZE", "taps of a window: 3, or 3x2 for height 3 and width 2",
           [&a](const std::string& t) { a.kernel_size = parse_dims("--kernel", t); })
      ->group(group);
  add_text(app, "-s,--stride", "SIZE", "step from one window to the next (default: the kernel's size)",
           [&a](const std::string& t) { a.stride = parse_dims("--stride", t); })
      ->group(group);
  add_text(app, "-p,--padding", "SIZE",
           choice == OpChoice::none
               ? "cells that were added at both ends: 1, 1x2 (default 0)"
               : "cells added at both ends: 1, 1x2; begin:end (0:1x1:1); same, same-lower (default 0)",
           [&a](const std::string& t) { a.padding = parse_padding("--padding", t); })
      ->group(group);
  add_text(app, "-d,--dilation", "SIZE",
           choice == OpChoice::none ? "the pool's distance between taps: read with indices of kind window (default 1)"
                                    : "distance between the taps of a window (default 1)",
           [&a](const std::string& t) { a.dilation = parse_dims("--dilation", t); })
      ->group(group);
  add_text(app, "-o,--output-size", "SIZE",
           choice == OpChoice::none ? "the size wanted, where several pool to the input's"
           : unpool                 ? "adaptive, fractional, unpool: the size wanted; keep: the input's"
                                    : "adaptive, fractional: the size wanted; keep: the input's",
           [&a](const std::string& t) { a.output_size = parse_output_size("--output-size", t); })
      ->group(group);
  if (choice != OpChoice::none) {
    app->add_flag("--ceil-mode,--ceil", a.ceil_mode, "keep a last window that hangs over the end")->group(group);
    app->add_flag("--no-count-include-pad,--exclude-pad", a.exclude_pad,
                  "avg: divide by the real cells only, not by padding")
        ->group(group);
    add_text(app, "--divisor-override", "N", "avg: divide by this instead", [&a](const std::string& t) {
      a.divisor_override = parse_integer("--divisor-override", t);
    })->group(group);
    add_text(app, "--norm-type", "P", "lp: the exponent, not 0; inf is the largest magnitude (default 2)",
             [&a](const std::string& t) { a.norm_type = parse_number("--norm-type", t); })
        ->group(group);
    add_text(app, "--output-ratio", "R", "fractional-max: output size as a part of the input's, 0.5 or 0.5,0.7",
             [&a](const std::string& t) {
               for (const std::string_view part : split(t, ",x"))
                 a.output_ratio.push_back(parse_number("--output-ratio", part));
             })
        ->group(group);
  }
  add_text(app, "--dims", "1|2|3", "spatial axes (default: from the op's name, a list's length, or the input's rank)",
           [&a](const std::string& t) {
             const std::int64_t dims = parse_integer("--dims", t);
             if (dims < 1 || dims > 3)
               throw Failure::make(ExitCode::usage, "--dims: {} axes; 1, 2 or 3 can be pooled", dims);
             a.dims = static_cast<int>(dims);
           })
      ->group(group);
}

void add_seed(CLI::App* app, std::optional<std::uint64_t>& seed) {
  add_text(app, "--seed", "N", "fractional-max: draws the windows' places (default 0)", [&seed](const std::string& t) {
    const std::int64_t value = parse_integer("--seed", t);
    if (value < 0) throw Failure::make(ExitCode::usage, "--seed: {} is negative", value);
    seed = static_cast<std::uint64_t>(value);
  });
}

void add_layout(CLI::App* app, std::optional<AxisOrder>& layout) {
  add_text(app, "--layout", "ORDER",
           "nchw: channels before the spatial axes (arrays' default); nhwc: after (pictures' order)",
           [&layout](const std::string& t) { layout = parse_layout(t); });
}

CLI::Option* add_threads(CLI::App* app, int& threads) {
  return add_text(app, "--threads", "N", "threads to use (default: all)", [&threads](const std::string& t) {
    const std::int64_t value = parse_integer("--threads", t);
    if (value < 1 || value > 4096)
      throw Failure::make(ExitCode::usage, "--threads: {}; write a number from 1 to 4096", value);
    threads = static_cast<int>(value);
  });
}

void add_machine(CLI::App* app, Machine& machine, std::optional<int>& bits, Reporting& reporting) {
  add_text(app, "--bits", "8|16", "depth of a .png written (default: the input picture's, or 8)",
           [&bits](const std::string& t) {
             const std::int64_t value = parse_integer("--bits", t);
             if (value != 8 && value != 16)
               throw Failure::make(ExitCode::usage, "--bits: {}; a .png is written with 8 or 16", value);
             bits = static_cast<int>(value);
           });
  const char* group = "Machine and messages";
  add_threads(app, machine.threads)->group(group);
  add_text(app, "--device", "cpu|cuda", "where to compute (default cpu)", [&machine](const std::string& t) {
    if (t != "cpu" && t != "cuda")
      throw Failure::make(ExitCode::usage, "--device: '{}' is unknown; write cpu or cuda", t);
    machine.cuda = t == "cuda";
  })->group(group);
  add_text(app, "--memory", "BYTES", "input and output worked on at once (default 256M)",
           [&machine](const std::string& t) { machine.memory = parse_bytes("--memory", t); })
      ->group(group);
  app->add_flag("-q,--quiet", reporting.quiet, "no progress, no summary")->group(group);
  app->add_flag("--json", reporting.json, "one JSON object for each result on standard output")->group(group);
}

}  // namespace cenote::tool
