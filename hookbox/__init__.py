"""hookbox: receives email-event webhooks and never loses, repeats or misreads one."""

__version__ = "0.1.0"
