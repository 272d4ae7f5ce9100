"""``gradmend explain``: a rule's page, verbatim."""

from __future__ import annotations

import json

import click

from .options import complete_rules
from .status import CLEAN


@click.command("explain")
@click.argument("rules", nargs=-1, metavar="CODE-OR-NAME", shell_complete=complete_rules)
@click.option("--all", "everything", is_flag=True, help="Every rule's page.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="text or json.")
@click.pass_context
def command(ctx: click.Context, rules: tuple[str, ...], everything: bool, output_format: str) -> None:
    """Print a rule's page.

    What it finds, why that is bad, what PyTorch says, an example and its repair, how safe the repair is.
    """
    from gradmend.codemods.registry import RULES, UnknownRule, page, resolve

    if not rules and not everything:
        raise click.UsageError("which rule? `gradmend rules` lists them, --all prints every page.")
    codes = {rule.code for rule in RULES} if everything else set()
    for word in rules:
        try:
            codes |= resolve(word)
        except UnknownRule as unknown:
            near = f'; did you mean "{unknown.suggestion}"?' if unknown.suggestion else ""
            raise click.ClickException(f'no rule "{word}"{near} (`gradmend rules` lists all)') from unknown
    chosen = [rule for rule in RULES if rule.code in codes]
    if output_format == "json":
        pages = [
            {"code": rule.code, "name": rule.name, "summary": rule.summary, "page": page(rule.code)} for rule in chosen
        ]
        click.echo(json.dumps(pages, indent=2))
    else:
        click.echo("\n\n".join(page(rule.code).strip() for rule in chosen))
    ctx.exit(CLEAN)
