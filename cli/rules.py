"""``gradmend rules``: the list of rules."""

from __future__ import annotations

import json

import click

from .status import CLEAN


@click.command("rules")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="text or json.")
@click.pass_context
def command(ctx: click.Context, output_format: str) -> None:
    """List the rules: code, name, the mistake in a line."""
    from gradmend.codemods.registry import RULES

    if output_format == "json":
        click.echo(
            json.dumps([{"code": rule.code, "name": rule.name, "summary": rule.summary} for rule in RULES], indent=2)
        )
    else:
        longest = max((len(rule.name) for rule in RULES), default=0)
        for rule in RULES:
            click.echo(f"{rule.code}  {rule.name:<{longest}}  {rule.summary}")
    ctx.exit(CLEAN)
