"""What a document cannot say."""

import schemathesis

FROM_ANOTHER_CURRENCY = [
    "funding_currency",
    "funding_amount_minor",
    "fee_inclusive",
    "min_receive_minor",
    "max_debit_minor",
    "amount_basis",
]


def without_nul(value):
    """PostgreSQL stores no NUL, so no body may hold one; no form can say that of unknown fields."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [without_nul(item) for item in value]
    if isinstance(value, dict):
        return {without_nul(name): without_nul(item) for name, item in value.items()}
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    """A cursor is the id of an item of that very list; tests of lists bring real ones."""
    if case.query:
        case.query.pop("starting_after", None)
    case.body = body = without_nul(case.body)
    if case.meta and case.meta.generation.mode.is_positive and isinstance(body, dict):
        make_plain(body, case.operation.path)


def make_plain(body, path):
    # Paying one currency from another needs two of them.
    if body.get("funding_currency"):
        body["amount_minor"] = body.get("amount_minor") or body["funding_amount_minor"]
        for other in FROM_ANOTHER_CURRENCY:
            body.pop(other, None)
    # Whose payment it is said twice has to be the same.
    if body.get("customer_id") and body.get("sender_customer_id"):
        body["sender_customer_id"] = body["customer_id"]
    # However much is allowed, it adds up to more than a wallet holds.
    if path == "/v1/sandbox/fund" and "amount_minor" in body:
        body["amount_minor"] = "1"
