"""How options are declared, and how `--help` shows them: the same in all commands."""

from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from ihgnn_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    # Typer brings its own copy of click, which has no public name.
    from typer._click.core import Command as ClickCommand
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter

# The panels of options, in the order in which commands declare them.
Panel = Literal[
    "Service",
    "Data",
    "Edge labels",
    "Model",
    "Training",
    "Protocol",
    "Search",
    "Compute",
    "Limits",
    "Output",
    "Advanced",
]

_NUMBERS = {"<int>": "N", "<int range>": "N", "<float>": "X", "<float range>": "X"}


def option(panel: Panel, text: str, *flags: str, default: str | None = None, **more: Any) -> Any:
    """An option of a command: `text` explains it in this panel of the help.

    Without `flags`, the parameter's name is the flag. `default` is shown in the help in place of
    the parameter's default value; `more` is passed to `typer.Option`.
    """
    if default is not None:
        more["show_default"] = default
    return typer.Option(*flags, help=text, rich_help_panel=panel, **more)


def argument(metavar: str, text: str, *, default: str | None = None, **more: Any) -> Any:
    """An argument of a command, shown as `metavar`; the rest is as for an option."""
    if default is not None:
        more["show_default"] = default
    return typer.Argument(metavar=metavar, help=text, **more)


class Command(TyperCommand):
    """A command with the common help; its messages name options as they are typed."""

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Print the help."""
        _prepare(self, ctx)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: "Context") -> Any:
        """Run the command; the message for a wrong setting names the option as it is typed."""
        try:
            return super().invoke(ctx)
        except SettingError as error:
            flag = f"--{error.setting.replace('_', '-')}"
            if flag in {name for each in self.params for name in each.opts}:
                raise InputError(f"{flag} {error.problem}") from error
            raise


class Group(TyperGroup):
    """A command with subcommands and the common help."""

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Print the help."""
        _prepare(self, ctx)
        super().format_help(ctx, formatter)


class _Argument(TyperArgument):
    """An argument whose type is not shown: its help says what it is."""

    def display_type_rich(self, ctx: "Context") -> str | None:  # noqa: ARG002
        return None


def _prepare(command: "ClickCommand", context: "Context") -> None:
    """Change what Typer would print; a command that shows its help does nothing else."""
    command.help = "\n\n".join(map(_reflowed, (command.help or "").split("\n\n")))
    for each in command.get_params(context):
        if isinstance(each, TyperArgument):
            each.__class__ = _Argument
        if isinstance(each, TyperOption):
            if each.name == "help" and context.parent is not None:
                each.rich_help_panel = "Output"
            shown = each.display_type_rich(context) or ""
            each.metavar = "" if each.is_flag else _NUMBERS.get(shown, shown)
        if isinstance(each, TyperArgument | TyperOption) and isinstance(each.show_default, str):
            # Typer would put it in parentheses.
            each.help = f"{each.help} [dim]\\[default: {each.show_default}][/dim]"
            each.show_default = False


def _reflowed(paragraph: str) -> str:
    """A paragraph on one line, whose lines end where the source's do; a list keeps its lines."""
    lines = [each.strip() for each in paragraph.strip().split("\n")]
    is_list = all(each.startswith("- ") for each in lines)
    return ("\n" if is_list else " ").join(lines)


def examples(*lines: tuple[str, str]) -> str:
    """The end of a command's help, from pairs of a command line and what it does."""
    shown = "\n".join(f"  {what}:\n    {line}" for line, what in lines)
    return f"[bold]Examples[/bold]\n{shown}"
