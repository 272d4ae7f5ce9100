"""The options that commands share, in Ruff's spelling, and the help that fits a screen.

``--help`` shows what a newcomer needs; ``--help-all`` shows every option.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from .config import FORMATS, SEVERITIES, ConfigError, Configuration, Settings, parsed, read_file, read_table
from .printable import printable
from .selection import Selection, Words
from .terminal import COLORS, Talk

Function = TypeVar("Function", bound=Callable[..., Any])


class Options(NamedTuple):
    """What the shared options say; names as on the command line."""

    paths: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[str, ...] = ()
    unsafe: bool | None = None
    accumulate_with: str | None = None
    output_format: str | None = None
    output_file: str | None = None
    since: str | None = None
    baseline: str | None = None
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool | None = None
    respect_gitignore: bool | None = None
    stdin_filename: str | None = None
    config: tuple[str, ...] = ()
    isolated: bool = False
    fail_on: str | None = None
    exit_zero: bool = False
    show_files: bool = False
    show_settings: bool = False
    jobs: int | None = None
    quiet: bool = False
    color: str = "auto"

    @property
    def is_stdin(self) -> bool:
        """Whether the source comes from standard input."""
        return self.paths == ("-",)

    def talk(self) -> Talk:
        """The voice on stderr."""
        return Talk(self.quiet, self.color)

    def selection(self) -> Selection:
        """Which rules count for which file."""
        return Selection(Words(_split(self.select), _split(self.extend_select), _split(self.ignore)))

    def configuration(self) -> Configuration:
        """Settings by folder, with the command line on top. Raises ConfigError."""
        inline: Settings | None = Settings() if self.isolated else None
        for value in self.config:
            if "=" not in value:
                if self.isolated:
                    raise ConfigError("--isolated reads no configuration, and --config names one")
                inline = read_file(value) or Settings(source=value)
        pairs = [value for value in self.config if "=" in value]
        return Configuration(lambda settings: self._override(settings, pairs), inline)

    def _override(self, settings: Settings, pairs: list[str]) -> Settings:
        for pair in pairs:
            settings = _with_pair(settings, pair)
        ignores = tuple(_glob_and_words(text) for text in self.per_file_ignores)
        given: dict[str, Any] = {
            "unsafe": self.unsafe,
            "accumulate_with": self.accumulate_with,
            "output_format": self.output_format,
            "force_exclude": self.force_exclude,
            "respect_gitignore": self.respect_gitignore,
            "fail_on": self.fail_on,
            "exclude": () if self.exclude else None,
            "line_excludes": _split(self.exclude + self.extend_exclude) or None,
            "per_file_ignores": settings.per_file_ignores + ignores,
        }
        return settings._replace(**{key: value for key, value in given.items() if value is not None})


def _split(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for value in values for word in value.replace(",", " ").split())


def _with_pair(settings: Settings, pair: str) -> Settings:
    try:
        table = parsed(pair.encode())
    except ValueError:
        key, _, value = pair.partition("=")
        try:
            # ``--config fail-on=error``: a shell eats the quotes that TOML asks for.
            table = parsed(f'{key} = """{value.strip()}"""'.encode())
        except ValueError as error:
            raise ConfigError(f"--config {pair}: not a TOML key = value: {error}") from None
    return read_table(table, f"--config {pair}", settings)


def _glob_and_words(text: str) -> tuple[str, tuple[str, ...]]:
    glob, colon, words = text.rpartition(":")
    if not colon or not words:
        raise ConfigError(f"--per-file-ignores {text}: write GLOB:RULE, as in tests/*:GM101")
    return glob, _split((words,))


class Command(click.Command):
    """A command whose ``--help`` leaves out the options marked rare."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if any(getattr(parameter, "hidden", False) for parameter in self.params):
            self.epilog = f"{self.epilog or ''}\n\n\b\n--help-all shows every option."

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # ``--add-ignore PATH``: the reason is optional, and only ``=`` gives one.
        args = ["--add-ignore=" if argument == "--add-ignore" else argument for argument in args]
        return super().parse_args(ctx, args)


