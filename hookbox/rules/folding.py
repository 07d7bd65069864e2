"""When two spellings are one address.

The domain is folded as DNS folds it, written in Unicode or as `xn--` alike. The local part is
folded too: some hosts tell `Ann@` from `ann@`, but one unsent mail is better than mail to somebody
who complained. Tags and dots stay, since only the receiving host knows what they mean; look-alike
letters of other scripts stay apart.
"""

import contextlib
import re
import unicodedata

from hookbox.rules.addresses import bare

ATOM = re.compile(r'"([^"\\\s@(),:;<>\[\]]+)"')


def folded(address: str) -> str:
    """The form in which addresses are compared and stored as keys; total over any text."""
    if address.isascii() and '"' not in address and not address.endswith("."):
        return address.lower()
    local, at, domain = unicodedata.normalize("NFC", address).rpartition("@")
    quoted = ATOM.fullmatch(local)
    if quoted and not quoted[1].startswith(".") and not quoted[1].endswith("."):
        local = quoted[1]  # "ann"@ is ann@ in needless quotes
    return unicodedata.normalize("NFC", local.lower()) + at + _folded_domain(domain)


def meant(text: str) -> str:
    """The key of the address that a person asks about, who may write `Ann <ann@example.com>`."""
    return folded(bare(text) or text.strip())


def spellings(key: str) -> set[str]:
    """How the address of that key may be spelt, aside from the case of its letters."""
    local, _, domain = key.rpartition("@")
    domains, locals_ = {domain}, {local, f'"{local}"', unicodedata.normalize("NFD", local)}
    if "xn--" in domain:
        import idna

        with contextlib.suppress(idna.IDNAError, UnicodeError):
            shown = idna.decode(domain)
            domains |= {shown, unicodedata.normalize("NFD", shown)}
    return {f"{each}@{at}" for each in locals_ for at in domains}


def _folded_domain(domain: str) -> str:
    domain = domain.removesuffix(".")
    if domain.isascii():
        return domain.lower()
    import idna  # tables of 200 KB that most boxes never need

    try:
        return idna.encode(domain, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return domain.lower()
