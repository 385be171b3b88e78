#include "command_line.hpp"

#include "failure.hpp"
#include "help.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>

namespace cenote::tool {

const char* const kVersion = CENOTE_VERSION;

namespace {

/// What it is, how it is called, examples; then the options; notes last.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string) const override {
    const CommandHelp* help = help_of(app);
    return help == nullptr ? "" : fmt::format("Usage: {}\n\n{}\n", help->usage, help->examples);
  }
  std::string make_positionals(const CLI::App*) const override { return ""; }  // the usage line has them
  std::string make_footer(const CLI::App* app) const override {
    const CommandHelp* help = help_of(app);
    return help == nullptr || help->notes.empty() ? "" : fmt::format("\n{}\n", help->notes);
  }

 private:
  static const CommandHelp* help_of(const CLI::App* app) {
    return find_help(app->get_parent() == nullptr ? "" : app->get_name());
  }
};

/// Calls `store` with the option's text. Whatever it throws reaches the caller of parse().
CLI::Option* add_text(CLI::App* app, const std::string& names, const std::string& type, const std::string& text,
                      std::function<void(const std::string&)> store) {
  return app->add_option_function<std::string>(names, std::move(store), text)->type_name(type);
}

void add_op_options(CLI::App* app, OpArguments& a, bool with_op) {
  const char* group = "The op";
  if (with_op) {
    add_text(app, "--op", "OP",
             "max, min, avg, sum, lp, adaptive-max, adaptive-avg, fractional-max, global-max, global-avg (explain: "
             "also unpool); "
             "PyTorch's names (max_pool2d) work too",
             [&a](const std::string& t) { parse_op(t, a); })
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
           "cells added at both ends: 1, 1x2; begin:end (0:1x1:1); same, same-lower (default 0)",
           [&a](const std::string& t) { a.padding = parse_padding("--padding", t); })
      ->group(group);
  add_text(app, "-d,--dilation", "SIZE", "distance between the taps of a window (default 1)",
           [&a](const std::string& t) { a.dilation = parse_dims("--dilation", t); })
      ->group(group);
  add_text(app, "-o,--output-size", "SIZE", "adaptive, fractional, unpool: the size wanted; keep: the input's",
           [&a](const std::string& t) { a.output_size = parse_dims("--output-size", t); })
      ->group(group);
  if (with_op) {
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

void add_seed(CLI::App* app, std::uint64_t& seed) {
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

void add_machine(CLI::App* app, Machine& machine, std::optional<int>& bits, Reporting& reporting) {
  add_text(app, "--bits", "8|16", "depth of a .png written (default: the input picture's, or 8)",
           [&bits](const std::string& t) {
             const std::int64_t value = parse_integer("--bits", t);
             if (value != 8 && value != 16)
               throw Failure::make(ExitCode::usage, "--bits: {}; a .png is written with 8 or 16", value);
             bits = static_cast<int>(value);
           });
  const char* group = "Machine and messages";
  add_text(app, "--threads", "N", "threads to use (default: all)", [&machine](const std::string& t) {
    const std::int64_t value = parse_integer("--threads", t);
    if (value < 1 || value > 4096)
      throw Failure::make(ExitCode::usage, "--threads: {}; write a number from 1 to 4096", value);
    machine.threads = static_cast<int>(value);
  })->group(group);
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

struct Line {
  CLI::App app{std::string(find_help("")->summary), "cenote"};
  PoolCommand pool;
  std::vector<std::string> pool_files;
  UnpoolCommand unpool;
  ExplainCommand explain;
  ShapeCommand shape;
  InfoCommand info;
  CompletionCommand completion;

  Line() {
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_help_flag("-h,--help", "Show this and stop");
    app.set_version_flag("-V,--version", fmt::format("cenote {}", kVersion), "Print the version and stop");
    app.require_subcommand(1);
    add_pool();
    add_unpool();
    add_explain();
    add_shape();
    command("check");
    command("explain-plan");
    command("bench");
    command("info")->add_flag("--json", info.json, "one JSON object");
    command("completion")->add_option("shell", completion.shell, "bash, zsh or fish")->required();
  }

  CLI::App* command(const std::string& name) { return app.add_subcommand(name, std::string(find_help(name)->summary)); }

  void add_pool() {
    CLI::App* c = command("pool");
    c->add_option("files", pool_files, "inputs (.npy, .png, directories of them, -), then the output")->required();
    add_op_options(c, pool.op, true);
    add_text(c, "-i,--indices", "FILE", "max and min family: also write where each value came from",
             [this](const std::string& t) { pool.indices = t; });
    add_text(c, "--index-kind", "KIND", "flat64 (PyTorch's), flat32, or window: which tap won (default flat64)",
             [this](const std::string& t) { pool.index_kind = parse_index_kind(t); });
    add_layout(c, pool.layout);
    add_text(c, "--samples", "FILE",
             "fractional-max: the random samples, a .npy array (N, C, axes) of the input's dtype",
             [this](const std::string& t) { pool.samples = t; });
    add_seed(c, pool.seed);
    add_machine(c, pool.machine, pool.bits, pool.reporting);
  }

  void add_unpool() {
    CLI::App* c = command("unpool");
    unpool.op.op = Op::max_unpool;
    c->add_option("input", unpool.input, "the pooled values")->required();
    c->add_option("output", unpool.output, "the result")->required();
    add_text(c, "-i,--indices", "FILE", "where the values go, as `cenote pool --indices` wrote it",
             [this](const std::string& t) { unpool.indices = t; })
        ->required();
    add_op_options(c, unpool.op, false);
    add_text(c, "--index-kind", "KIND", "flat64, flat32 or window (default: from the indices' dtype)",
             [this](const std::string& t) { unpool.index_kind = parse_index_kind(t); });
    add_layout(c, unpool.layout);
    add_machine(c, unpool.machine, unpool.bits, unpool.reporting);
  }

  void add_explain() {
    CLI::App* c = command("explain");
    c->add_option("file", explain.file, "a .npy or .png file; or give --values or --size");
    add_op_options(c, explain.op, true);
    add_text(c, "--values", "NUMBERS", "the input itself: \"1 3 2; 5 6 1\"",
             [this](const std::string& t) { explain.values = t; });
    add_text(c, "--size", "SIZE", "an input counted 1..n: 4x4, or 6 for one axis (default: what suits the op)",
             [this](const std::string& t) { explain.size = parse_shape("--size", t); });
    add_text(c, "--indices", "NUMBERS", "unpool: where each value goes (default: as pooling 1..n gives them)",
             [this](const std::string& t) { explain.indices = t; });
    add_text(c, "--crop", "HxW+Y+X", "a part of a larger input (default: its first 8x8 cells)",
             [this](const std::string& t) { explain.crop = t; });
    add_text(c, "--plane", "N", "which channel (and batch entry) of a file (default 0)", [this](const std::string& t) {
      explain.plane = parse_integer("--plane", t);
      if (explain.plane < 0)
        throw Failure::make(ExitCode::usage, "--plane: {} is negative; the first plane is 0", explain.plane);
    });
    add_text(c, "--svg", "FILE", "also draw it", [this](const std::string& t) { explain.svg = t; });
    add_seed(c, explain.seed);
    c->add_flag("--all", explain.all_windows, "draw every window, however many");
    add_text(c, "--width", "COLUMNS", "text width (default: the terminal's, else 100)", [this](const std::string& t) {
      const std::int64_t value = parse_integer("--width", t);
      if (value < 40 || value > 1000)
        throw Failure::make(ExitCode::usage, "--width: {}; write a number from 40 to 1000", value);
      explain.width = static_cast<int>(value);
    });
    add_text(c, "--color", "WHEN", "auto, always or never (default auto)", [this](const std::string& t) {
      if (t != "auto" && t != "always" && t != "never") {
        throw Failure::make(ExitCode::usage, "--color: '{}' is unknown; write auto, always or never", t);
      }
      explain.color = t;
    });
  }

  void add_shape() {
    CLI::App* c = command("shape");
    c->add_option_function<std::string>(
         "input", [this](const std::string& t) { shape.input = parse_shape("INPUT", t); },
         "the input's sizes: 1x3x224x224")
        ->required();
    c->add_option("layers", shape.layers, "the layers, each quoted: \"max k3 s2 p1\"")->required();
    add_text(c, "--dtype", "TYPE", "f32, f64, f16, bf16, i8, u8, i16, i32 or i64, for the memory (default f32)",
             [this](const std::string& t) {
               for (int i = 0; i <= static_cast<int>(DType::i64); ++i) {
                 shape.dtype = static_cast<DType>(i);
                 if (t == name_of(shape.dtype)) return;
               }
               throw Failure::make(ExitCode::usage,
                                   "--dtype: '{}' is unknown; write f32, f64, f16, bf16, i8, u8, i16, i32 or i64", t);
             });
    c->add_flag("--json", shape.json, "one JSON object");
  }

  std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
    return names;
  }

  /// One line for a word that is no option of the command.
  Failure unexpected(const CLI::App* where, const std::string& word) const {
    if (!word.starts_with('-') || word == "-") {
      return Failure::make(ExitCode::usage, "'{}' is one argument too many; see `cenote {} --help`", word,
                           where->get_name());
    }
    std::vector<std::string> known;
    for (const CLI::Option* option : where->get_options({})) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    std::string given = word.substr(0, word.find('='));
    std::replace(given.begin(), given.end(), '_', '-');
    return Failure::make(ExitCode::usage, "unknown option '{}'{} See `cenote {} --help`.",
                         word.substr(0, word.find('=')),
                         closest(given, known).empty() ? "." : did_you_mean(given, known), where->get_name());
  }

  Command parse(const std::vector<std::string>& words) {
    if (words.empty()) return TextCommand{app.help()};
    const std::vector<std::string> names = command_names();
    if (!words[0].starts_with('-') && std::find(names.begin(), names.end(), words[0]) == names.end()) {
      if (words[0] == "help") {
        if (words.size() > 1 && std::find(names.begin(), names.end(), words[1]) != names.end()) {
          return TextCommand{app.get_subcommand(words[1])->help()};
        }
        return TextCommand{app.help()};
      }
      throw Failure::make(ExitCode::usage, "'{}' is no command of cenote{} Commands: {}.", words[0],
                          closest(words[0], names).empty() ? "." : did_you_mean(words[0], names),
                          fmt::join(names, ", "));
    }
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    const bool asks_help = !rest.empty() && (rest[0] == "-h" || rest[0] == "--help");
    if (!asks_help && words[0] == "check") return CheckCommand{rest};
    if (!asks_help && words[0] == "explain-plan") return ExplainPlanCommand{rest};
    if (!asks_help && words[0] == "bench") return BenchCommand{rest};

    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes them from the back
    const CLI::App* where =
        names.end() == std::find(names.begin(), names.end(), words[0]) ? &app : app.get_subcommand(words[0]);
    try {
      app.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
      return TextCommand{where->help()};
    } catch (const CLI::CallForVersion& version) {
      return TextCommand{fmt::format("{}\n", version.what())};
    } catch (const CLI::ExtrasError& error) {
      std::vector<std::string> extras = where->remaining();
      if (extras.empty()) extras = app.remaining();
      for (const std::string& word : extras) {
        if (word.starts_with('-') && word != "-") throw unexpected(where, word);
      }
      if (!extras.empty()) throw unexpected(where, extras.front());
      throw Failure(ExitCode::usage, error.what());
    } catch (const CLI::RequiredError& error) {
      // A misspelt option leaves the one that was meant missing: say the former, which is the cause.
      for (const std::string& word : where->remaining()) {
        if (word.starts_with('-') && word != "-") throw unexpected(where, word);
      }
      throw Failure::make(ExitCode::usage, "{}; see `cenote {} --help`", error.what(), words[0]);
    } catch (const CLI::ParseError& error) {
      throw Failure::make(ExitCode::usage, "{}; see `cenote {} --help`", error.what(), words[0]);
    }
    return finished(words[0]);
  }

  Command finished(const std::string& name) {
    if (name == "pool") {
      if (pool.op.op == Op::max_unpool)
        throw Failure(ExitCode::usage, "--op unpool: unpooling is a command, see `cenote unpool --help`");
      check_op_arguments(pool.op);
      if (pool_files.size() < 2) {
        throw Failure::make(ExitCode::usage, "pool needs an input and an output: cenote pool {} OUTPUT",
                            pool_files.front());
      }
      pool.output = pool_files.back();
      pool_files.pop_back();
      pool.inputs = pool_files;
      return pool;
    }
    if (name == "unpool") {
      check_op_arguments(unpool.op);
      return unpool;
    }
    if (name == "explain") {
      check_op_arguments(explain.op);
      const int sources = (explain.file.empty() ? 0 : 1) + (explain.values ? 1 : 0) + (explain.size ? 1 : 0);
      if (sources > 1) throw Failure(ExitCode::usage, "explain takes one input: a file, --values or --size");
      return explain;
    }
    if (name == "shape") return shape;
    if (name == "completion") {
      if (completion.shell != "bash" && completion.shell != "zsh" && completion.shell != "fish") {
        throw Failure::make(ExitCode::usage, "completion: '{}' is unknown; write bash, zsh or fish", completion.shell);
      }
      return completion;
    }
    return info;
  }
};

}  // namespace

Command parse_command_line(const std::vector<std::string>& words) {
  Line line;
  return line.parse(words);
}

void with_app(const std::function<void(CLI::App&)>& visit) {
  Line line;
  visit(line.app);
}

}  // namespace cenote::tool
