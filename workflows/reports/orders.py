"""Reports on orders."""

from collections import Counter


def sum_up(orders, currency, limit=3):
    """The total of all orders, and the customers who bought most."""
    amounts = Counter()
    for order in orders:
        amounts[order["customer"]] += order["amount"]
    best = [customer for customer, _ in amounts.most_common(limit)]
    return {"total": sum(amounts.values()), "currency": currency, "best": best}
