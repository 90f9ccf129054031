"""Verifies webhooks with other people's libraries, which know nothing of this project.

Reads a list of letters from standard input and answers with a list of the libraries' verdicts.
"""

import json
import sys
from datetime import datetime, timezone

import standardwebhooks
import stripe


def standard(letter, headers, is_fresh):
    webhook = standardwebhooks.Webhook(letter["secret"])
    if is_fresh:
        webhook.verify(letter["body"], headers)
        return
    # The library only verifies what was sent just now. It signs for any instant, though.
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), tz=timezone.utc)
    if webhook.sign(headers["webhook-id"], at, letter["body"]) not in headers["webhook-signature"].split(" "):
        raise ValueError("no signature is right")


def like_stripe(letter, headers, is_fresh):
    stripe.WebhookSignature.verify_header(
        letter["body"], headers["x-service-signature"], letter["secret"], 300 if is_fresh else None
    )


def verdict(verify, letter, is_fresh):
    try:
        verify(letter, letter["headers"], is_fresh)
        return None
    except Exception as refusal:
        return str(refusal) or repr(refusal)


question = json.load(sys.stdin)
json.dump(
    [
        [verdict(verify, letter, question["is_fresh"]) for verify in (standard, like_stripe)]
        for letter in question["letters"]
    ],
    sys.stdout,
)
