#include "command_line.hpp"

#include "failure.hpp"
#include "help.hpp"
#include "option_groups.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>

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

constexpr const char* kOutputTaken = "standard output holds the result already; name a file";

struct Line {
  CLI::App app{std::string(find_help("")->summary), "cenote"};
  PoolCommand pool;
  std::vector<std::string> pool_files;
  UnpoolCommand unpool;
  ExplainCommand explain;
  ShapeCommand shape;
  CheckCommand check;
  ExplainPlanCommand explain_plan;
  BenchCommand bench;
  InfoCommand info;
  CompletionCommand completion;

  Line() {
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_help_flag("-h,--help", "Show this and stop");
    app.set_version_flag("-V,--version", fmt::format("cenote {}", kVersion), "Print the version and stop");
    app.require_subcommand(1);
    app.option_defaults()->disable_flag_override();  // --json=5 is a mistake
    add_pool();
    add_unpool();
    add_explain();
    add_shape();
    command("check")->add_option("problems", check.problems, "the problems, each quoted")->required();
    command("explain-plan")->add_option("problems", explain_plan.problems, "the problems, each quoted")->required();
    add_bench();
    command("info")->add_flag("--json", info.json, "one JSON object");
    command("completion")->add_option("shell", completion.shell, "bash, zsh or fish")->required();
  }

  CLI::App* command(const std::string& name) { return app.add_subcommand(name, std::string(find_help(name)->summary)); }

  void add_pool() {
    CLI::App* c = command("pool");
    c->add_option("files", pool_files, "inputs (.npy, .png, directories of them, -), then the output")->required();
    add_op_options(c, pool.op, OpChoice::pools);
    add_text(c, "-i,--indices", "FILE", "max and min family: also write where each value came from",
             [this](const std::string& t) { pool.indices = file_name("--indices", t); });
    add_text(c, "--index-kind", "KIND",
             "of --indices: flat64 (PyTorch's), flat32, or window: which tap won (default flat64)",
             [this](const std::string& t) { pool.index_kind = parse_index_kind(t); });
    add_layout(c, pool.layout);
    add_text(c, "--samples", "FILE",
             "fractional-max: the random samples, a .npy array (N, C, axes) of the input's dtype",
             [this](const std::string& t) { pool.samples = file_name("--samples", t); });
    add_seed(c, pool.seed);
    add_machine(c, pool.machine, pool.bits, pool.reporting);
  }

  void add_unpool() {
    CLI::App* c = command("unpool");
    unpool.op.op = Op::max_unpool;
    c->add_option("input", unpool.input, "the pooled values")->required();
    c->add_option("output", unpool.output, "the result")->required();
    add_text(c, "-i,--indices", "FILE", "where the values go, as `cenote pool --indices` wrote it",
             [this](const std::string& t) { unpool.indices = file_name("--indices", t); })
        ->required();
    add_op_options(c, unpool.op, OpChoice::none);
    add_text(c, "--index-kind", "KIND", "flat64, flat32 or window (default: from the indices' dtype)",
             [this](const std::string& t) { unpool.index_kind = parse_index_kind(t); });
    add_layout(c, unpool.layout);
    add_machine(c, unpool.machine, unpool.bits, unpool.reporting);
  }

