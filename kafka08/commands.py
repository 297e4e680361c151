"""Where ``bin/`` and ``config/`` are, and the commands that pip makes of the scripts in ``bin/``.

Imports as little as possible: PYTHONPATH may name modules for another Python, which the scripts
hide from what they start.
"""

import os
import signal
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_INSTALLED = os.path.join(_HERE, "_home")
# The directory that has bin/ and config/: the top of a checkout, or a part of the package.
HOME = _INSTALLED if os.path.isdir(_INSTALLED) else os.path.dirname(_HERE)
# Names the Python that has the project's packages, for bin/kafka-run-class.sh.
PYTHON = "KAFKA08_PYTHON"


def script_of(command: str) -> str:
    """The script that a command stands for, which may be a link to the command: ``kafka-topics``
    and ``kafka-topics.sh`` are the same."""
    name = os.path.basename(os.path.realpath(command))
    return os.path.join(HOME, "bin", name if name.endswith(".sh") else f"{name}.sh")


def run_script() -> None:
    """Become the script that this process is named after."""
    script = script_of(sys.argv[0])
    os.environ[PYTHON] = sys.executable
    # Python ignores it, and a script would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(script, [script, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{script}: {error.strerror}")


def print_home() -> None:
    """``kafka08-home``: the directory to copy ``config`` from."""
    print(HOME)
