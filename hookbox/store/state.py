"""The state directory: the box's own place on disk."""

from pathlib import Path

from hookbox.errors import OperatorError

STATE_MODE = 0o700
SOCKET_NAME = "hookbox.sock"  # the private door's


def prepare_state(state: Path) -> None:
    """The state directory, readable by nobody else. Raises OperatorError when it cannot be made."""
    try:
        state.mkdir(mode=STATE_MODE, parents=True, exist_ok=True)
        state.chmod(STATE_MODE)
    except OSError as error:
        raise OperatorError(
            f"the state directory {state} cannot be used: {error.strerror}; "
            "choose another with --state"
        ) from error
