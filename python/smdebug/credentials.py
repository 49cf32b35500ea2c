"""Credentials for S3 that only botocore can find: single sign-on, assumed roles, instance roles."""

from __future__ import annotations


def botocore_credentials() -> tuple[str, str, str, float | None] | None:
    """(access key, secret key, session token, expiry), or None: asked when the core finds none."""
    try:
        import botocore.session
    except ImportError:
        return None
    found = botocore.session.Session().get_credentials()
    if found is None:
        return None
    keys = found.get_frozen_credentials()
    expiry = getattr(found, "_expiry_time", None)
    expires = None if expiry is None else float(expiry.timestamp())
    return keys.access_key, keys.secret_key, keys.token or "", expires
