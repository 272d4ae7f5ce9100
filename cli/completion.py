"""``gradmend completion``: the script that makes a shell complete commands, options and rules."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .status import CLEAN

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="|".join(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell's completion script.

    \b
    bash   eval "$(gradmend completion bash)"    in ~/.bashrc
    zsh    eval "$(gradmend completion zsh)"     in ~/.zshrc
    fish   gradmend completion fish | source     in ~/.config/fish/config.fish
    """
    from .app import app

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(app, {}, "gradmend", "_GRADMEND_COMPLETE").source())
    ctx.exit(CLEAN)
