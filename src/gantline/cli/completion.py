"""``gantline completion``: commands and options that a shell completes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.console import say

app = App(
    name="completion",
    help_epilogue="""Examples:

  gantline completion bash --install
  source <(gantline completion bash)""",
)


@app.default
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Your shell.")],
    /,
    *,
    install: Annotated[bool, Parameter(negative="", help="Put it where the shell finds it, rather than print it.")] = False,
    to: Annotated[Path | None, Parameter(help="With --install: the file to write; by default where the shell looks.")] = None,
) -> None:
    """Print what a shell needs to complete commands and options, or install it."""
    from gantline.cli.main import app as whole

    if install:
        say(f"note: wrote {whole.install_completion(shell=shell, output=to, add_to_startup=False)}; new shells complete 'gantline'")
    else:
        print(whole.generate_completion(shell=shell))