  void add_explain() {
    CLI::App* c = command("explain");
    c->add_option_function<std::string>(
        "file", [this](const std::string& t) { explain.file = file_name("FILE", t); },
        "a .npy or .png file; or give --values or --size");
    add_op_options(c, explain.op, OpChoice::pools_and_unpool);
    add_text(c, "--values", "NUMBERS", "the input itself: \"1 3 2; 5 6 1\"",
             [this](const std::string& t) { explain.values = t; });
    add_text(c, "--size", "SIZE", "an input counted 1..n: 4x4, or 6 for one axis (default: what suits the op)",
             [this](const std::string& t) { explain.size = parse_shape("--size", t); });
    add_text(c, "--indices", "NUMBERS", "unpool: where each value goes (default: as pooling 1..n gives them)",
             [this](const std::string& t) { explain.indices = t; });
    add_text(c, "--crop", "HxW+Y+X", "a part of a file (default: the first 8x8 cells of a large one)",
             [this](const std::string& t) { explain.crop = t; });
    add_text(c, "--plane", "N", "which channel (and batch entry) of a file (default 0)", [this](const std::string& t) {
      explain.plane = parse_integer("--plane", t);
      if (*explain.plane < 0)
        throw Failure::make(ExitCode::usage, "--plane: {} is negative; the first plane is 0", *explain.plane);
    });
    add_layout(c, explain.layout);
    add_text(c, "--svg", "FILE", "also draw it", [this](const std::string& t) { explain.svg = file_name("--svg", t); });
    add_seed(c, explain.seed);
    c->add_flag("--all", explain.all_windows, "draw every window, however many");
    add_text(c, "--width", "COLUMNS", "text width (default: the terminal's, else 100)", [this](const std::string& t) {
      const std::int64_t value = parse_integer("--width", t);
      if (value < 20 || value > 1000)
        throw Failure::make(ExitCode::usage, "--width: {}; write a number from 20 to 1000", value);
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

  void add_bench() {
    CLI::App* c = command("bench");
    c->add_option("problems", bench.problems, "the problems, each quoted (default: the suite)");
    add_text(c, "--suite", "FILE", "rows of a suite of one's own (JSON, as bench/suite.json)",
             [this](const std::string& t) { bench.suite = file_name("--suite", t); });
    add_text(c, "--filter", "REGEX", "only the suite's rows whose names match",
             [this](const std::string& t) { bench.filter = t; });
    add_threads(c, bench.threads);
    c->add_flag("--json", bench.json, "one JSON object");
  }

  std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
    return names;
  }

  static Failure no_command(const std::string& word, const std::vector<std::string>& names) {
    return Failure::make(ExitCode::usage, "'{}' is no command of cenote{} Commands: {}.", word,
                         closest(word, names).empty() ? "." : did_you_mean(word, names), fmt::join(names, ", "));
  }

  /// "see `cenote pool --help`".
  std::string where_to_look(const CLI::App* where) const {
    return fmt::format("see `cenote {}--help`", where == &app ? "" : where->get_name() + " ");
  }

  /// One line for a word that is no option of the command.
  Failure unexpected(const CLI::App* where, const std::string& word) const {
    if (!word.starts_with('-') || word == "-")
      return Failure::make(ExitCode::usage, "'{}' is one argument too many; {}", word, where_to_look(where));
    std::vector<std::string> known;
    for (const CLI::Option* option : where->get_options({})) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::string name = word.substr(0, word.find('='));
    std::string given = name;
    std::replace(given.begin(), given.end(), '_', '-');
    return Failure::make(ExitCode::usage, "unknown option '{}'{}; {}", name, did_you_mean(given, known),
                         where_to_look(where));
  }

  /// One line for what CLI11 found missing, or twice, or where nothing belongs.
  Failure mismatched(const CLI::App* where, const CLI::ParseError& error) const {
    const std::string text = error.what();
    std::string name = text.substr(0, text.find_first_of(": "));
    if (!name.starts_with('-')) name = (name.size() == 1 ? "-" : "--") + name;  // CLI11 names flags without them
    const CLI::Option* option = where->get_option_no_throw(name);
    const std::string more = where_to_look(where);
    if (option == nullptr || dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr)
      return Failure::make(ExitCode::usage, "{}; {}", text, more);
    if (option->get_expected_min() == 0) return Failure::make(ExitCode::usage, "{} takes no value; {}", name, more);
    if (option->count() > 1)
      return Failure::make(ExitCode::usage, "{} is given {} times, and one must do; {}", name, option->count(), more);
    return Failure::make(ExitCode::usage, "{} needs a value ({}); {}", name, option->get_type_name(), more);
  }

  Command parse(const std::vector<std::string>& words) {
    if (words.empty()) return TextCommand{app.help()};
    const std::vector<std::string> names = command_names();
    if (!words[0].starts_with('-') && std::find(names.begin(), names.end(), words[0]) == names.end()) {
      if (words[0] == "help") {
        if (words.size() == 1) return TextCommand{app.help()};
        if (std::find(names.begin(), names.end(), words[1]) != names.end())
          return TextCommand{app.get_subcommand(words[1])->help()};
        throw no_command(words[1], names);
      }
      if (words[0] == "cenote") throw Failure(ExitCode::usage, "'cenote' is there twice; one is enough");
      throw no_command(words[0], names);
    }
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
      const std::string text = error.what();
      const CommandHelp* help = find_help(words[0]);
      if (text.starts_with('-') || help == nullptr) throw mismatched(where, error);
      throw Failure::make(ExitCode::usage, "{}: arguments are missing; usage: {}", words[0], help->usage);
    } catch (const CLI::ParseError& error) {
      throw mismatched(where, error);
    }
    return finished(words[0]);
  }

  /// Options that would change nothing are mistakes: they are refused, not ignored.
  static void refuse(bool given, const char* option, const char* why) {
    if (given) throw Failure::make(ExitCode::usage, "{}: {}", option, why);
  }

  Command finished_pool() {
    if (pool.op.op == Op::max_unpool)
      throw Failure(ExitCode::usage, "--op unpool: unpooling is a command, see `cenote unpool --help`");
    check_op_arguments(pool.op);
    if (pool_files.size() < 2) {
      throw Failure::make(ExitCode::usage, "pool needs an input and an output: cenote pool {} OUTPUT",
                          pool_files.front());
    }
    for (const std::string& name : pool_files) file_name("pool", name);
    const bool fractional = pool.op.op == Op::fractional_max_pool;
    const bool winners =
        fractional || pool.op.op == Op::max_pool || pool.op.op == Op::min_pool || pool.op.op == Op::adaptive_max_pool;
    refuse(pool.indices && !winners, "--indices",
           "only max, min, adaptive-max, global-max and fractional-max have any");
    refuse(pool.index_kind && !pool.indices, "--index-kind", "no indices are written; --indices FILE asks for them");
    refuse(pool.samples && !fractional, "--samples", "only fractional-max takes samples");
    refuse(pool.seed && !fractional, "--seed", "only fractional-max draws anything");
    refuse(pool.seed && pool.samples, "--seed", "--samples leaves nothing to draw");
    pool.output = pool_files.back();
    pool_files.pop_back();
    pool.inputs = pool_files;
    refuse(pool.samples == "-", "--samples", "standard input is for what is pooled; name a file");
    refuse(pool.indices == "-" && pool.output == "-", "--indices", kOutputTaken);
    refuse(pool.reporting.json && (pool.output == "-" || pool.indices == "-"), "--json", kOutputTaken);
    return pool;
  }

  Command finished_explain() {
    check_op_arguments(explain.op);
    const int sources = (explain.file.empty() ? 0 : 1) + (explain.values ? 1 : 0) + (explain.size ? 1 : 0);
    if (sources > 1) throw Failure(ExitCode::usage, "explain takes one input: a file, --values or --size");
    refuse(explain.crop && explain.file.empty(), "--crop", "only a file can be cropped; name one");
    refuse(explain.plane && explain.file.empty(), "--plane", "only a file has several planes; name one");
    refuse(explain.layout && explain.file.empty(), "--layout", "only a file has channels; name one");
    refuse(explain.indices && explain.op.op != Op::max_unpool, "--indices", "only unpool reads indices");
    refuse(explain.seed && explain.op.op != Op::fractional_max_pool, "--seed", "only fractional-max draws anything");
    return explain;
  }

  Command finished(const std::string& name) {
    if (name == "pool") return finished_pool();
    if (name == "unpool") {
      check_op_arguments(unpool.op);
      for (const std::string& file : {unpool.input, unpool.output}) file_name("unpool", file);
      refuse(unpool.indices == "-" && unpool.input == "-", "--indices",
             "standard input holds the values already; name a file");
      refuse(unpool.reporting.json && unpool.output == "-", "--json", kOutputTaken);
      return unpool;
    }
    if (name == "explain") return finished_explain();
    if (name == "shape") return shape;
    if (name == "check") return check;
    if (name == "explain-plan") return explain_plan;
    if (name == "bench") {
      refuse(!bench.problems.empty() && !bench.suite.empty(), "--suite", "problems are measured instead of a suite");
      refuse(!bench.problems.empty() && !bench.filter.empty(), "--filter", "it chooses rows of a suite, not problems");
      return bench;
    }
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
