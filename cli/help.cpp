// What the program says of itself: help, its version, a page for man, and completion for shells.  All of it
// is made of the same declarations that read the command line.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "retort/base/units.h"
#include "retort/record/provenance.h"

namespace retort::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "--set" and the like, long names first.
std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
    for (const auto& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

// Every command with the words that lead to it: "retort bench gemm".
void each_command(const CLI::App& app, const std::string& path,
                  const std::function<void(const CLI::App&, const std::string& path)>& act) {
  act(app, path);
  for (const auto* sub : commands_of(app)) each_command(*sub, path + " " + sub->get_name(), act);
}

// A leading dot is an instruction to roff, a hyphen without a backslash a dash.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
    if (c == '\n') escaped += "\\&";
  }
  return "\\&" + escaped;
}

std::string options_as_roff(const CLI::App& app) {
  std::string text;
  for (const auto* option : app.get_options())
    text += ".TP\n\\fB" + roff(option->get_name(false, true)) + "\\fR\n" + roff(option->get_description()) +
            (option->get_default_str().empty() ? "" : " (default " + roff(option->get_default_str()) + ")") +
            "\n";
  return text;
}

void print_manual(const CLI::App& root) {
  std::cout << ".TH RETORT 1 \"\" \"retort " << record::version()
            << "\"\n.SH NAME\nretort \\- makes language models smaller\n"
            << ".SH SYNOPSIS\n\\fBretort\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n"
            << roff(root.get_description()) << "\n";
  each_command(root, "retort", [&](const CLI::App& app, const std::string& path) {
    if (&app != &root) std::cout << ".SH \"" << roff(path) << "\"\n" << roff(app.get_description()) << "\n";
    std::cout << options_as_roff(app);
    if (!app.get_footer().empty()) std::cout << ".PP\n.nf\n" << roff(app.get_footer()) << "\n.fi\n";
  });
}

// The path of commands that stand on the line decides which words may follow.  Where none fits, the shell
// completes files.
void print_bash(const CLI::App& root) {
  std::string steps, words;
  each_command(root, "retort", [&](const CLI::App& app, const std::string& path) {
    std::string allowed;
    for (const auto* sub : commands_of(app)) {
      steps += (steps.empty() ? "" : "|") + ("\"" + path + " " + sub->get_name() + "\"");
      allowed += sub->get_name() + " ";
    }
    for (const auto& flag : flags_of(app)) allowed += flag + " ";
    words += "    \"" + path + "\") words=\"" + allowed + "\" ;;\n";
  });
  std::cout << "_retort() {\n"
               "  local current=${COMP_WORDS[COMP_CWORD]} path=retort words= i\n"
               "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
               "    case \"$path ${COMP_WORDS[i]}\" in\n      "
            << steps
            << ") path=\"$path ${COMP_WORDS[i]}\" ;;\n"
               "    esac\n"
               "  done\n"
               "  case $path in\n"
            << words
            << "  esac\n"
               "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
               "}\n"
               "complete -o default -F _retort retort\n";
}

std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\'' ? std::string("\\'") : std::string(1, c);
  return "'" + safe + "'";
}

void print_fish(const CLI::App& root) {
  for (const auto* sub : commands_of(root)) {
    std::cout << "complete -c retort -n __fish_use_subcommand -a " << sub->get_name() << " -d "
              << quoted(sub->get_description()) << "\n";
    const std::string seen = "complete -c retort -n '__fish_seen_subcommand_from " + sub->get_name() + "' ";
    for (const auto* option : sub->get_options())
      for (const auto& name : option->get_lnames())
        std::cout << seen << "-l " << name << " -d " << quoted(option->get_description()) << "\n";
    for (const auto* below : commands_of(*sub))
      std::cout << seen << "-a " << below->get_name() << " -d " << quoted(below->get_description()) << "\n";
  }
}

void print_completion(const CLI::App& root, const std::string& shell) {
  if (shell == "fish") return print_fish(root);
  if (shell == "zsh") std::cout << "#compdef retort\nautoload -U +X bashcompinit && bashcompinit\n";
  print_bash(root);
}

// The help of the command that words such as "bench gemm" name.
std::string help_of(const CLI::App& root, const std::vector<std::string>& words) {
  const auto* app = &root;
  std::string path = root.get_name();
  for (const auto& word : words) {
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const auto* sub : commands_of(*app)) {
      names.push_back(sub->get_name());
      if (sub->get_name() == word) found = sub;
    }
    const auto near = base::nearest(word, names);
    base::require<base::UsageError>(
        found, "help: expected a command, found '", word, "'",
        near.empty() ? "; retort help lists all." : "; did you mean '" + near + "'?");
    app = found;
    path += " " + word;
  }
  // App::help() would tell of the command that was parsed, which is this one.
  return app->get_formatter()->make_help(app, path, CLI::AppFormatMode::Normal);
}

}  // namespace

Action declare_help(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort help bench gemm\n"
      "  retort help --man | man -l -                              all of it as a page for man");
  struct Options {
    std::vector<std::string> command;
    bool man = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("COMMAND", options->command, "Whose help; default: of the program");
  app.add_flag("--man", options->man, "As a page for man, of all commands");
  return [options, root = app.get_parent()] {
    if (options->man)
      print_manual(*root);
    else
      std::cout << help_of(*root, options->command);
    return base::ExitCode::ok;
  };
}

Action declare_version(CLI::App&) {
  return [] {
    std::cout << record::long_version() << '\n';
    return base::ExitCode::ok;
  };
}

Action declare_completion(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  source <(retort completion bash)                          in ~/.bashrc\n"
      "  retort completion zsh > ~/.zfunc/_retort                  with ~/.zfunc in fpath, before compinit\n"
      "  retort completion fish > ~/.config/fish/completions/retort.fish");
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, root = app.get_parent()] {
    print_completion(*root, *shell);
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
