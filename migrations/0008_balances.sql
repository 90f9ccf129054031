-- Wallets as they are shown: what is on its way out is what was taken out and is not settled.
CREATE VIEW wallet_balances AS
    SELECT w.id, w.merchant_id, w.env, w.currency, w.available_minor,
        CAST(w.taken_out_minor - COALESCE(
            (SELECT SUM(s.settled_minor) FROM settled_out s WHERE s.wallet_id = w.id), 0
        ) AS BIGINT) AS pending_out_minor,
        w.is_active, w.is_frozen, w.is_demo, w.created_at, w.updated_at,
        (SELECT MAX(s.updated_at) FROM settled_out s WHERE s.wallet_id = w.id) AS settled_at
    FROM wallets w;
