"""The one place that hides secrets: passwords and tokens in addresses."""

import re
from urllib.parse import quote, quote_plus, unquote, unquote_plus

_HIDDEN = "***"
# name:password@ up to the last @, since a password may hold any character; an address that was
# made into a path has lost a slash.
_PASSWORD = re.compile(r"(?s)(:/{1,2}[^:]*):(.*)@")
# Values in a query whose names suggest secrets.
_SECRET = re.compile(r"(?i)([?&][^=&]*(?:pass|pwd|secret|token|key|cred)[^=&]*=)([^&]+)")


def masked(word: str) -> str:
    """An address, or a word of a command line that holds one, with its secrets hidden."""
    return _SECRET.sub(rf"\1{_HIDDEN}", _PASSWORD.sub(rf"\1:{_HIDDEN}@", word))


def masked_text(text: str, address: str = "") -> str:
    """A text with the secrets of all addresses in it hidden.

    Args:
        text: what is shown or written.
        address: its secrets are hidden even where they stand alone.
    """
    for secret in _secrets(address):
        text = text.replace(secret, _HIDDEN)
    return re.sub(r"\S+", lambda word: masked(word[0]), text)


def _secrets(address: str) -> list[str]:
    """The secrets of an address, quoted and unquoted in the usual ways; longest first."""
    found = [match[2] for match in _SECRET.finditer(address)]
    for match in _PASSWORD.finditer(address):
        # Any @ may be its end: a later one may belong to the query.
        parts = match[2].split("@")
        found += ["@".join(parts[:end]) for end in range(1, len(parts) + 1)]
    meant = {form for each in found for form in (unquote(each), unquote_plus(each))}
    written = {quote(each, safe) for each in meant for safe in ("", "/", " +")}
    forms = {*found, *meant, *written, *map(quote_plus, meant)} - {""}
    return sorted(forms, key=len, reverse=True)
