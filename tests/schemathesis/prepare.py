"""Waits for a host, makes a merchant with money, and prints a key of it that may do everything."""

import json
import sys
import time
import urllib.error
import urllib.request

base, token = sys.argv[1:]


def call(path, body, bearer=token):
    headers = {"authorization": f"Bearer {bearer}", "content-type": "application/json"}
    request = urllib.request.Request(base + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


for _ in range(300):
    try:
        urllib.request.urlopen(base + "/readyz").close()
        break
    except (urllib.error.URLError, OSError):
        time.sleep(0.1)
merchant = call("/admin/v1/merchants", {"name": "Schemathesis", "country": "NG"})
key = call(
    f"/admin/v1/merchants/{merchant['id']}/keys",
    {
        "env": "test",
        "label": "schemathesis",
        "capabilities": ["payout_create", "payout_fx"],
        "permissions": ["webhook_manage", "beneficiary_manage", "payout_cancel"],
    },
)["secret"]
call("/v1/sandbox/fund", {"currency": "NGN", "amount_minor": "100000000000"}, key)
print(key)
