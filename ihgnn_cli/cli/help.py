"""How `--help` looks: panels, defaults, metavars and examples, the same in all commands."""

from typing import TYPE_CHECKING, Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from ihgnn_cli.errors import InputError, SettingError

if TYPE_CHECKING:
    # Typer brings its own copy of click, which has no public name.
    from typer._click.core import Command as ClickCommand
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter

# The panels of options, in the order in which commands declare them.
SERVICE_PANEL = "Service"
DATA_PANEL = "Data"
EDGE_PANEL = "Edge labels"
MODEL_PANEL = "Model"
TRAINING_PANEL = "Training"
PROTOCOL_PANEL = "Protocol"
SEARCH_PANEL = "Search"
COMPUTE_PANEL = "Compute"
LIMITS_PANEL = "Limits"
OUTPUT_PANEL = "Output"
ADVANCED_PANEL = "Advanced"

# Note of an interruption after the user was told what is kept.
KEPT = "kept"
_TRAINING = ("train", "distill", "tune", "crossval", "reproduce")
_NUMBERS = {"<int>": "N", "<int range>": "N", "<float>": "X", "<float range>": "X"}


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
            option = f"--{error.setting.replace('_', '-')}"
            if option in {name for each in self.params for name in each.opts}:
                raise InputError(f"{option} {error.problem}") from error
            raise
        except KeyboardInterrupt as interrupt:
            if self.name in _TRAINING and KEPT not in getattr(interrupt, "__notes__", ()):
                from ihgnn_cli.cli import console

                console.note("Nothing was trained yet.")
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
    for option in command.get_params(context):
        if isinstance(option, TyperArgument):
            option.__class__ = _Argument
        if not isinstance(option, TyperOption):
            continue
        if option.name == "help" and context.parent is not None:
            option.rich_help_panel = OUTPUT_PANEL
        shown = option.display_type_rich(context) or ""
        option.metavar = "" if option.is_flag else _NUMBERS.get(shown, shown)
        if isinstance(option.show_default, str):  # Typer would put it in parentheses
            option.help = f"{option.help} [dim]\\[default: {option.show_default}][/dim]"
            option.show_default = False


def _reflowed(paragraph: str) -> str:
    """A paragraph on one line, whose lines end where the source's do; a list keeps its lines."""
    lines = [each.strip() for each in paragraph.strip().split("\n")]
    is_list = all(each.startswith("- ") for each in lines)
    return ("\n" if is_list else " ").join(lines)


def examples(*lines: tuple[str, str]) -> str:
    """The end of a command's help, from pairs of a command line and what it does."""
    shown = "\n".join(f"  {what}:\n    {line}" for line, what in lines)
    return f"[bold]Examples[/bold]\n{shown}"
