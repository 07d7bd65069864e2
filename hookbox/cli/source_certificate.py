"""`hookbox source test-certificate`: a sender of our own, for a source to try things out with."""

import click

from hookbox.cli import options, terminal
from hookbox.cli.box import Box, chosen, pass_box
from hookbox.errors import OperatorError


@click.command("test-certificate")
@options.source_argument
@pass_box
def make_certificate(box: Box, source: str) -> None:
    """Make a certificate that SOURCE believes, and the key with which `simulate` signs for it.

    Both are put into the directory that the source's `certificates` names. Whoever can read the key
    can speak for the source, so let it be one of its own, and not the one that is in use.

    \b
    hookbox source test-certificate ses-test
    """
    # What builds sources is slow to load, and `hookbox source list` should not be.
    from hookbox import assembly
    from hookbox.flows.signer import KEY_FILE, make_local_signer

    settings = box.settings()
    provider = assembly.configured(chosen(settings, source), settings.server.public_url)
    if provider.certificate_url is None:
        raise OperatorError(
            f"{provider.title} signs without certificates; try: "
            f"{box.hint(f'secret set {source} --generate')}"
        )
    if provider.certificates is None:
        raise OperatorError(
            f"{source} fetches its sender's certificates and believes no others; add a second "
            'source with certificates = "DIR" to try things out'
        )
    made = make_local_signer(provider.certificates, box.clock.now())
    click.echo(f"certificate  {made}")
    click.echo(f"private key  {made.with_name(KEY_FILE)}")
    terminal.say(f"next: {box.hint(f'simulate {source} bounced --to someone@example.com')}")