def _help_all(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        for parameter in ctx.command.params:
            if isinstance(parameter, click.Option) and parameter.name != "help_all":
                parameter.hidden = False
        ctx.command.epilog = None
        click.echo(ctx.get_help())
        ctx.exit()


def rare(*declarations: str, **attributes: Any) -> Callable[[Function], Function]:
    """An option that only ``--help-all`` shows."""
    return click.option(*declarations, hidden=True, **attributes)


def complete_rules(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Codes and names for the shell."""
    from gradmend.codemods.registry import RULES

    words = ["ALL", *(word for rule in RULES for word in (rule.code, rule.name))]
    return [word for word in words if word.lower().startswith(incomplete.lower())]


_RULE_OPTIONS = (
    click.option("--select", metavar="RULE", multiple=True, shell_complete=complete_rules,
                 help="Only these rules: code, name, prefix (GM1) or ALL."),
    rare("--extend-select", metavar="RULE", multiple=True, shell_complete=complete_rules,
         help="These rules too."),
    click.option("--ignore", metavar="RULE", multiple=True, shell_complete=complete_rules, help="Not these rules."),
    rare("--per-file-ignores", metavar="GLOB:RULE", multiple=True, help="Not this rule in these files."),
    click.option("--unsafe", "--unsafe-fixes", "unsafe", is_flag=True, default=None,
                 help="Count in repairs that may not be what was meant."),
    rare("--no-unsafe", "--no-unsafe-fixes", "unsafe", flag_value=False, type=bool, default=None,
         help="Leave them out, whatever the configuration says."),
    rare("--accumulate-with", type=click.Choice(["item", "detach"]),
         help="Which repair of GM102 to prefer where both are right."),
)  # fmt: skip

_FILE_OPTIONS = (
    click.option("--since", metavar="REV", help="Only what changed since a git revision."),
    click.option("--baseline", metavar="FILE", help="Leave out the findings that FILE holds."),
    click.option("--exclude", metavar="GLOB", multiple=True, help="Leave files and folders out, as in .gitignore."),
    rare("--extend-exclude", metavar="GLOB", multiple=True, help="The same, on top of the configuration's."),
    rare("--force-exclude/--no-force-exclude", default=None, help="Leave excluded files out even when named."),
    rare("--respect-gitignore/--no-respect-gitignore", default=None, help="Leave out what git ignores (default)."),
    rare("--stdin-filename", metavar="NAME", help="The name of the source that - reads from standard input."),
    rare("--config", metavar="FILE|KEY=VALUE", multiple=True, help="A configuration file, or one setting."),
    rare("--isolated", is_flag=True, help="Read no configuration."),
    rare("--show-files", is_flag=True, help="List the files that would be looked at, and stop."),
    rare("--show-settings", is_flag=True, help="Print the settings in force, and stop."),
    rare("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes (default: one for each processor)."),
    rare("--no-cache", "-n", is_flag=True, expose_value=False, help="Does nothing: there is no cache."),
)

listed = click.option(
    "--output-format", type=click.Choice(FORMATS), metavar="FORMAT", help="One of: " + ", ".join(FORMATS)
)
"""How the findings are listed, for the commands that list them."""

_OUTPUT_OPTIONS = (
    rare("-o", "--output-file", metavar="FILE", type=click.Path(dir_okay=False),
         help="Write what stdout would get to FILE."),
    rare("--fail-on", type=click.Choice(SEVERITIES), help="The least severity that makes the exit status 1."),
    rare("-e", "--exit-zero", is_flag=True, help="Exit 0 even if there are findings."),
)  # fmt: skip

_TALK_OPTIONS = (
    rare("-q", "--quiet", is_flag=True, help="Say only what went wrong."),
    rare("--color", type=click.Choice(COLORS), default="auto", help="NO_COLOR and FORCE_COLOR count too."),
    rare("--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_help_all, help="This list."),
)


class Fixing(NamedTuple):
    """How to mend, where a command does."""

    allow_dirty: bool = False
    fix_only: bool = False
    show_fixes: bool = False
    exit_non_zero_on_fix: bool = False


def fixing(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options about mending; it gets them as ``how``."""
    names = set(Fixing._fields)

    def command(*args: Any, **values: Any) -> int:
        how = Fixing(**{name: values.pop(name) for name in names})
        return function(*args, how=how, **values)

    command.__doc__ = function.__doc__
    command.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        rare("--exit-non-zero-on-fix", is_flag=True, help="Exit 1 if anything was mended."),
        rare("--show-fixes", is_flag=True, help="List every finding that was mended."),
        rare("--fix-only", is_flag=True, help="Neither list nor count the findings that are left."),
        rare("--allow-dirty", is_flag=True, help="Change files that have unstaged changes, too."),
    ):
        command = option(command)
    return command


def shared(function: Callable[..., int]) -> Callable[..., None]:
    """Give a command PATHS and all shared options; it gets them as one ``Options`` and returns its exit status."""
    names = set(Options._fields)

    @click.argument("paths", nargs=-1, type=click.Path())
    @click.pass_context
    def command(ctx: click.Context, /, **values: Any) -> None:
        options = Options(**{name: values.pop(name) for name in names & values.keys()})
        if "-" in options.paths and not options.is_stdin:
            raise click.UsageError("- is standard input and stands alone.")
        try:
            ctx.exit(function(options, **values))
        except ConfigError as error:
            raise click.ClickException(printable(str(error))) from None

    command.__doc__ = function.__doc__
    own = getattr(function, "__click_params__", [])
    for option in reversed(_RULE_OPTIONS + _OUTPUT_OPTIONS + _FILE_OPTIONS + _TALK_OPTIONS):
        command = option(command)
    command.__click_params__[:0] = own  # type: ignore[attr-defined]
    return command
