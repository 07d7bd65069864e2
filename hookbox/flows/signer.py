"""A signer of our own: a key pair that stands in for Amazon's, for `hookbox simulate`.

Its certificate lies in the directory of certificates of the one source that is to believe it.
Whoever can read the key can speak for that source, hence its mode; whoever removes the certificate
ends that.
"""

from pathlib import Path

from hookbox.errors import OperatorError
from hookbox.rules.certificates import fingerprint, private_rsa_key, self_signed

KEY_FILE = "local-signer.key"
NAME = "sns.amazonaws.com"


def local_signer(directory: Path) -> str:
    """The private key whose certificate stands in the directory; empty where there is none.

    Raises OperatorError when it cannot be read.
    """
    file = directory / KEY_FILE
    try:
        key = file.read_text()
        fingerprint(key)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise OperatorError(
            f"{file} cannot be used: {why}; make it readable for hookbox's own user, or make "
            "another with: hookbox source test-certificate NAME"
        ) from error
    return key


def make_local_signer(directory: Path, now: int) -> Path:
    """A new pair in the directory; the file of its certificate, named as Amazon's are.

    Raises OperatorError.
    """
    key = private_rsa_key()
    certificate = directory / f"SimpleNotificationService-{fingerprint(key)}.pem"
    key_file = directory / KEY_FILE
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        certificate.write_bytes(self_signed(key, NAME, now))
        key_file.unlink(missing_ok=True)
        key_file.touch(mode=0o600, exist_ok=False)
        key_file.write_text(key)
    except OSError as error:
        raise OperatorError(
            f"no test certificate can be put into {directory}: {error.strerror}; "
            "make it writable for hookbox, or choose another directory"
        ) from error
    return certificate
