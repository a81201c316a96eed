//! `weir completions`: the shell learns the commands from the same table as `--help`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output::{self, OutputError};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir completions bash > /etc/bash_completion.d/weir
  weir completions zsh  > ~/.zfunc/_weir
  weir completions fish > ~/.config/fish/completions/weir.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), OutputError> {
    let CompletionsArgs { shell } = args;
    // Written to memory first: the generator panics where a pipe is closed early.
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut Cli::command(), "weir", &mut script);
    output::print(&script)
}
