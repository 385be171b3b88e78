// Completion scripts, made from the command line's own description: an option cannot be forgotten in one of them.
#include "commands.hpp"
#include "help.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cenote::tool {
namespace {

struct Option {
  std::vector<std::string> names;  // with their hyphens
  std::string text;
  bool takes_value = false;
  std::vector<std::string> values;
  bool takes_file = false;
};
struct Verb {
  std::string name, text;
  std::vector<Option> options;
};

std::vector<std::string> values_of(const std::string& command, const std::string& option) {
  if (option == "--op") return op_names(command == "explain");
  if (option == "--index-kind") return {"flat64", "flat32", "window"};
  if (option == "--layout") return {"nchw", "nhwc", "ncl", "nlc", "ncdhw", "ndhwc"};
  if (option == "--device") return {"cpu", "cuda"};
  if (option == "--dims") return {"1", "2", "3"};
  if (option == "--bits") return {"8", "16"};
  if (option == "--color") return {"auto", "always", "never"};
  if (option == "--dtype") return {"f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32", "i64"};
  if (option == "--padding") return {"same", "same-lower"};
  return {};
}

std::vector<Verb> describe_commands() {
  std::vector<Verb> verbs;
  with_app([&](CLI::App& app) {
    for (const CLI::App* sub : app.get_subcommands({})) {
      Verb verb{sub->get_name(), sub->get_description(), {}};
      for (const CLI::Option* option : sub->get_options({})) {
        if (option->get_lnames().empty()) continue;
        Option one;
        for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
        for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
        one.text = option->get_description();
        one.takes_value = option->get_expected_min() > 0;  // 0: a flag
        one.takes_file = option->get_type_name() == "FILE";
        for (const std::string& name : option->get_lnames()) {
          if (one.values.empty()) one.values = values_of(verb.name, "--" + name);
        }
        verb.options.push_back(std::move(one));
      }
      verbs.push_back(std::move(verb));
    }
  });
  return verbs;
}

/// For single quotes in shells: ' becomes '\''.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

void print_bash(const std::vector<Verb>& verbs) {
  std::vector<std::string> names(verbs.size());
  std::transform(verbs.begin(), verbs.end(), names.begin(), [](const Verb& verb) { return verb.name; });
  fmt::print(
      "# bash completion for cenote\n_cenote() {{\n  local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" "
      "prev=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n  COMPREPLY=()\n");
  fmt::print(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$cur\"))\n    "
      "return\n  fi\n",
      fmt::join(names, " "));
  fmt::print("  case \"${{COMP_WORDS[1]}}:$prev\" in\n");
  for (const Verb& verb : verbs) {
    for (const Option& option : verb.options) {
      if (option.values.empty()) continue;
      for (const std::string& name : option.names) {
        fmt::print("    {}:{}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n", verb.name, name,
                   fmt::join(option.values, " "));
      }
    }
  }
  fmt::print("    completion:completion) COMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$cur\")); return ;;\n  esac\n");
  fmt::print("  if [[ \"$cur\" == -* ]]; then\n    case \"${{COMP_WORDS[1]}}\" in\n");
  for (const Verb& verb : verbs) {
    std::vector<std::string> all;
    for (const Option& option : verb.options) all.insert(all.end(), option.names.begin(), option.names.end());
    fmt::print("      {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n", verb.name, fmt::join(all, " "));
  }
  fmt::print(
      "    esac\n    return\n  fi\n  COMPREPLY=($(compgen -f -- \"$cur\"))\n}}\ncomplete -o filenames -F _cenote "
      "cenote\n");
}

void print_zsh(const std::vector<Verb>& verbs) {
  const auto escaped = [](const std::string& text) {
    std::string result;
    for (const char c : text) {
      if (c == '[' || c == ']' || c == ':') result += '\\';
      result += c;
    }
    return result;
  };
  fmt::print("#compdef cenote\n_cenote() {{\n  local -a commands\n  commands=(\n");
  for (const Verb& verb : verbs) fmt::print("    {}\n", shell_quoted(verb.name + ":" + escaped(verb.text)));
  fmt::print(
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n");
  for (const Verb& verb : verbs) {
    fmt::print("    {})\n      _arguments -s -S", verb.name);
    for (const Option& option : verb.options) {
      for (const std::string& name : option.names) {
        std::string spec = name + "[" + escaped(option.text) + "]";
        if (option.takes_value) {
          spec += option.takes_file       ? ":file:_files"
                  : option.values.empty() ? ":value: "
                                          : fmt::format(":value:({})", fmt::join(option.values, " "));
        }
        fmt::print(" \\\n        {}", shell_quoted(spec));
      }
    }
    fmt::print(" \\\n        {} ;;\n", verb.name == "completion" ? "'2:shell:(bash zsh fish)'" : "'*:file:_files'");
  }
  fmt::print("  esac\n}}\n_cenote \"$@\"\n");
}

void print_fish(const std::vector<Verb>& verbs) {
  fmt::print("# fish completion for cenote\ncomplete -c cenote -n __fish_use_subcommand -f\n");
  for (const Verb& verb : verbs)
    fmt::print("complete -c cenote -n __fish_use_subcommand -a {} -d {}\n", verb.name, shell_quoted(verb.text));
  for (const Verb& verb : verbs) {
    for (const Option& option : verb.options) {
      std::string line = fmt::format("complete -c cenote -n '__fish_seen_subcommand_from {}'", verb.name);
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) line += option.takes_file ? " -r" : " -x";
      if (!option.values.empty()) line += fmt::format(" -a '{}'", fmt::join(option.values, " "));
      fmt::print("{} -d {}\n", line, shell_quoted(option.text));
    }
  }
  fmt::print("complete -c cenote -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
}

}  // namespace

void run_completion(const CompletionCommand& command) {
  const std::vector<Verb> verbs = describe_commands();
  if (command.shell == "bash")
    print_bash(verbs);
  else if (command.shell == "zsh")
    print_zsh(verbs);
  else
    print_fish(verbs);
}

}  // namespace cenote::tool
