"""``gantline completion``: commands and options that a shell completes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from cyclopts import App

from gantline.cli.console import say
from gantline.cli.main import app as whole
from gantline.policies.registry import policy_names

app = App(
    name="completion",
    help_epilogue="""Examples:

  gantline completion bash --install
  source <(gantline completion bash)""",
)


@app.default
def completion(
    shell: Literal["bash", "zsh", "fish"],
    /,
    *,
    install: bool = False,
    to: Path | None = None,
) -> None:
    """Print the script by which a shell completes commands and options, or install it.

    Args:
        shell: Your shell.
        install: Put it where the shell finds it, rather than print it.
        to: With --install: the file to write; by default where the shell looks.
    """
    if not install:
        print(with_policies(whole.generate_completion(shell=shell)))
        return
    file = Path(whole.install_completion(shell=shell, output=to, add_to_startup=False))
    file.write_text(with_policies(file.read_text(encoding="utf-8")), encoding="utf-8")
    say(f"note: wrote {file}; new shells complete 'gantline'")


def with_policies(script: str) -> str:
    """The script of any shell, with the registered policies behind ``--policy``."""
    names = " ".join(policy_names())
    bash = f"COMPREPLY=($(compgen -W '{names}' -- \"${{cur}}\"))"
    script = re.sub(r"(--policy\)\s+)COMPREPLY=\(\)", lambda found: found[1] + bash, script)
    script = re.sub(r"(?m)^( *'\*?--policy\[.*\]:policy)'( \\)?$", rf"\g<1>:({names})'\g<2>", script)  # zsh
    return re.sub(r"(?m)^(complete .* -l policy -r) ", rf"\g<1> -f -a '{names}' ", script)  # fish
